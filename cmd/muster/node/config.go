package node

import (
	"fmt"
	"log/slog"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/board"
	"muster/board/lease"
	"muster/cmd/muster/web"
	"muster/mesh"
)

// Config is all that one node is told from outside.
type Config struct {
	Data      string // data folder
	Name      string // "" is the host's name
	Listen    string // ip:port of the mesh; "" keeps the port of the last start, or takes a free one on loopback
	Advertise string // ip:port told to others; "" finds it out
	Token     string // join string; "" for a first or known node
	Labels    map[string]string
	Slots     int64             // 0: from the machine's memory
	Repos     map[string]string // names of repositories, beside those in node.yaml
	Ports     [2]int            // first and last port given to cards; 0: the default
	Replica   bool
	Local     string // what users of its socket may be at most; "" as the fleet says
	Timers    string // lan or wan
	Metrics   string // ip:port on loopback that shows figures and health; "": none
	Binary    string // the muster executable that keepers run
	Version   string
	Logger    *slog.Logger
	Progress  func(string) // what a person who waits for the start reads
	LogKind   string       // log store: "" is the default one

	Web *web.Config // the page; nil: none. What it needs of the node is filled in

	Boot func() time.Duration // a clock that counts sleep; nil is the machine's (tests let a machine sleep)
	Wall func() time.Time     // the machine's wall clock; nil is the machine's (tests let it be wrong)

	Lease lease.Config // times of the contact; zero is the default
	Seams Seams        // for simulation: in place of the machine

	readWait time.Duration                      // how long a local read waits for what this node has answered to anybody (M-31); 0 is a second
	step     func(what string) error            // tests: breaks a step of membership; nil breaks none
	eraWait  time.Duration                      // 0 is the default: see later
	handWait func(failures int64) time.Duration // between two passes for an organisation's directory; nil is the default
	hookWait func(failures int64) time.Duration // between two tries of a webhook; nil is the default
}

// Validate fills what has a default and refuses what cannot be.
func (c *Config) Validate() error {
	if c.Data == "" {
		return fmt.Errorf("a node needs a data folder (--data DIR)")
	}
	if c.Name == "" {
		h, err := os.Hostname()
		if err != nil {
			return fmt.Errorf("this machine's name: %w (give one with --name)", err)
		}
		c.Name, _, _ = strings.Cut(h, ".")
	}
	if err := board.CheckNodeName(c.Name); err != nil {
		return err
	}
	if err := CheckAddresses(c.Listen, c.Advertise); err != nil {
		return err
	}
	if err := CheckMonitor(c.Metrics); err != nil {
		return err
	}
	if c.Timers == "" {
		c.Timers = "lan"
	}
	if c.Timers != "lan" && c.Timers != "wan" {
		return fmt.Errorf("--timers %q: use lan or wan", c.Timers)
	}
	if c.Web != nil {
		if err := c.Web.Check(); err != nil {
			return err
		}
	}
	if !slices.Contains(localRoles, c.Local) {
		return fmt.Errorf("--local-role %q: use manager, member, viewer or none", c.Local)
	}
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	if c.Progress == nil {
		c.Progress = func(string) {}
	}
	if c.Boot == nil {
		c.Boot = mesh.BootClock
	}
	if c.Wall == nil {
		c.Wall = time.Now
	}
	if c.readWait == 0 {
		c.readWait = time.Second
	}
	if c.eraWait == 0 {
		c.eraWait = eraWait
	}
	if c.Lease == (lease.Config{}) {
		c.Lease = lease.DefaultConfig()
	}
	return nil
}

// CheckAddresses refuses what cannot be listened on, and what others could not
// dial; "" is no address.
func CheckAddresses(listen, advertise string) error {
	for what, addr := range map[string]string{"--listen": listen, "--advertise": advertise} {
		if addr == "" {
			continue
		}
		host, port, err := net.SplitHostPort(addr)
		n, perr := strconv.ParseUint(port, 10, 16)
		if err != nil || perr != nil {
			return fmt.Errorf("%s %q is not IP:PORT", what, addr)
		}
		ip := net.ParseIP(host)
		if what == "--advertise" && (n == 0 || host == "" || ip != nil && ip.IsUnspecified()) {
			return fmt.Errorf("%s %q: nobody can dial that; give an address and a port at which other machines reach this one", what, addr)
		}
	}
	return nil
}

const (
	callTimeout = 5 * time.Second  // one question to a peer
	hopTimeout  = 20 * time.Second // one forwarded request
)

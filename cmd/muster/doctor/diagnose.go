package doctor

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Severities of findings. Only an error makes `muster doctor` fail.
const (
	Error = "error" // data would be lost, or the fleet stand still
	Warn  = "warn"  // something will not work, or not well
	Note  = "note"  // to know
)

// Finding is one thing that is not as it should be.
type Finding struct {
	Code     string `json:"code"`
	Severity string `json:"severity"`
	Text     string `json:"text"`
	Fix      string `json:"fix"`
}

// Facts are what was seen. The zero value of a field says that nothing was.
type Facts struct {
	Version string
	Data    string // folder
	Folder  Folder
	Machine Machine
	Running bool
	Fleet   *Fleet // of a running node
}

// Folder is the data folder, as it lies there.
type Folder struct {
	Exists           bool
	Held             bool   // a process has it: the node runs, starts or ends
	Mode, KeyMode    uint32 // permission bits
	Faults           []string
	Listen, PortUsed string // where the node listens; why a stopped one could not
}

// Machine is what the node needs of this machine.
type Machine struct {
	DiskFree          int64 // bytes, -1: not known
	Sync              time.Duration
	SyncErr           string
	Tmux, Git         string // why they cannot be used; "" they can
	NoLogin           []string
	Linger            string // "no": what the user started ends with its last login
	MemFree, MemTotal int64  // MB
}

// Fleet is what the running node says.
type Fleet struct {
	Self, SelfID string
	SelfVersion  string
	Leader       string
	Quorum       bool
	Removed      string // this machine is out of the fleet, in words
	Nodes        []Node
	Peers        []Peer // by id, as this node reaches them
	Alarms       []string
	Wan          bool
}

// Node is a machine of the list.
type Node struct {
	ID, Name, Addr, State, Version string
	Voter, NoSpace                 bool
	Running                        int
	Pressure                       string
	ClockOff                       time.Duration
}

// Peer is how another node answers.
type Peer struct {
	ID, Name string
	RTT      time.Duration
	ClockOff time.Duration // its clock ahead of this machine's
	Err      string
}

// Bounds.
const (
	diskError  = 64 << 20
	diskWarn   = 1 << 30
	syncError  = time.Second
	syncWarn   = 100 * time.Millisecond
	clockWarn  = 5 * time.Second
	clockError = time.Minute
	rttWarn    = 50 * time.Millisecond // of a heartbeat of 300 ms
)

// Diagnose says what is wrong, the worst first.
func Diagnose(f Facts) []Finding {
	d := &diagnosis{f: f}
	d.folder()
	d.machine()
	if f.Fleet != nil {
		d.quorum()
		d.nodes()
		d.peers()
	}
	rank := map[string]int{Error: 0, Warn: 1, Note: 2}
	slices.SortStableFunc(d.list, func(a, b Finding) int { return cmp.Compare(rank[a.Severity], rank[b.Severity]) })
	return d.list
}

type diagnosis struct {
	f    Facts
	list []Finding
}

func (d *diagnosis) add(code, severity, fix, format string, a ...any) {
	d.list = append(d.list, Finding{Code: code, Severity: severity, Text: fmt.Sprintf(format, a...), Fix: fix})
}

func (d *diagnosis) folder() {
	f := d.f.Folder
	if !f.Exists {
		d.add("no_node", Note, "muster up, or muster join TOKEN", "there is no node in %s yet", d.f.Data)
		return
	}
	if f.KeyMode&0o077 != 0 {
		d.add("key_open", Error, "chmod 600 "+d.f.Data+"/node.key; if somebody may have read it: remove this node from the fleet and join it anew", "others on this machine can read node.key, and be this node")
	}
	if f.Mode&0o077 != 0 {
		d.add("folder_open", Warn, "chmod 700 "+d.f.Data, "others on this machine can look into %s", d.f.Data)
	}
	for _, x := range f.Faults {
		d.add("folder_damaged", Error, "muster check "+d.f.Data+"; what it says next", "%s", x)
	}
	if f.Held && !d.f.Running {
		d.add("node_starting", Note, "try again in half a minute; what it waits for is in its output", "the node of %s is starting, or it ends", d.f.Data)
		return
	}
	if !d.f.Running {
		d.add("node_stopped", Note, "muster up", "the node of %s is not running", d.f.Data)
		if f.PortUsed != "" {
			d.add("port_taken", Error, "end what listens there, or start with another: muster up --listen IP:PORT", "the node cannot listen on %s: %s", f.Listen, f.PortUsed)
		}
	}
}

func (d *diagnosis) machine() {
	m := d.f.Machine
	switch {
	case m.DiskFree < 0:
	case m.DiskFree < diskError:
		d.add("disk_full", Error, "free space there; the node takes nothing new until then", "%d MB are left on the disk of %s", m.DiskFree>>20, d.f.Data)
	case m.DiskFree < diskWarn:
		d.add("disk_low", Warn, "free space there (muster gc lists workspaces)", "%d MB are left on the disk of %s", m.DiskFree>>20, d.f.Data)
	}
	switch {
	case m.SyncErr != "":
		d.add("disk_fails", Error, "look at the disk and its file system: nothing that is written there is safe", "a small file cannot be written and synced in %s: %s", d.f.Data, m.SyncErr)
	case m.Sync > syncError:
		d.add("disk_hangs", Error, "look at the disk; put the data folder on a local one", "a sync of 4 KB takes %s in %s: a node gives up its vote when a write hangs", m.Sync.Round(time.Millisecond), d.f.Data)
	case m.Sync > syncWarn:
		d.add("disk_slow", Warn, "put the data folder on a faster local disk; every write of the fleet waits for a sync of a majority", "a sync of 4 KB takes %s in %s", m.Sync.Round(time.Millisecond), d.f.Data)
	}
	if m.Tmux != "" {
		d.add("tmux", Warn, "install tmux 3.2 or newer; headless sessions need none", "this machine opens no panes: %s", m.Tmux)
	}
	if m.Git != "" {
		d.add("git", Warn, "install git; workspaces other than worktrees need none", "this machine makes no worktrees: %s", m.Git)
	}
	for _, h := range m.NoLogin {
		d.add("harness_login", Warn, "start "+h+" once by hand on this machine and log in; never copy its login from another machine", "%s is installed here and shows no login of this user", h)
	}
	if m.Linger == "no" {
		d.add("linger", Warn, "loginctl enable-linger", "what this user started ends with the last login: node and sessions, too")
	}
	if m.MemTotal > 0 && (m.MemFree*10 < m.MemTotal || m.MemFree < 512) {
		d.add("memory", Warn, "end something, or start with fewer --slots", "%d of %d MB of memory are free: nothing new starts here while that is so", m.MemFree, m.MemTotal)
	}
}

func (d *diagnosis) quorum() {
	f := d.f.Fleet
	voters, here := 0, 0
	var away []string
	for _, n := range f.Nodes {
		if !n.Voter {
			continue
		}
		if voters++; n.State == "online" {
			here++
		} else {
			away = append(away, n.Name)
		}
	}
	switch {
	case f.Removed != "":
		d.add("removed", Error, "muster stop, then muster join - with a token of the fleet (never recover: the fleet goes on without it)", "%s", f.Removed)
	case !f.Quorum:
		d.add("no_quorum", Error, "bring back a majority of the voters; if most of them are lost for good: muster recover --help", "no leader is reachable: nothing starts, moves or gets a verdict")
	case voters == 2:
		d.add("two_voters", Error, "join a third machine that stays on, or demote one: muster node demote N", "two voters: when either is away nothing can be written")
	case voters > 2 && here <= voters/2+1 && len(away) > 0:
		d.add("voter_away", Error, "bring it back, or let another machine vote in its place: muster node promote N", "%s: when one more voter fails the fleet stands still", strings.Join(away, ", ")+" is away")
	case voters == 1 && len(f.Nodes) > 1:
		d.add("one_voter", Note, "with three machines that stay on, any one may fail; take backups until then: muster backup FILE", "one voter: when its disk dies, what was not copied yet is lost")
	}
	for _, a := range f.Alarms {
		code := "alarm"
		for _, c := range []string{"DIVERGED", "NOSPACE", "CLOCK"} {
			if strings.Contains(a, c) {
				code = "alarm_" + strings.ToLower(c)
			}
		}
		if strings.HasSuffix(a, "is offline") || strings.HasPrefix(a, "no leader is reachable") || a == f.Removed || strings.HasSuffix(a, "ESTOP") {
			continue // told above, or wanted
		}
		d.add(code, Error, "see: muster status", "%s", a)
	}
}

func (d *diagnosis) nodes() {
	f := d.f.Fleet
	versions := map[string][]string{}
	far := false
	for _, n := range f.Nodes {
		if n.State == "online" {
			versions[n.Version] = append(versions[n.Version], n.Name)
		}
		if n.ID == f.SelfID {
			if n.Voter && n.Running > 0 {
				d.add("session_keys", Note, "run sessions in a container, or let machines that run sessions not vote: muster node demote "+n.Name, "%d session(s) run on this voter under the node's own user: a hostile program among them can read its key", n.Running)
			}
			continue
		}
		far = far || n.Addr != "" && !loopback(n.Addr)
	}
	if len(versions) > 1 {
		var list []string
		for v, names := range versions {
			slices.Sort(names)
			list = append(list, fmt.Sprintf("%s on %s", v, strings.Join(names, ", ")))
		}
		slices.Sort(list)
		d.add("versions", Warn, "bring all to one version: muster restart --binary F on each, the leader last", "nodes run different versions: %s", strings.Join(list, "; "))
	}
	if f.SelfVersion != "" && d.f.Version != "" && f.SelfVersion != d.f.Version {
		d.add("binary", Warn, "muster restart", "the node here runs %s, and this program is %s", f.SelfVersion, d.f.Version)
	}
	if d.f.Folder.Listen != "" && loopback(d.f.Folder.Listen) && far {
		d.add("loopback", Error, "muster up --listen IP:PORT with an address that other machines reach (behind NAT: --advertise)", "this node listens on %s, where no other machine reaches it", d.f.Folder.Listen)
	}
}

func loopback(addr string) bool {
	return strings.HasPrefix(addr, "127.") || strings.HasPrefix(addr, "[::1]") || strings.HasPrefix(addr, "localhost")
}

func (d *diagnosis) peers() {
	voter := map[string]bool{}
	online := map[string]bool{}
	for _, n := range d.f.Fleet.Nodes {
		voter[n.ID], online[n.ID] = n.Voter, n.State == "online"
	}
	for _, p := range d.f.Fleet.Peers {
		severity := Warn
		if voter[p.ID] {
			severity = Error
		}
		switch {
		case p.Err != "" && online[p.ID]:
			d.add("unreachable", severity, "look at the network and the firewall between the two: one TCP and UDP port, that of --listen", "%s is up and does not answer this machine: %s", p.Name, p.Err)
			continue
		case p.Err != "":
			continue // it is away: said above when that matters
		case p.RTT > rttWarn && voter[p.ID] && !d.f.Fleet.Wan:
			d.add("latency", Warn, "start all voters with --timers wan", "%s, a voter, answers in %s: leaders change needlessly with the timers for machines beside each other", p.Name, p.RTT.Round(time.Millisecond))
		}
		off := p.ClockOff.Abs()
		switch {
		case off > clockError:
			d.add("clock", Error, "set both clocks by NTP; a machine more than a minute off does not lead", "the clocks of %s and this machine are %s apart", p.Name, off.Round(time.Second))
		case off > clockWarn:
			d.add("clock", Warn, "set both clocks by NTP", "the clocks of %s and this machine are %s apart", p.Name, off.Round(time.Second))
		}
	}
}

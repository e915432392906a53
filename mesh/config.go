package mesh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"time"
)

// Config is how a node reaches and is reached.
type Config struct {
	// Dir holds peers.json. Required.
	Dir string
	// Identity is this node's key. Required.
	Identity *Identity
	// Listen is the "ip:port" of the TCP listener and the UDP socket; port 0
	// takes a free one.
	Listen string
	// Advertise are the "host:port" addresses told to peers, best first. Empty:
	// the listening address, or this machine's addresses if it listens on all.
	Advertise []string
	// FleetID keeps fleets apart, in gossip and in every greeting. Required.
	FleetID string
	// Trust says whether a key is in the node list. Required; quick, and must
	// not call the mesh.
	Trust func(NodeID) bool
	// Handler answers the calls of peers. It may be called as soon as Open
	// listens. Required.
	Handler Handler
	// GossipKeys are the keys of the gossip packets (16, 24 or 32 bytes), the
	// one to encrypt with first. While there is none, there is no presence.
	GossipKeys func() [][]byte
	// About is what this node tells of itself in gossip. Optional.
	About func() About
	// Greeting is a text told to the peer in every handshake (at most 512
	// bytes), CheckGreeting says what is wrong with the peer's. Optional. The
	// wiring puts the era there.
	Greeting      func() string
	CheckGreeting func(peer NodeID, text string) error
	// Logger is where the mesh logs.
	Logger *slog.Logger

	// HandlersPerPeer bounds the calls of one peer that run at a time; as many
	// times QueuedPerHandler wait, more are answered busy.
	HandlersPerPeer int
	// KeepAlive is how long a stream may be silent before it is tested; after
	// twice as long without an answer it counts as lost.
	KeepAlive time.Duration
	// HandshakeTimeout ends a handshake, HandshakeLimit bounds those under way.
	HandshakeTimeout time.Duration
	HandshakeLimit   int
	// DoorLimit bounds the open connections of the door.
	DoorLimit int
	// ProbeInterval is the rhythm of gossip's probes.
	ProbeInterval time.Duration
}

// About is what a node tells about itself in gossip.
type About struct {
	Name       string // for people; at most 64 bytes are told
	API        string // address of its API; at most 128 bytes are told
	Generation uint64
}

// QueuedPerHandler is how many calls of a peer may wait for each that may run.
const QueuedPerHandler = 16

// DefaultConfig is a config with every value that has a sensible default.
func DefaultConfig() Config {
	return Config{
		Listen:           "0.0.0.0:7600",
		Logger:           slog.New(slog.DiscardHandler),
		HandlersPerPeer:  256,
		KeepAlive:        3 * time.Second,
		HandshakeTimeout: 5 * time.Second,
		HandshakeLimit:   256,
		DoorLimit:        1024,
		ProbeInterval:    time.Second,
	}
}

// Validate says what is missing or wrong.
func (c *Config) Validate() error {
	switch {
	case c.Dir == "":
		return errors.New("mesh: no data folder given")
	case c.Identity == nil:
		return errors.New("mesh: no identity given")
	case c.FleetID == "" || len(c.FleetID) > 128:
		return fmt.Errorf("mesh: fleet id %q: want 1 to 128 bytes", c.FleetID)
	case c.Trust == nil:
		return errors.New("mesh: no trust function given")
	case c.Handler == nil:
		return errors.New("mesh: no handler given")
	case c.Logger == nil:
		return errors.New("mesh: no logger given")
	case c.HandlersPerPeer < 1 || c.HandshakeLimit < 1 || c.DoorLimit < 1:
		return errors.New("mesh: HandlersPerPeer, HandshakeLimit and DoorLimit must be 1 or more")
	case c.KeepAlive <= 0 || c.HandshakeTimeout <= 0 || c.ProbeInterval <= 0:
		return errors.New("mesh: KeepAlive, HandshakeTimeout and ProbeInterval must be positive")
	}
	if _, _, err := net.SplitHostPort(c.Listen); err != nil {
		return fmt.Errorf("mesh: listen address %q: want ip:port: %w", c.Listen, err)
	}
	for _, a := range c.Advertise {
		if err := checkAddr(a); err != nil {
			return fmt.Errorf("mesh: advertise: %w", err)
		}
	}
	return nil
}

func (c *Config) greeting() string {
	if c.Greeting == nil {
		return ""
	}
	return c.Greeting()
}

func (c *Config) about() About {
	if c.About == nil {
		return About{}
	}
	return c.About()
}

// errStopped is the cause of contexts that end because the mesh closes.
var errStopped = fmt.Errorf("%w: %w", context.Canceled, ErrClosed)

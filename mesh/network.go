package mesh

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// The protocols on the one listener, as ALPN names. A client offers exactly one.
const (
	ALPNRaft   = "muster-raft/1"
	ALPNStream = "muster-stream/1"
	ALPNGossip = "muster-gossip/1"
	ALPNTerm   = "muster-term/1" // a terminal of the peer's machine, see cmd/muster/tty
	ALPNDoor   = "muster-door/1" // the only one open to keys outside the node list
)

// MaxFrame is the largest frame of a stream in bytes, its header included.
const MaxFrame = 16 << 20

// MaxBody is the largest body of a call or push in bytes.
const MaxBody = MaxFrame - 512

// The reasons a connection or call fails. They are told apart with errors.Is.
var (
	// ErrNotSent: the request was certainly not executed; trying elsewhere or
	// again is safe.
	ErrNotSent = errors.New("not sent")
	// ErrConnLost: the connection broke after the request was written: the
	// outcome is unknown.
	ErrConnLost = errors.New("connection lost, outcome unknown")
	// ErrRefused: one side does not trust the other's key, or its fleet differs.
	ErrRefused = errors.New("refused")
	// ErrNoAddress: no address of this node is known.
	ErrNoAddress = errors.New("no known address")
	// ErrClosed: this node's mesh is closed.
	ErrClosed = errors.New("mesh closed")
)

// Codes of RemoteError that the mesh itself makes.
const (
	CodeBusy     = "busy"     // the peer had no room: certainly not executed
	CodeInternal = "internal" // the handler panicked or returned an error without code
)

// RemoteError is what a peer's handler answered: a code for programs, a text
// for people. A handler returns one to choose the code that crosses the wire.
type RemoteError struct {
	Code string
	Text string
}

func (e *RemoteError) Error() string {
	if e.Text == "" {
		return e.Code
	}
	return e.Text
}

// Is makes a busy peer an ErrNotSent: it executed nothing.
func (e *RemoteError) Is(target error) bool {
	return target == ErrNotSent && e.Code == CodeBusy
}

// Ambiguous reports whether after err of Call nobody knows if the peer has
// executed the request. It is false for nil, for an answer of the peer and for
// what was certainly not sent.
func Ambiguous(err error) bool {
	if err == nil || errors.Is(err, ErrNotSent) {
		return false
	}
	var remote *RemoteError
	return !errors.As(err, &remote)
}

// notSent says what kept a request from being sent.
func notSent(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrNotSent, fmt.Errorf(format, args...))
}

// Handler answers the calls of peers. The peer is the one its key says. ctx ends
// when the caller gives up, its deadline passes or its connection is lost. The
// answer of a push is thrown away. Calls of one peer run concurrently and in no
// particular order. It may keep body.
type Handler func(ctx context.Context, peer NodeID, method string, body []byte) ([]byte, error)

// Network is what the rest of a node needs to talk to its peers. Node is the
// real one, meshtest has one in memory.
type Network interface {
	// Self is this node's id; calling it answers from its own handler.
	Self() NodeID
	// Call sends a request and waits for its answer. See Ambiguous for errors.
	// body must not be changed afterwards.
	Call(ctx context.Context, peer NodeID, method string, body []byte) ([]byte, error)
	// Push sends one way and never blocks; beyond a bound the oldest waiting
	// push of that peer is dropped and counted. body must not be changed.
	Push(peer NodeID, method string, body []byte)
	// Dial opens a connection to a peer for one protocol. It waits for the link
	// until ctx ends rather than failing fast (Raft backs off for long).
	Dial(ctx context.Context, peer NodeID, alpn string) (net.Conn, error)
	// RaftListener gives the Raft connections of trusted peers.
	RaftListener() net.Listener
	// TermListener gives the connections of trusted peers that ask for a terminal.
	TermListener() net.Listener
	// DoorListener gives connections of anybody, for an http.Server.
	DoorListener() net.Listener
}

// Directory is who is known and in reach.
type Directory interface {
	// SetPeer sets the addresses that the node list has for a peer.
	SetPeer(peer NodeID, addrs ...string)
	// Forget drops a peer and its addresses.
	Forget(peer NodeID)
	// Peers are the known peers in the order to try them: last reached first.
	Peers() []NodeID
	// Presence is what gossip says; a hint only.
	Presence() map[NodeID]Seen
	// Changed has room for one signal: presence differs from before.
	Changed() <-chan struct{}
	// Recheck asks Trust again about every open connection.
	Recheck()
	// Kick rejoins at once and tests open links (after wake, change of address).
	Kick()
}

// Presence states.
type State string

const (
	StateAlive   State = "alive"   // answers probes
	StateSuspect State = "suspect" // gossip has it alive, but it was not heard for a while
	StateDead    State = "dead"    // does not answer
	StateLeft    State = "left"    // said that it stops
)

// Seen is what gossip says about one node.
type Seen struct {
	Name       string
	Addr       string // where it was reached last, or what it says of itself; "ip:port"
	API        string
	Generation uint64
	State      State
	Since      time.Time // of State, on this machine's clock
}

// PeerOf is the peer of a connection of this package or of meshtest: the node
// its key says. On the door that node need not be trusted, and a client without
// a key has none.
func PeerOf(c net.Conn) (NodeID, bool) {
	switch c := c.(type) {
	case interface{ Peer() NodeID }:
		return c.Peer(), c.Peer() != ""
	case tlsStater:
		return peerOfState(c.ConnectionState())
	}
	return "", false
}

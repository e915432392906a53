package node

import (
	"context"
	"net"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/launcher"
	"muster/mesh"
	"muster/raftstore"
)

// Mesh is what a node uses of its mesh; *mesh.Node is one.
type Mesh interface {
	mesh.Network
	Addr() net.Addr
	Advertised() []string
	SetPeer(peer mesh.NodeID, addrs ...string)
	Learn(peer mesh.NodeID, addrs ...string)
	Peers() []mesh.NodeID
	Kick()
	Recheck()
	Close() error
}

// Seams stand in for what a node takes of its machine, so that whole fleets run in
// one process and in fake time (cmd/muster/sim). A nil one is the machine's own.
type Seams struct {
	Mesh   func(mesh.Config) (Mesh, error) // an open mesh; with one, no socket is opened and the doors are the mesh's
	Door   func(ctx context.Context, ident *mesh.Identity, addr string, want func(mesh.NodeID) error) (net.Conn, error)
	Store  func(*raftstore.Config) // its last word on how the store is opened
	Runner launcher.Runner         // who keeps the sessions
	Disk   func() (int64, error)   // bytes free where the data is
	Read   func(*board.Reading)    // its last word on what the machine says of itself
	Awake  func() time.Duration    // a clock that stands still in sleep, beside Config.Boot
}

// dialDoor asks at the door of another node.
func (n *Node) dialDoor(ctx context.Context, addr string, want func(mesh.NodeID) error) (net.Conn, error) {
	if n.cfg.Seams.Door != nil {
		return n.cfg.Seams.Door(ctx, n.ident, addr, want)
	}
	return mesh.DialDoor(ctx, n.ident, addr, want)
}

// newMesh opens the mesh.
func (n *Node) newMesh(c mesh.Config) (Mesh, error) {
	if n.cfg.Seams.Mesh != nil {
		return n.cfg.Seams.Mesh(c)
	}
	m, err := mesh.New(c)
	if err != nil {
		return nil, err
	}
	return m, m.Open()
}

// Backend is the node as its doors see it.
func (n *Node) Backend() api.Backend { return backend{n} }

// Unsent is how many reports of this node wait for an outcome.
func (n *Node) Unsent() int { return n.launch.Unsent() }

// Store is the node's store: what is checked of a fleet is read there.
func (n *Node) Store() *raftstore.Store { return n.store }

package node

import (
	"context"
	"errors"
	"fmt"

	"muster/mesh"
	"muster/raftstore"
	"muster/raftstore/logstore"
)

// identify finds out who this folder's node is, and that no other process is it already.
func (n *Node) identify(ctx context.Context) (err error) {
	if err = n.dir.intact(n.cfg.Token != ""); err != nil {
		return err
	}
	if n.mem, err = n.dir.load(); err != nil {
		return err
	}
	if err = errors.Join(n.readMirrors(), n.readOrgs()); err != nil {
		return err
	}
	if err = n.dir.takeRenewed(n.mem); err != nil {
		return err
	}
	if n.ident, err = mesh.LoadOrCreateIdentity(n.cfg.Data); err != nil {
		return err
	}
	if err = n.dir.belongs(n.mem, string(n.ident.ID)); err != nil {
		return err
	}
	n.mem.Node = string(n.ident.ID)
	return n.noTwin(ctx, n.mem.Listen)
}

// introduce decides what this start is: the first of a fleet, a join, or a return.
func (n *Node) introduce(ctx context.Context) (first bool, err error) {
	m := n.mem
	if m.Store == "" {
		m.Store = random(6)
	}
	if m.Start == "" {
		m.Start = random(9) // before the first contact, which carries it: see older
	}
	if n.cfg.Listen == "" {
		n.cfg.Listen = m.Listen
	}
	if n.cfg.Listen == "" {
		n.cfg.Listen = "127.0.0.1:0"
	}
	if m.Fleet != "" {
		if n.cfg.Token != "" {
			return false, n.rejoin(ctx)
		}
		return false, nil
	}
	if n.cfg.Token != "" {
		return false, n.join(ctx)
	}
	m.Fleet, m.Name, m.Replica = random(12), n.cfg.Name, n.cfg.Replica
	return true, nil
}

func (n *Node) openMesh() error {
	set := map[mesh.NodeID]bool{n.ident.ID: true}
	for _, p := range n.mem.Peers {
		set[mesh.NodeID(p.ID)] = true
	}
	n.trust.replace(set)
	if len(n.mem.Gossip) > 0 {
		n.gossip.Store(&n.mem.Gossip)
	}
	if n.mem.Era != "" && n.era.Load() == nil {
		era := n.mem.Era
		n.era.Store(&era)
	}
	c := mesh.DefaultConfig()
	c.Dir, c.Identity, c.Listen, c.FleetID, c.Logger = n.cfg.Data, n.ident, n.cfg.Listen, n.mem.Fleet, n.log
	if n.cfg.Advertise != "" {
		c.Advertise = []string{n.cfg.Advertise}
	}
	c.Trust, c.Handler = n.trust.has, n.handle
	c.GossipKeys = n.gossipKeys
	c.Greeting, c.CheckGreeting = n.greeting, n.checkGreeting
	c.About = func() mesh.About {
		n.memMu.Lock()
		defer n.memMu.Unlock()
		return mesh.About{Name: n.cfg.Name, Generation: n.mem.Generation}
	}
	m, err := n.newMesh(c)
	if err != nil {
		return err
	}
	n.mesh = m
	for _, p := range n.mem.Peers {
		n.mesh.SetPeer(mesh.NodeID(p.ID), p.Addrs...)
	}
	return n.remember(func(x *saved) { x.Listen = m.Addr().String() })
}

func (n *Node) openStore(ctx context.Context, first bool) error {
	n.lease = newLeading(n)
	copied, err := n.moved(ctx)
	if err != nil {
		return err
	}
	if n.mem.Refetch != "" {
		if err := n.refetch(n.mem.Refetch); err != nil {
			return err
		}
		copied = ""
	}
	if n.mem.Rebuild != "" {
		if err := n.rebuild(n.mem.Rebuild); err != nil {
			return err
		}
	}
	open := func() (*raftstore.Store, error) {
		c := n.storeConfig()
		c.Copied = copied != ""
		return raftstore.Open(c)
	}
	s, err := open()
	if lost(err) {
		if err := n.startOver(err); err != nil {
			return err
		}
		copied = ""
		s, err = open()
	}
	if err != nil {
		return err
	}
	n.store = s
	if copied != "" {
		n.warn("the data folder of %s was copied or put back (%s); it is the fleet's only voter, so it goes on with what is in it: what was acknowledged after that copy was made is lost", n.cfg.Name, copied)
	}
	if first {
		if err := s.Bootstrap(); err != nil {
			return err
		}
	}
	p, err := settle(n.dir.path("raft"), n.mem.Store)
	if err != nil {
		n.log.Warn("a copy of this data folder could not be told from the folder itself", "err", err) // its generation still tells
	}
	return n.remember(func(m *saved) { m.Stored, m.Place = true, p })
}

// startOver takes a new store id after log or vote were lost, with the mesh opened anew.
func (n *Node) startOver(cause error) error {
	if len(n.mesh.Peers()) == 0 {
		return fmt.Errorf("%w; no other node of the fleet is known, so nobody has what is lost here: "+
			"only if this node is the whole fleet may its folder be put back from a copy, all of it (%s); else join again with an empty folder", cause, n.cfg.Data)
	}
	n.log.Error("this node must not vote with what it has: it rejoins under a new store id", "err", cause)
	if err := n.refetch(cause.Error()); err != nil {
		return err
	}
	_ = n.mesh.Close() // the store has closed the listener that it was given
	n.cfg.Listen = n.mem.Listen
	return n.openMesh()
}

// lost tells that this store may not vote any more, or has no state to serve: its
// node comes back under a new store id (M-32). Nobody votes with lost state.
func lost(err error) bool {
	for _, e := range []error{raftstore.ErrCopied, raftstore.ErrNoRebuild, raftstore.ErrLogBehind, raftstore.ErrOtherEra, logstore.ErrDamaged, logstore.ErrMissing} {
		if errors.Is(err, e) {
			return true
		}
	}
	return false
}

// refetch sets state and log aside and takes a new store id. Node id, key and
// sessions stay.
func (n *Node) refetch(why string) error {
	to, err := n.dir.setAside()
	if err != nil {
		return fmt.Errorf("set the old state aside: %w", err)
	}
	to = orElse(to, "no folder")
	n.cfg.Progress(fmt.Sprintf("fetching the state anew (%s); the old one is kept in %s", why, to))
	n.warn("%s gave up its vote and rejoins under a new store id: %s; its old state and log are kept in %s", n.cfg.Name, why, to)
	return n.remember(func(m *saved) {
		m.Store, m.Refetch, m.Rebuild, m.Odd, m.Stored, m.Place, m.Era = random(6), "", "", false, false, nil, ""
		n.era.Store(nil) // that of the state that comes is not known yet
	})
}

// rebuild sets the state aside, and nothing else: log and vote are good, so the
// node stays the voter that it was (M-32).
func (n *Node) rebuild(why string) error {
	if err := raftstore.SetAside(n.dir.path("raft")); err != nil {
		return fmt.Errorf("set the old state aside: %w", err)
	}
	n.cfg.Progress(fmt.Sprintf("making the state anew from snapshot and log (%s); the old one is kept in %s", why, n.dir.path("raft")))
	return n.remember(func(m *saved) { m.Rebuild, m.Odd = "", true })
}

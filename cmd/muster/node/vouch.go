package node

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"muster/board"
	"muster/mesh"
)

// A session that is on another machine than the one a person asks at (M-19): its own node vouches for it, to the leader,
// which asks it in one hop. So nobody's word is taken for a machine but that machine's.

// vouchWait bounds how long the machine of a session may take to look at it.
const vouchWait = 4 * time.Second

// vouchMsg asks a node to look at a session and speak for it.
type vouchMsg struct {
	Adopt board.Adopt `json:"adopt"`
}

// vouchHere is this machine's word for a session that a person here wants attached; nil when it is another machine's,
// which the leader asks.
func (n *Node) vouchHere(a board.Adopt) (*board.Vouch, *board.Error) {
	if where, err := n.machineOf(a.Machine); err != nil || where != "" && where != string(n.ident.ID) {
		return nil, err
	}
	return n.launch.Vouch(a)
}

// machineOf is the node that a person calls by a name; "" for none.
func (n *Node) machineOf(name string) (id string, err *board.Error) {
	if name == "" {
		return "", nil
	}
	_ = n.store.View(func(v board.View) error {
		var x *board.Node
		if x, err = board.FindNode(v, name); err == nil {
			id = x.ID
		}
		return nil
	})
	return id, err
}

// askVouch has the word of a named machine put to a request that wants its session, as the leader. What the sender
// brought counts for the sender's own machine only.
func (n *Node) askVouch(ctx context.Context, req *board.Request) *board.Error {
	var a board.Adopt
	if req.Verb != board.VAdopt || json.Unmarshal(req.Args, &a) != nil || a.Machine == "" {
		return nil
	}
	where, err := n.machineOf(a.Machine)
	if err != nil || where == req.Actor.Node && req.Vouch != nil {
		return err
	}
	req.Vouch = nil
	done := false
	_ = n.store.View(func(v board.View) error {
		if done = req.ID != "" && board.GetDone(v, req.ID) != nil; !done { // else the executor tells what became of it
			err = board.MayAdopt(v, req, n.store.BoardTime())
		}
		return nil
	})
	if done || err != nil {
		return err
	}
	req.Vouch, err = n.vouchOf(ctx, where, a)
	return err
}

// vouchOf asks a machine for its word.
func (n *Node) vouchOf(ctx context.Context, where string, a board.Adopt) (*board.Vouch, *board.Error) {
	if where == string(n.ident.ID) {
		return n.vouchAfar(a)
	}
	b, err := json.Marshal(vouchMsg{Adopt: a})
	if err != nil {
		return nil, board.Errorf(board.Internal, "%v", err)
	}
	ctx, cancel := context.WithTimeout(ctx, vouchWait)
	defer cancel()
	ans, err := n.mesh.Call(ctx, mesh.NodeID(where), "vouch", b)
	var remote *mesh.RemoteError
	v := new(board.Vouch)
	switch {
	case err == nil && json.Unmarshal(ans, v) == nil && v.Node == where:
		return v, nil
	case errors.As(err, &remote) && remote.Code != mesh.CodeBusy && !errors.Is(err, mesh.ErrNotSent):
		return nil, board.Errorf(board.Code(remote.Code), "%s", remote.Text).WithCheck("vouch")
	}
	return nil, board.Errorf(board.Unavailable, "%s, which has the session, does not answer: nothing was done", a.Machine).WithCheck("no_machine").
		WithHint("see: muster status; or ask on that machine: muster adopt %s --session %s", a.Card, a.Session)
}

// vouchFor answers a leader: only who may lead asks.
func (n *Node) vouchFor(peer mesh.NodeID, m vouchMsg) (*board.Vouch, error) {
	if !n.votes(peer) {
		return nil, board.Errorf(board.Refused, "only the leader asks for this machine's word").WithCheck(board.CheckSpeaker)
	}
	v, err := n.vouchAfar(m.Adopt)
	if err != nil {
		return nil, err
	}
	return v, nil
}

// vouchAfar is this machine's word for a session that somebody elsewhere wants, within what its owner lets others do
// with its terminals.
func (n *Node) vouchAfar(a board.Adopt) (*board.Vouch, *board.Error) {
	own, err := n.own()
	if err != nil {
		return nil, board.Errorf(board.Refused, "%s takes nothing: its node.yaml cannot be read: %v", n.cfg.Name, err)
	}
	if own.Attach != "" && own.Attach != attachWrite {
		return nil, board.Errorf(board.Refused, "%s lets nobody elsewhere take its sessions: its node.yaml says attach: %s", n.cfg.Name, own.Attach).
			WithHint("ask on that machine: muster adopt %s --session %s", a.Card, a.Session)
	}
	return n.launch.Vouch(a)
}

package node

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"muster/board"
	"muster/board/lease"
	"muster/mesh"
	"muster/raftstore"
	"muster/scheduler"
)

// checkNotLeader is the check of an answer that only says: not here, and
// certainly not executed.
const checkNotLeader = raftstore.CheckNotLeader

// Do has a request executed by the leader, here or in one hop, and answers once.
// It goes on, under the same id, until ctx ends: every copy after one without an
// answer is marked as a retry, and only the last copy's answer counts. When ctx
// ends after a copy went out that nobody answered, the outcome is unknown.
func (n *Node) Do(ctx context.Context, req board.Request) board.Result {
	if unnamed(&req) {
		return board.Result{Err: board.Errorf(board.Unavailable, "%s has nothing of the fleet's state yet, and cannot give this request an id: nothing was done", n.cfg.Name).
			WithCheck("no_state").WithHint("ask again in a moment, or another node")}
	}
	open := false // a copy is out whose outcome nobody told
	for !n.full.Load() {
		lead := n.leadership()
		res, sent := n.once(ctx, lead, &req)
		if sent == outcomeKnown && (!open || res.Err == nil || res.Err.Code != board.Unavailable) { // unavailable speaks for its own copy only
			n.tell(res.Seq)
			return res
		}
		if sent == outcomeOpen {
			open, req.Retry = true, true
		}
		if n.wait(ctx, lead.Done()) != nil {
			break
		}
	}
	if open {
		return board.Result{Err: board.Errorf(board.UnknownOutcome, "no answer in time: it may or may not have been done").
			WithHint("ask again with: --request-id %s", req.ID)}
	}
	return board.Result{Err: n.noLeader()}
}

// unnamed tells of a request that nothing would know again: sent twice, for a lost answer, it would be executed twice.
// What the fleet and its nodes ask for without an id, the state guards.
func unnamed(req *board.Request) bool {
	person := req.Actor.Kind == board.ActorPerson || req.Actor.Kind == board.ActorRun || req.Verb == board.VNodeJoin
	return req.ID == "" && req.Journal == "" && person && req.Verb != board.VBarrier
}

// noLeader says why nothing can be written now (M-34).
func (n *Node) noLeader() *board.Error {
	if n.full.Load() {
		return n.noRoom()
	}
	return board.Errorf(board.Unavailable, "no leader is reachable: nothing can start, move or get a verdict; running sessions go on under their lease").
		WithCheck("no_leader").WithHint("see: muster status")
}

type outcome int

const (
	outcomeNone  outcome = iota // certainly not executed: try again
	outcomeOpen                 // it may have been
	outcomeKnown                // this is the answer
)

// once sends one copy of a request to who leads now; it waits no longer for the
// answer of one who does not lead any more.
func (n *Node) once(ctx, lead context.Context, req *board.Request) (board.Result, outcome) {
	if n.leads() {
		return classify(n.lead(ctx, *req))
	}
	peer := n.leaderNode()
	if peer == "" || peer == string(n.ident.ID) {
		return board.Result{}, outcomeNone
	}
	hop, cancel := under(ctx, lead, hopTimeout)
	defer cancel()
	ans, err := n.mesh.Call(hop, mesh.NodeID(peer), "do", board.EncodeRequest(req))
	var remote *mesh.RemoteError
	switch {
	case err == nil:
		res, err := board.DecodeResult(ans)
		if err != nil {
			return res, outcomeOpen
		}
		return classify(res)
	case mesh.Ambiguous(err):
		return board.Result{}, outcomeOpen
	case errors.As(err, &remote) && !errors.Is(err, mesh.ErrNotSent):
		return board.Result{}, outcomeOpen
	}
	return board.Result{}, outcomeNone
}

// classify reads what an answer says of its own copy.
func classify(res board.Result) (board.Result, outcome) {
	switch {
	case res.Err == nil:
		return res, outcomeKnown
	case res.Err.Check == checkNotLeader:
		return res, outcomeNone
	case res.Err.Code == board.UnknownOutcome && res.Err.Check != board.CheckBelow:
		return res, outcomeOpen
	}
	return res, outcomeKnown
}

// wait lets a retry wait for a new leader, or a little while: after a leader
// change it goes on at once.
func (n *Node) wait(ctx context.Context, changed <-chan struct{}) error {
	t := time.NewTimer(100 * time.Millisecond)
	defer t.Stop()
	select {
	case <-changed:
	case <-t.C:
	case <-n.ctx.Done():
		return n.ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
	return nil
}

// lead executes a request as the leader. What only the leader may say of a
// request is put right here, for requests of its own doors and of peers alike.
func (n *Node) lead(ctx context.Context, req board.Request) board.Result {
	if err := n.mayLead(&req); err != nil {
		return board.Result{Err: err}
	}
	if req.Verb == board.VNodeRemove {
		n.votersHeard(ctx)
		if _, ok := n.store.LeaderTerm(); !ok {
			return board.Result{Err: board.Errorf(board.Unavailable, "%s does not lead", n.cfg.Name).WithCheck(checkNotLeader)}
		}
		if n.removesSelf(req.Args) {
			return n.leadsNoMore(ctx, req)
		}
	}
	if req.Verb == board.VStart && req.Actor.Kind != board.ActorPlatform {
		req.Place = ""
		var err *board.Error
		_ = n.store.View(func(v board.View) error {
			if req.ID != "" && board.GetDone(v, req.ID) != nil {
				return nil // it was done or refused before: the executor tells
			}
			err = scheduler.Prepare(v, n.flows, n.lease.State, n.store.BoardTime(), &req)
			return nil
		})
		if err != nil && !req.Retry { // a retry's refusal is the executor's: it writes it under the id, so that no slower copy succeeds
			return board.Result{Err: err}
		}
	}
	if err := n.askVouch(ctx, &req); err != nil && !req.Retry {
		return board.Result{Err: err}
	}
	return n.store.Do(ctx, &req)
}

// mayLead refuses what an alarm or a full disk holds up.
func (n *Node) mayLead(req *board.Request) *board.Error {
	if err := n.tooNew(); err != nil {
		return err
	}
	if alarm := n.lease.alarmed(); alarm != "" && req.Verb != board.VBarrier {
		return board.Errorf(board.Unavailable, "%s", alarm).WithCheck("diverged").WithHint("see: muster status")
	}
	if err := n.room(req); err != nil && !req.Retry { // a retry may have been done before: the executor tells
		return err
	}
	return nil
}

// votersHeard waits until of every voter it is known whether it is here: a term knows of nobody when it begins, and a removal
// is held against who is left. No node is unknown for longer than its silence takes to be a verdict.
func (n *Node) votersHeard(ctx context.Context) {
	for ctx.Err() == nil && n.leads() {
		open := false
		_ = n.store.View(func(v board.View) error {
			board.EachNode(v, func(x *board.Node) bool {
				open = open || x.Role == board.RoleVoter && n.lease.State(x.ID).State == lease.Unknown.String()
				return !open
			})
			return nil
		})
		if !open || n.wait(ctx, n.leadership().Done()) != nil {
			return
		}
	}
}

// leadsNoMore hands leadership over before this node's own removal, which the next leader then executes: who leads cannot
// take itself out, since at the commit the others would hang up on their leader. What would be refused, for who asks or for
// what it would lose, is refused here, and nobody's lead ends for it.
func (n *Node) leadsNoMore(ctx context.Context, req board.Request) (res board.Result) {
	_ = n.store.View(func(v board.View) error {
		_, res = board.Exec(v, &req, &board.Env{Now: n.store.BoardTime(), Seq: v.Seq() + 1, Nodes: n.lease.State, Workflows: n.flows})
		return nil
	})
	if res.Err != nil {
		return res
	}
	ctx, cancel := context.WithTimeout(ctx, hopTimeout)
	defer cancel()
	if err := n.store.Transfer(ctx); err != nil {
		return board.Result{Err: board.Errorf(board.Refused, "%s leads the fleet, and no other took that over (%v): it cannot take itself out of it", n.cfg.Name, err).
			WithHint("see muster status; when other voters are here: muster node demote %s", n.cfg.Name)}
	}
	return board.Result{Err: board.Errorf(board.Unavailable, "another leads now").WithCheck(checkNotLeader)}
}

// removesSelf tells that a removal is of this node: at its commit the others would hang up on their leader.
func (n *Node) removesSelf(args []byte) bool {
	var a board.NodeRemove
	if json.Unmarshal(args, &a) != nil {
		return false
	}
	self := false
	_ = n.store.View(func(v board.View) error {
		x, err := board.FindNode(v, a.Node)
		self = err == nil && x.ID == string(n.ident.ID)
		return nil
	})
	return self
}

// fromPeer takes a request that a peer forwards: it is never passed on again,
// and what it says of its sender is held against who the peer is.
func (n *Node) fromPeer(ctx context.Context, peer mesh.NodeID, body []byte) ([]byte, error) {
	req, err := board.DecodeRequest(body)
	if err != nil {
		return nil, &mesh.RemoteError{Code: string(board.Invalid), Text: err.Error()}
	}
	req.Place = ""
	switch {
	case req.Actor.Kind == board.ActorPlatform:
		err := board.Errorf(board.Refused, "only the leader speaks for the fleet").WithCheck(board.CheckSpeaker)
		n.deny("node "+string(peer), err)
		return board.EncodeResult(board.Result{Err: err}), nil
	case req.Verb == board.VNodeJoin:
		var a board.NodeJoin
		if json.Unmarshal(req.Args, &a) != nil || string(mesh.IDOfKey(a.Node.Key)) != a.Node.ID {
			return board.EncodeResult(board.Result{Err: board.Errorf(board.Refused, "a joining node's id is the hash of its key")}), nil
		}
		req.Actor.Node = a.Node.ID
	default:
		req.Actor.Node = string(peer)
	}
	if !n.leads() {
		return board.EncodeResult(board.Result{Err: board.Errorf(board.Unavailable, "%s does not lead", n.cfg.Name).WithCheck(checkNotLeader)}), nil
	}
	res := n.lead(ctx, req)
	n.deny("node "+string(peer), res.Err)
	return board.EncodeResult(res), nil
}

// MintID makes a request id: its Seq is the highest this node has applied or was told.
func (n *Node) MintID() string {
	era := n.greeting() // the state's, as it was last read: a request does not read it again
	if era == "" {
		_ = n.store.View(func(v board.View) error {
			if f := board.GetFleet(v); f != nil {
				era = f.EraText()
			}
			return nil
		})
	}
	if era == "" {
		return ""
	}
	_, seq := n.store.Applied()
	return board.ReqIDIn(era, max(seq, n.told.Load()), random(12))
}

// tell remembers the highest Seq that this node has answered to anybody: its
// reads wait for it (M-31).
func (n *Node) tell(seq uint64) {
	for {
		old := n.told.Load()
		if seq <= old || n.told.CompareAndSwap(old, seq) {
			return
		}
	}
}

package node

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"slices"
	"strconv"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/mesh"
	"muster/raftstore"
	"muster/scheduler"
)

// backend is the node as its doors see it.
type backend struct{ n *Node }

var _ api.Backend = backend{}

func (b backend) Do(ctx context.Context, req board.Request) board.Result { return b.n.Do(ctx, req) }

func (b backend) SessionSay(ctx context.Context, run, secret string, req board.Request) board.Result {
	return b.n.launch.SessionSay(ctx, run, secret, req)
}

func (b backend) Vouch(a board.Adopt) (*board.Vouch, *board.Error) { return b.n.vouchHere(a) }

func (b backend) MintID() string { return b.n.MintID() }

func (b backend) Read(ctx context.Context, consistent bool, fn func(board.View) error) (api.Fresh, error) {
	n := b.n
	want := n.told.Load()
	if consistent {
		res := n.Do(ctx, board.Request{Actor: board.Actor{Kind: board.ActorPerson, Name: n.cfg.Name, Node: string(n.ident.ID)}, Verb: board.VBarrier})
		if res.Err != nil {
			return api.Fresh{}, res.Err
		}
		want = max(want, res.Seq)
		if err := n.store.WaitSeq(ctx, want); err != nil {
			return api.Fresh{}, board.Errorf(board.Unavailable, "this node has not caught up in time").WithHint("see: muster status")
		}
	} else if _, seq := n.store.Applied(); seq < want {
		wait, cancel := context.WithTimeout(ctx, n.cfg.readWait)
		_ = n.store.WaitSeq(wait, want) // what it has is shown with its age
		cancel()
	}
	f := api.Fresh{Age: -1}
	if age, ok := n.Clock().Age(n.now()); ok {
		f.Age = age
	}
	err := n.store.View(func(v board.View) error {
		f.Index = v.Seq()
		return fn(v)
	})
	return f, err
}

func (b backend) Readings(ctx context.Context) api.Readings {
	n := b.n
	var ans readingsAns
	leader := n.leaderNode()
	live := false
	switch {
	case leader == string(n.ident.ID):
		_, live = n.store.LeaderTerm()
		ans = n.liveReadings()
	case leader != "":
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		live = n.call(ctx, leader, "readings", nil, &ans) == nil
	}
	own := n.reading() // as it is now, whoever leads; what the leader heard may be seconds old
	if r := ans.Nodes[string(n.ident.ID)]; live && r.State != "" {
		own.State, own.AgeMS = r.State, r.AgeMS
		ans.Nodes[string(n.ident.ID)] = own
	} else if !live { // of the others nothing is concluded (M-31); this one is here
		own.State = board.NodeOnline
		ans.Nodes = map[string]board.Reading{string(n.ident.ID): own}
	}
	for _, a := range n.ownAlarms() {
		if !slices.Contains(ans.Alarms, a) {
			ans.Alarms = append(ans.Alarms, a)
		}
	}
	out := ""
	if text := n.removed.Load(); text != nil {
		out = *text
	}
	return api.Readings{Nodes: ans.Nodes, Leader: leader, Term: n.store.Term(), Live: live, Alarms: ans.Alarms, Removed: out}
}

// Why is answered by the leader, with its readings; without one from this node's state (M-31).
func (b backend) Why(ctx context.Context, card string) (any, error) {
	n := b.n
	if leader := n.leaderNode(); leader != "" && leader != string(n.ident.ID) {
		var ans json.RawMessage
		ctx, cancel := context.WithTimeout(ctx, callTimeout)
		defer cancel()
		err := n.call(ctx, leader, "why", card, &ans)
		if err == nil {
			return ans, nil
		}
		if e := remote(err); e != nil {
			return nil, e
		}
	}
	return n.why(card)
}

// remote is the domain's error that a peer's handler answered, nil for trouble of the way.
func remote(err error) *board.Error {
	var r *mesh.RemoteError
	if !errors.As(err, &r) || errors.Is(err, mesh.ErrNotSent) || r.Code == mesh.CodeInternal {
		return nil
	}
	return board.Errorf(board.Code(r.Code), "%s", r.Text)
}

func (n *Node) why(card string) (any, error) {
	_, live := n.store.LeaderTerm()
	var a *scheduler.WhyAnswer
	err := n.store.View(func(v board.View) error {
		var err *board.Error
		a, err = scheduler.Why(n.planInput(v), card, live)
		if err != nil {
			return err
		}
		return nil
	})
	if err != nil {
		var e *board.Error
		if errors.As(err, &e) {
			return nil, &mesh.RemoteError{Code: string(e.Code), Text: e.Message}
		}
		return nil, err
	}
	return a, nil
}

// boardNow is the board time as far as this node knows it.
func (n *Node) boardNow() int64 {
	if _, ok := n.store.LeaderTerm(); ok {
		return n.store.BoardTime()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.heardTime
}

func (b backend) Rounds(ctx context.Context, k int) (any, error) {
	n := b.n
	leader := n.leaderNode()
	if leader == "" {
		return nil, n.noLeader()
	}
	if leader == string(n.ident.ID) {
		return n.rounds(k)
	}
	var ans json.RawMessage
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	if err := n.call(ctx, leader, "rounds", k, &ans); err != nil {
		return nil, board.Errorf(board.Unavailable, "the leader did not answer: %v", err)
	}
	return ans, nil
}

func (n *Node) rounds(k int) (any, error) {
	loop := n.lease.loop()
	if loop == nil {
		return nil, &mesh.RemoteError{Code: checkNotLeader, Text: "not leading"}
	}
	list := loop.Rounds(k)
	_ = n.store.View(func(v board.View) error { // people read names
		for i := range list {
			list[i].Started = slices.Clone(list[i].Started)
			for j := range list[i].Started {
				if x := board.GetNode(v, list[i].Started[j].Machine); x != nil {
					list[i].Started[j].Machine = x.Name
				}
			}
		}
		return nil
	})
	return list, nil
}

func (b backend) Subscribe(filter func(board.Table, string) bool) api.Sub {
	return doorSub{feedSub{b.n.store.Subscribe(filter)}}
}

// doorSub is a subscription as doors take it.
type doorSub struct{ feedSub }

// Take implements api.Taker.
func (d doorSub) Take() ([]api.Change, bool) {
	keys, all := d.s.Take()
	out := make([]api.Change, len(keys))
	for i, k := range keys {
		out[i] = api.Change(k)
	}
	return out, all
}

type feedSub struct{ s *raftstore.Sub }

func (f feedSub) C() <-chan struct{} { return f.s.C }
func (f feedSub) Close()             { f.s.Close() }

// Take implements scheduler.Feed.
func (f feedSub) Take() ([]scheduler.Key, bool) {
	keys, all := f.s.Take()
	out := make([]scheduler.Key, len(keys))
	for i, k := range keys {
		out[i] = scheduler.Key(k)
	}
	return out, all
}

// ReadLog reads a run's log on the node that has it.
func (b backend) ReadLog(ctx context.Context, run string, from int64, most int, wait bool) (api.LogChunk, error) {
	n := b.n
	var where, name string
	err := n.store.View(func(v board.View) error {
		r := board.GetRun(v, run)
		if r == nil {
			return board.Errorf(board.NotFound, "no run %q", run).WithHint("see: muster runs CARD")
		}
		where = r.Node
		at := board.GetNode(v, where)
		if at == nil {
			return board.Errorf(board.NotFound, "the log of run %s is on the machine that ran it, which is not in the fleet's list: it was removed, or the fleet was restored from a backup", run).
				WithHint("it is in that machine's data folder, under runs/%s, if it is anywhere", run)
		}
		name = at.Name
		return nil
	})
	if err != nil {
		return api.LogChunk{}, err
	}
	m := logMsg{Run: run, From: from, Max: most, Wait: wait}
	if where == string(n.ident.ID) {
		a, err := n.readLog(ctx, m)
		if err != nil {
			return api.LogChunk{}, err
		}
		return api.LogChunk(*a), nil
	}
	var a logAns
	if err := n.call(ctx, where, "log", m, &a); err != nil {
		var said *mesh.RemoteError
		switch e := remote(err); {
		case e != nil && e.Code == board.NotFound:
			return api.LogChunk{}, e.WithHint("a machine keeps the logs of its newest runs; see: muster runs %s", board.CardOfRun(run))
		case e != nil:
			return api.LogChunk{}, e
		case errors.As(err, &said) && said.Code == mesh.CodeInternal: // it answers, and that is what it says
			return api.LogChunk{}, board.Errorf(board.Internal, "log of run %s: %s", run, said.Text)
		}
		return api.LogChunk{}, board.Errorf(board.Unavailable, "run %s is on %s, which does not answer: %v", run, name, err).WithHint("see: muster status")
	}
	return api.LogChunk(a), nil
}

func (b backend) Info() api.Info {
	n := b.n
	addr := ""
	if a := n.addrs(); len(a) > 0 {
		addr = a[0]
	}
	return api.Info{ID: string(n.ident.ID), Name: n.cfg.Name, Fleet: n.mem.Fleet, Data: n.cfg.Data, Addr: addr, Version: n.cfg.Version, PID: os.Getpid(), Started: n.begun.UTC()}
}

func (b backend) Self() (id, name string) { return string(b.n.ident.ID), b.n.cfg.Name }

func (b backend) Hash() string {
	seq, h := b.n.store.SeqHash()
	return hex.EncodeToString(h[:]) + "@" + strconv.FormatUint(seq, 10)
}

// NewToken makes a token: its secret is in the string that people copy, and only its hash in the state.
func (b backend) NewToken(ctx context.Context, actor board.Actor, o api.TokenOptions) (api.TokenAnswer, *board.Error) {
	n := b.n
	secret := random(24)
	args, err := json.Marshal(board.TokenCreate{ID: board.HashSecret(secret), Role: o.Role, Local: o.Local, TTL: o.TTL, Uses: o.Uses, Name: o.Name, Board: o.Board})
	if err != nil {
		return api.TokenAnswer{}, board.Errorf(board.Internal, "token: %v", err)
	}
	res := n.Do(ctx, board.Request{ID: n.MintID(), Actor: actor, Secret: o.Secret, Verb: board.VTokenCreate, Args: args})
	if res.Err != nil {
		return api.TokenAnswer{}, res.Err
	}
	var ans struct {
		ID      string `json:"id"`
		Expires int64  `json:"expires"`
	}
	_ = json.Unmarshal(res.Data, &ans)
	nodes := n.nodeList()
	t := Token{Fleet: n.mem.Fleet, Nodes: nodes[:min(len(nodes), 5)], Secret: secret, Role: o.Role, Expires: ans.Expires}
	return api.TokenAnswer{Token: t.String(), ID: ans.ID, Expires: time.UnixMilli(ans.Expires).UTC()}, nil
}

// Stop ends the node soon after its answer has left.
func (b backend) Stop(restart bool) {
	b.n.again.Store(restart)
	b.n.spawn(func() {
		select {
		case <-time.After(100 * time.Millisecond): // the answer to who asked goes out first
		case <-b.n.ctx.Done():
		}
		b.n.cancel(errClosed)
	})
	time.AfterFunc(100*time.Millisecond, func() { b.n.ask.Do(func() { close(b.n.asked) }) }) // one that acts no more still listens
}

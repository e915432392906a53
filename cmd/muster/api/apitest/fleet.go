package apitest

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/scheduler"
)

// Begin is the board time at which every Fleet is made.
var Begin = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

// Fleet is a fleet with one node, `atlas`, that leads.
type Fleet struct {
	mu     sync.Mutex
	view   *board.MemView
	flows  *board.Workflows
	now    int64
	minted int
	starts int
	subs   map[*sub]bool
	logs   map[string]*runLog
	said   []board.Request
	asked  []board.Request

	// What a test may set before it asks.
	NoLeader bool              // nothing is written; asking takes as long as it may
	Fail     *board.Error      // what every request is answered with, undone
	Local    string            // id of the node that answers
	Stopped  chan bool         // told by Stop, whether it shall start again
	Secrets  map[string]string // secrets of runs
	RoundLog []scheduler.Round
}

// Node is the id of the fleet's first node.
const Node = "nodeatlasnodeatlasnodeatlasnodea"

// New makes a fleet; it panics when the executor refuses that.
func New() *Fleet {
	f := &Fleet{view: board.NewMemView(), flows: board.NewWorkflows(), now: Begin.UnixMilli(), subs: map[*sub]bool{}, logs: map[string]*runLog{},
		Local: Node, Stopped: make(chan bool, 1), Secrets: map[string]string{}}
	f.Must(board.Platform(), board.VFleetInit, board.FleetInit{ID: "fleet0", Name: "fleet", EraTag: "era", Node: board.NodeUp{
		ID: Node, Name: "atlas", Addrs: []string{"192.0.2.1:7100"}, Slots: 4, Labels: map[string]string{"gpu": "no"}, Tools: []string{"git", "go"}, Harnesses: []string{"command"},
		OS: "linux", Arch: "amd64", Version: "test", MemoryMB: 8192}})
	return f
}

// Manager is a person at atlas.
func Manager() board.Actor {
	return board.Actor{Kind: board.ActorPerson, Name: "ann@atlas", Node: Node}
}

// Must executes a request and panics when it is refused.
func (f *Fleet) Must(actor board.Actor, verb string, args any) map[string]any {
	raw, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	res := f.exec(board.Request{ID: f.MintID(), Actor: actor, Verb: verb, Args: raw})
	if res.Err != nil {
		panic(fmt.Sprintf("%s: %s (%s)", verb, res.Err.Message, res.Err.Code))
	}
	out := map[string]any{}
	_ = json.Unmarshal(res.Data, &out)
	return out
}

// Pass moves the time on.
func (f *Fleet) Pass(d time.Duration) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.now += d.Milliseconds()
}

// Now is the board time.
func (f *Fleet) Now() time.Time {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.UnixMilli(f.now)
}

// Run starts a card on atlas, reports its launch under a secret, and returns the run's id.
func (f *Fleet) Run(card, secret string) string {
	run := f.Claim(card, secret)
	f.Launch(run)
	return run
}

// Claim starts a card on atlas; nothing is reported yet.
func (f *Fleet) Claim(card, secret string) string {
	out := f.Must(board.Platform(), board.VStart, board.Start{Card: card, Node: Node})
	run, _ := out["run"].(string)
	f.mu.Lock()
	f.Secrets[run] = secret
	f.mu.Unlock()
	return run
}

// Launch reports that a claimed run's session is there.
func (f *Fleet) Launch(run string) {
	var order, secret string
	f.read(func(v board.View) { order, secret = board.GetRun(v, run).Order, f.Secrets[run] })
	for _, kind := range []string{board.ReportTaken, board.ReportLaunched} {
		f.report(board.Report{Kind: kind, Run: run, Order: order, PID: 4711, SecretHash: sha(secret)})
	}
}

// Exit reports the end of a run's session.
func (f *Fleet) Exit(run string, code int64) {
	f.report(board.Report{Kind: board.ReportExited, Run: run, Code: &code})
}

func (f *Fleet) report(r board.Report) {
	f.mu.Lock()
	f.minted++
	n := uint64(f.minted)
	f.mu.Unlock()
	raw, err := json.Marshal(r)
	if err != nil {
		panic(err)
	}
	res := f.exec(board.Request{Actor: board.Actor{Kind: board.ActorNode, Name: "atlas", Node: Node}, Verb: board.VReport, Args: raw, Journal: "journal", Number: n})
	if res.Err != nil {
		panic(fmt.Sprintf("report %s: %s", r.Kind, res.Err.Message))
	}
}

func sha(s string) []byte {
	h := sha256.Sum256([]byte(s))
	return h[:]
}

func (f *Fleet) read(fn func(board.View)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn(f.view)
}

// exec is the executor: one request at a time.
func (f *Fleet) exec(req board.Request) board.Result {
	f.mu.Lock()
	defer f.mu.Unlock()
	env := &board.Env{Now: f.now, Seq: f.view.Seq() + 1, Nodes: f.reading, Workflows: f.flows}
	if req.Verb == board.VStart && req.Actor.Kind != board.ActorPlatform {
		if err := scheduler.Prepare(f.view, f.flows, f.reading, f.now, &req); err != nil {
			return board.Result{Seq: f.view.Seq(), Err: err}
		}
	}
	txn, res := board.Exec(f.view, &req, env)
	if !txn.Empty() {
		f.view.Apply(&txn)
		for s := range f.subs {
			s.tell(&txn)
		}
	}
	return res
}

func (f *Fleet) reading(id string) board.Reading {
	return board.Reading{State: board.NodeOnline, Slots: 4, Pressure: "normal", AgeMS: 500, FreeMB: 4096, Load: 0.5}
}

var _ api.Backend = (*Fleet)(nil)

// Do implements api.Backend.
func (f *Fleet) Do(ctx context.Context, req board.Request) board.Result {
	f.mu.Lock()
	f.asked = append(f.asked, req)
	f.mu.Unlock()
	if f.NoLeader {
		<-ctx.Done()
		return board.Result{Err: board.Errorf(board.Unavailable, "no leader is reachable").WithCheck("no_leader").WithHint("see: muster status")}
	}
	if f.Fail != nil {
		return board.Result{Err: f.Fail}
	}
	return f.exec(req)
}

// SessionSay implements api.Backend: it checks the secret as the launcher does.
func (f *Fleet) SessionSay(ctx context.Context, run, secret string, req board.Request) board.Result {
	f.mu.Lock()
	f.said = append(f.said, req)
	known := f.Secrets[run] == secret && secret != ""
	f.mu.Unlock()
	if !known {
		return board.Result{Err: board.Errorf(board.Refused, "the secret is not that of run %s", run).WithCheck("secret")}
	}
	req.Actor, req.Secret = board.Actor{Kind: board.ActorRun, Name: run, Run: run, Node: Node}, secret
	return f.Do(ctx, req)
}

// Said are the requests that came by SessionSay.
func (f *Fleet) Said() []board.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]board.Request(nil), f.said...)
}

// Asked are the requests that came to the leader, whatever became of them.
func (f *Fleet) Asked() []board.Request {
	f.mu.Lock()
	defer f.mu.Unlock()
	return append([]board.Request(nil), f.asked...)
}

// Vouch speaks for any session that names a process.
func (f *Fleet) Vouch(a board.Adopt) (*board.Vouch, *board.Error) {
	if a.PID == 0 {
		return nil, board.Errorf(board.Refused, "session %s on atlas: no process of yours names it in its arguments", a.Session).WithCheck("vouch")
	}
	return &board.Vouch{Node: Node, Session: a.Session, Harness: cmp.Or(a.Harness, "command"), Surface: "headless", PID: a.PID, Dir: cmp.Or(a.Dir, "/srv/app"), SecretHash: sha("s")}, nil
}

// MintID implements api.Backend.
func (f *Fleet) MintID() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	x := board.GetFleet(f.view)
	if x == nil {
		return ""
	}
	f.minted++
	return board.ReqID(x, f.view.Seq(), fmt.Sprintf("id%010d", f.minted))
}

// Read implements api.Backend.
func (f *Fleet) Read(_ context.Context, consistent bool, fn func(board.View) error) (api.Fresh, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if consistent && f.NoLeader {
		return api.Fresh{}, board.Errorf(board.Unavailable, "no leader is reachable").WithCheck("no_leader")
	}
	return api.Fresh{Index: f.view.Seq(), Age: 250 * time.Millisecond}, fn(f.view)
}

// Readings implements api.Backend.
func (f *Fleet) Readings(context.Context) api.Readings {
	if f.NoLeader {
		return api.Readings{Term: 3}
	}
	return api.Readings{Nodes: map[string]board.Reading{Node: f.reading(Node)}, Leader: Node, Term: 3, Live: true}
}

// Why implements api.Backend.
func (f *Fleet) Why(_ context.Context, card string) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	a, err := scheduler.Why(scheduler.Input{View: f.view, Workflows: f.flows, Nodes: f.reading, Now: f.now}, card, !f.NoLeader)
	if err != nil {
		return nil, err
	}
	return a, nil
}

// DryRun implements api.Backend.
func (f *Fleet) DryRun(_ context.Context, slug string) (any, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return scheduler.DryRun(scheduler.Input{View: f.view, Workflows: f.flows, Nodes: f.reading, Now: f.now}, slug, !f.NoLeader), nil
}

// Rounds implements api.Backend.
func (f *Fleet) Rounds(_ context.Context, n int) (any, error) {
	return f.RoundLog[max(0, len(f.RoundLog)-n):], nil
}

// Info implements api.Backend.
func (f *Fleet) Info() api.Info {
	f.mu.Lock()
	defer f.mu.Unlock()
	return api.Info{ID: f.Local, Name: "atlas", Fleet: "fleet0", Data: "/data/atlas", Addr: "192.0.2.1:7100", Version: "test", PID: 42, Started: Begin.Add(time.Duration(f.starts) * time.Hour)}
}

// Self implements api.Backend.
func (f *Fleet) Self() (id, name string) {
	x := f.Info()
	return x.ID, x.Name
}

// Hash implements api.Backend.
func (f *Fleet) Hash() string { return "00ff@1" }

// NewToken implements api.Backend.
func (f *Fleet) NewToken(ctx context.Context, actor board.Actor, o api.TokenOptions) (api.TokenAnswer, *board.Error) {
	secret := fmt.Sprintf("secret%d", o.TTL)
	raw, err := json.Marshal(board.TokenCreate{ID: board.HashSecret(secret), Role: o.Role, Local: o.Local, TTL: o.TTL, Uses: o.Uses, Name: o.Name, Board: o.Board})
	if err != nil {
		return api.TokenAnswer{}, board.Errorf(board.Internal, "token: %v", err)
	}
	res := f.Do(ctx, board.Request{ID: f.MintID(), Actor: actor, Secret: o.Secret, Verb: board.VTokenCreate, Args: raw})
	if res.Err != nil {
		return api.TokenAnswer{}, res.Err
	}
	return api.TokenAnswer{Token: "muster1." + secret, ID: board.HashSecret(secret)[:8], Expires: time.UnixMilli(f.now + o.TTL*1000).UTC()}, nil
}

// Stop implements api.Backend.
func (f *Fleet) Stop(restart bool) { f.Stopped <- restart }

// Diff implements api.Backend: of the fleet's own repository, nothing has changed.
func (f *Fleet) Diff(_ context.Context, card string, stat bool) (*api.Diff, error) {
	text := "diff --git a/a b/a\n+x\n"
	if stat {
		text = " a | 1 +\n"
	}
	return &api.Diff{Card: card, Machine: "atlas", Path: "/work/" + card, Branch: "muster/" + card, Base: "0", Text: text}, nil
}

// Mirror implements api.Backend: the board web has one.
func (f *Fleet) Mirror(_ context.Context, slug string) (api.Mirror, error) {
	if slug != "web" {
		return api.Mirror{}, board.Errorf(board.NotFound, "atlas mirrors no board %q", slug)
	}
	return api.Mirror{Board: slug, Repo: "/srv/boards.git", Branch: "muster"}, nil
}

// Gc implements api.Backend: one workspace that goes and one that stays.
func (f *Fleet) Gc(_ context.Context, o api.GcOptions) ([]api.GcItem, error) {
	return []api.GcItem{{Card: "d-1", Kind: "worktree", Path: "/work/d-1", Size: 1 << 20, Gone: true},
		{Card: "d-2", Kind: "scratch", Path: "/work/d-2", Size: 10, Gone: o.Scratch, Why: "1 file is nowhere else"}}, nil
}

// MemoryFiles implements api.Backend: each agent has kept one file.
func (f *Fleet) MemoryFiles(_ context.Context, agent, hash string) (api.MemoryFiles, error) {
	sum := board.HashSecret(memoryText)
	if !strings.HasPrefix(sum, hash) {
		return api.MemoryFiles{}, board.Errorf(board.NotFound, "agent %s has no snapshot %s", agent, hash)
	}
	return api.MemoryFiles{Agent: agent, Hash: sum, Files: []api.MemoryFile{{Path: "notes", Size: int64(len(memoryText)), SHA256: sum}}}, nil
}

// MemoryChunk implements api.Backend.
func (f *Fleet) MemoryChunk(_ context.Context, agent, _, path string, from int64) (api.MemoryChunk, error) {
	if path != "notes" {
		return api.MemoryChunk{}, board.Errorf(board.NotFound, "agent %s has no file %q", agent, path)
	}
	from = min(from, int64(len(memoryText)))
	return api.MemoryChunk{Chunk: []byte(memoryText[from:]), Next: int64(len(memoryText)), EOF: true}, nil
}

const memoryText = "what was learned\n"

// Serve opens the fleet's two sockets in a folder, as a node does.
func (f *Fleet) Serve(dir string) (*api.Server, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	return api.Serve(f, api.Sockets{User: dir + "/muster.sock", Session: dir + "/session.sock"})
}

// Join lets another node in, whose users have the given role, and makes it the one that answers.
func (f *Fleet) Join(name, local string) {
	f.Must(Manager(), board.VTokenCreate, board.TokenCreate{ID: board.HashSecret(name), Role: "node", Local: local, Uses: 1})
	id := "node" + name
	f.Must(board.Actor{Kind: board.ActorNode, Name: name, Node: id}, board.VNodeJoin, board.NodeJoin{Secret: name, Node: board.NodeUp{ID: id, Name: name, Slots: 2, OS: "linux", Arch: "amd64", Version: "test"}})
	f.mu.Lock()
	f.Local = id
	f.mu.Unlock()
}

// Again makes the node that answers another start of it.
func (f *Fleet) Again() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.starts++
}

// Backup implements api.Backend: a fleet of tests has nothing to keep.
func (f *Fleet) Backup(_ context.Context, file *os.File) (string, error) {
	_, err := file.WriteString("a backup")
	return "hash", err
}

// Peers implements api.Backend: this fleet is one machine.
func (f *Fleet) Peers(context.Context) api.Peers { return api.Peers{Timers: "lan"} }

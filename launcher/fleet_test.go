package launcher

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/board"
	"muster/board/lease"
)

// fleet is a fleet of one node in memory: the real executor over a state in
// memory, and a contact that tests may age. With a file, every executed request
// is kept there, so that a node that is killed finds its state again.
type fleet struct {
	mu      sync.Mutex
	v       *board.MemView
	ws      *board.Workflows
	now     int64
	keep    *os.File
	down    bool                      // no leader
	block   func(*board.Request) bool // no leader for this one
	lose    func(*board.Request) bool // execute, and lose the answer
	seen    []board.Request           // as they came in
	done    []uint64                  // numbers of reports executed
	contact time.Duration             // age of the contact
	woken   func()
}

const testNode = "node1aaaaaaaaaaaaaaaaaaaaaaaaaaa"

const testWorkflow = `
version: 1
name: t
extends: default
hooks: {merge: {run: [sh, -c, 'sh "$MUSTER_WORKSPACE/hook"'], env: {OTHER: {from: HOME}}, timeout: 600}}
on: {to_merge: [{by: [manager], target: merging, do: [{end_run: review_requested}]}], from_merge: [{by: [manager], guard: card.run == nil, target: todo}]}
harnesses:
  asker: {headless: {fresh: [{each: profile.args, args: ['{{ item }}']}]}, prompt: stdin}
  tui: {pane: {fresh: [sh, -c, 'sh "$MUSTER_BODY"'], resume: [sh, -c, 'sh "$MUSTER_BODY"']}, prompt: typed, ready: 'ready>', verdict: explicit, session: minted}
  mute: {pane: {fresh: [sh, -c, 'sh "$MUSTER_BODY"']}, prompt: typed, verdict: explicit, session: none}
profiles:
  mute: {harness: mute, surface: pane}
  tui: {harness: tui, surface: pane}
  sh: {harness: command, args: [sh, -c, 'sh "$MUSTER_BODY"']}
  agent: {harness: command, verdict: explicit, args: [sh, -c, 'sh "$MUSTER_BODY"']}
  pane: {harness: command, surface: pane, args: [sh, -c, 'sh "$MUSTER_BODY"']}
  asks: {harness: asker, args: [sh, -c, 'sh "$MUSTER_BODY"']}
  named: {harness: command, args: [sh, -c, 'sh "$MUSTER_BODY"'], env: {OTHER_NAME: $MUSTER_RUN, PRICE: $5}}
  direct: {harness: command, args: [sh, -c, 'exec sh "$MUSTER_BODY"']}
  missing: {harness: command, args: [no-such-program-here]}
`

func newFleet(path string) (*fleet, error) {
	f := &fleet{v: board.NewMemView(), ws: board.NewWorkflows(), now: 1_800_000_000_000, woken: func() {}}
	if path != "" {
		if err := f.replay(path); err != nil {
			return nil, err
		}
	}
	if f.v.Seq() > 0 {
		return f, nil
	}
	node := board.NodeUp{ID: testNode, Name: "atlas", Slots: 64, OS: "linux", Arch: "amd64", Harnesses: []string{"command", "asker", "tui", "mute"}, Labels: map[string]string{"always-on": "true"}, Panes: true}
	for _, r := range []board.Request{
		request(board.Platform(), board.VFleetInit, board.FleetInit{ID: "f", Name: "f", EraTag: "e", Node: node}),
		request(board.Platform(), board.VBoardCreate, board.BoardCreate{Slug: "web", Prefix: "web", YAML: testWorkflow}),
	} {
		if res := f.do(context.Background(), &r); res.Err != nil {
			return nil, res.Err
		}
	}
	return f, nil
}

// executed is a line of the file.
type executed struct {
	Now int64
	Req board.Request
}

func (f *fleet) replay(path string) error {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	sc := bufio.NewScanner(file)
	sc.Buffer(nil, 4<<20)
	for sc.Scan() {
		var e executed
		if json.Unmarshal(sc.Bytes(), &e) != nil {
			continue // cut off by the kill: never answered
		}
		f.now = e.Now
		f.exec(&e.Req)
	}
	f.keep = file
	return sc.Err()
}

func (f *fleet) exec(req *board.Request) board.Result {
	env := &board.Env{Now: f.now, Seq: f.v.Seq() + 1, Workflows: f.ws, Nodes: func(string) board.Reading {
		return board.Reading{State: board.NodeOnline, Slots: 64, Pressure: "normal"}
	}}
	txn, res := board.Exec(f.v, req, env)
	if !txn.Empty() {
		f.v.Apply(&txn)
	}
	return res
}

func (f *fleet) do(ctx context.Context, req *board.Request) board.Result {
	f.mu.Lock()
	f.seen = append(f.seen, *req)
	if f.down || f.block != nil && f.block(req) {
		f.mu.Unlock()
		return board.Result{Err: board.Errorf(board.Unavailable, "no leader")}
	}
	f.now += 10
	if f.keep != nil {
		b, err := json.Marshal(executed{f.now, *req})
		if err == nil {
			_, err = f.keep.Write(append(b, '\n'))
		}
		if err != nil {
			f.mu.Unlock()
			return board.Result{Err: board.Errorf(board.Internal, "%v", err)}
		}
	}
	res := f.exec(req)
	if req.Verb == board.VReport {
		f.done = append(f.done, req.Number)
	}
	lost := f.lose != nil && f.lose(req)
	wake := f.woken
	f.mu.Unlock()
	wake()
	if lost {
		return board.Result{Err: board.Errorf(board.UnknownOutcome, "the answer was lost")}
	}
	return res
}

func (f *fleet) view(fn func(board.View) error) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return fn(f.v)
}

func (f *fleet) clock() lease.Clock {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := lease.NewClock(lease.DefaultConfig())
	at := BootNow().Add(-f.contact)
	return c.Answered(c.Sent(at), 1, 0, at)
}

func (f *fleet) set(fn func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	fn()
}

func (f *fleet) run(id string) *board.Run {
	f.mu.Lock()
	defer f.mu.Unlock()
	return board.GetRun(f.v, id)
}

func (f *fleet) card(id string) *board.Card {
	f.mu.Lock()
	defer f.mu.Unlock()
	return board.GetCard(f.v, id)
}

// reports lists what came in of a run, in order, repetitions included.
func (f *fleet) reports(run string) (kinds []string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, r := range f.seen {
		var rep board.Report
		switch {
		case r.Verb == board.VReport && json.Unmarshal(r.Args, &rep) == nil && rep.Run == run:
			kinds = append(kinds, rep.Kind)
		case r.Actor.Run == run:
			kinds = append(kinds, "word")
		}
	}
	return kinds
}

func request(a board.Actor, verb string, args any) board.Request {
	b, err := json.Marshal(args)
	if err != nil {
		panic(err)
	}
	return board.Request{Actor: a, Verb: verb, Args: b}
}

func person() board.Actor {
	return board.Actor{Kind: board.ActorPerson, Name: "ann@atlas", Node: testNode}
}

// file files a card that runs a script and starts it; it answers the run's id.
func (f *fleet) file(profile, script string) (string, error) {
	title := strings.Map(func(c rune) rune { return max(c, ' ') }, script)
	add := request(person(), board.VCardAdd, board.CardAdd{Board: "web", CardFields: board.CardFields{Title: &title, Body: &script, Assignee: &profile}})
	res := f.do(context.Background(), &add)
	if res.Err != nil {
		return "", res.Err
	}
	var card struct{ ID string }
	if err := json.Unmarshal(res.Data, &card); err != nil || card.ID == "" {
		return "", fmt.Errorf("card add answered %s: %v", res.Data, err)
	}
	start := request(board.Platform(), board.VStart, board.Start{Card: card.ID, Node: testNode})
	res = f.do(context.Background(), &start)
	if res.Err != nil {
		return "", res.Err
	}
	var run struct{ Run string }
	err := json.Unmarshal(res.Data, &run)
	return run.Run, err
}

func (f *fleet) event(card, event string) error {
	ev := request(person(), board.VEvent, board.FireEvent{Card: card, Event: event, Why: "test"})
	if res := f.do(context.Background(), &ev); res.Err != nil {
		return res.Err
	}
	return nil
}

func (f *fleet) config(dir, binary string) Config {
	return Config{
		Dir: dir, Binary: binary, Node: testNode, Name: "atlas", View: f.view, Index: func() uint64 { return 1 }, Clock: f.clock, Send: f.do,
	}
}

// node is a fleet with a launcher, in this process.
type testNodeT struct {
	*fleet
	*Reconciler
	t       *testing.T
	cfg     Config
	keepers []*Keepers // of each time it was open
}

func newNode(t *testing.T, change func(*Config)) *testNodeT {
	t.Helper()
	f, err := newFleet("")
	must(t, err)
	n := &testNodeT{fleet: f, t: t, cfg: f.config(t.TempDir(), testBinary(t))}
	n.cfg.Logger = testLog(t)
	if change != nil {
		change(&n.cfg)
	}
	n.open()
	t.Cleanup(func() {
		n.Close()
		endAll(t, n.cfg.Dir)
		endTmux(t, n.cfg.Dir)
		for _, k := range n.keepers {
			k.wg.Wait() // a keeper still writes when its session is over
		}
	})
	return n
}

func (n *testNodeT) open() {
	n.t.Helper()
	r, err := New(n.cfg)
	must(n.t, err)
	must(n.t, r.Open(context.Background()))
	n.Reconciler = r
	if k, ok := r.cfg.Runner.(*Keepers); ok {
		n.keepers = append(n.keepers, k)
	}
	n.set(func() { n.woken = r.Wake })
}

func (n *testNodeT) start(profile, script string) string {
	n.t.Helper()
	run, err := n.file(profile, script)
	must(n.t, err)
	return run
}

// gone waits until the session of a run is gone and answers its record.
func (n *testNodeT) gone(run string) *board.Run {
	n.t.Helper()
	eventually(n.t, "the end of "+run, func() bool { r := n.fleet.run(run); return r != nil && r.Gone != "" })
	return n.fleet.run(run)
}

func (n *testNodeT) launched(run string) {
	n.t.Helper()
	eventually(n.t, "the start of "+run, func() bool { return n.fleet.run(run).Launched != 0 })
}

// endAll ends every session a test left behind. One whose keeper is only on its way is declared dead, as by a node.
func endAll(t *testing.T, dir string) {
	runs, _ := filepath.Glob(dir + "/runs/*")
	jobs, _ := filepath.Glob(dir + "/jobs/*")
	k := &Keepers{Log: testLog(t)}
	for _, path := range append(runs, jobs...) {
		if !exists(path + "/" + fileSpec) {
			continue
		}
		eventually(t, "the end of "+path, func() bool {
			s, err := k.Adopt(context.Background(), path)
			if s != nil {
				_ = s.Stop(0, "the test is over")
				<-s.Done()
			}
			if err != nil {
				return false
			}
			lock, err := takeLock(path)
			if err == nil {
				err = errors.Join(writeVoid(path), lock.Close())
			}
			return err == nil
		})
	}
}

func (f *fleet) apply(t *testing.T, yaml string) {
	t.Helper()
	req := request(person(), board.VBoardApply, board.BoardApply{Board: "web", YAML: yaml})
	if res := f.do(t.Context(), &req); res.Err != nil {
		t.Fatal(res.Err)
	}
}

package scheduler

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"muster/board"
)

// capYAML is a board of the random worlds: profiles of several harnesses, models
// and capacities, and a reviewer.
const capYAML = `
version: 1
name: NAME
extends: default
params: {reviewer: rev, most: MOST}
profiles:
  sh: {harness: command, args: [true]}
  two: {harness: command, args: [true], model: m1, capacity: 2}
  none: {harness: command, args: [true], capacity: 0}
  git: {harness: command, args: [true], requires: 'machine.name != "borea"'}
  agent: {harness: claude-code, model: m1}
  rev: {harness: command, args: [true]}
dispatch:
  capacity:
CAPS`

// capStep is one thing that happens; what its numbers mean depends on op.
type capStep struct{ Op, A, B int }

// capScript is a world as it was drawn, whole before it begins: the bubble it runs
// in may not draw (see TestLoopMissesNothing).
type capScript struct {
	Caps  []xcap
	Most  [2]int
	Steps []capStep
}

var (
	capBoards = []string{"default", "ops"}
	capNodes  = []string{"atlas", "borea", "cleo"}
)

func drawFilter(rt *rapid.T, label string) (f []xkey) {
	for _, k := range []xkey{
		{"dispatch", []string{"true"}, false}, {"dispatch", []string{"true"}, true}, {"status", []string{"running"}, true}, {"status", []string{"running", "reviewing"}, true},
		{"harness", []string{"command"}, true}, {"assignee", []string{"sh", "two"}, true}, {"machine", []string{"atlas", "borea"}, true}, {"model", []string{"m1"}, true},
		{"board", []string{"default"}, true}, {"slot", []string{"worker"}, true},
	} {
		if !slices.ContainsFunc(f, func(x xkey) bool { return x.key == k.key }) && rapid.IntRange(0, 9).Draw(rt, label) == 9 {
			f = append(f, k)
		}
	}
	return f
}

func drawCap(rt *rapid.T, slug string) xcap {
	c := xcap{board: slug, counts: rapid.SampledFrom([]string{"sessions", "runs", "cards", "starts", "sessions", "turns"}).Draw(rt, "counts"),
		scope: rapid.SampledFrom([]string{"machine", "fleet", "board", "machine", "assignee", "harness", "model", "card"}).Draw(rt, "scope")}
	c.where = drawFilter(rt, "where")
	if rapid.IntRange(0, 2).Draw(rt, "has unless") == 2 {
		c.unless = drawFilter(rt, "unless")
	}
	most := []string{"3", "2", "2", "1", "3", "0", "4", "params.most"}
	switch c.scope {
	case "machine":
		most = []string{"host.slots", "2", "3", "host.slots", "1", "params.most"}
	case "assignee":
		most = []string{"profile.capacity", "2", "1", "profile.capacity", "3"}
	}
	c.max = rapid.SampledFrom(most).Draw(rt, "max")
	if rapid.IntRange(0, 1).Draw(rt, "reserve") == 1 {
		c.reserve, c.slots = rapid.SampledFrom([]string{"reviewing", "reviewing", "running"}).Draw(rt, "for"), rapid.IntRange(1, 2).Draw(rt, "slots")
	}
	return c
}

func drawScript(rt *rapid.T) (s capScript) {
	for i, slug := range capBoards {
		s.Most[i] = rapid.IntRange(-1, 3).Draw(rt, "most")
		for range rapid.IntRange(1, 3).Draw(rt, "caps") {
			s.Caps = append(s.Caps, drawCap(rt, slug))
		}
	}
	s.Steps = rapid.SliceOfN(rapid.Custom(func(rt *rapid.T) capStep {
		return capStep{rapid.IntRange(0, 31).Draw(rt, "op"), rapid.IntRange(0, 11).Draw(rt, "a"), rapid.IntRange(0, 11).Draw(rt, "b")}
	}), 20, 60).Draw(rt, "steps")
	return s
}

func (f xkey) String() string {
	if !f.list && len(f.values) == 1 {
		return f.key + ": " + f.values[0]
	}
	return f.key + ": [" + strings.Join(f.values, ", ") + "]"
}

func filterYAML(f []xkey) string {
	var parts []string
	for _, k := range f {
		parts = append(parts, k.String())
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func (s *capScript) yaml(i int) string {
	var caps strings.Builder
	for _, c := range s.Caps {
		if c.board != capBoards[i] {
			continue
		}
		fmt.Fprintf(&caps, "    - {counts: %s, scope: %s, where: %s, unless: %s, max: %s", c.counts, c.scope, filterYAML(c.where), filterYAML(c.unless), c.max)
		if c.reserve != "" {
			fmt.Fprintf(&caps, ", reserve: {for: {status: %s}, slots: %d}", c.reserve, c.slots)
		}
		caps.WriteString("}\n")
	}
	return strings.NewReplacer("NAME", capBoards[i], "MOST", orNull(s.Most[i]), "CAPS", caps.String()).Replace(capYAML)
}

func orNull(n int) string {
	if n < 0 {
		return "null"
	}
	return fmt.Sprint(n)
}

// capWorld is a rig with a script and a naive count beside it.
type capWorld struct {
	*rig
	n     *naive
	wrong []string
	cards []string
	stop  context.CancelFunc // of the loop
	quiet bool               // nothing has happened between a plan and its starts
	seen  map[string]int     // what a run of the property has met
}

func (s *capScript) world(t *testing.T) *capWorld {
	w := &capWorld{rig: newRig(t, s.yaml(0), capNodes...), quiet: true, seen: map[string]int{},
		n: &naive{caps: s.Caps, most: map[string]int{capBoards[0]: s.Most[0], capBoards[1]: s.Most[1]}}}
	for i, n := range capNodes {
		w.set("n-"+n, board.Reading{State: board.NodeOnline, Slots: int64(i + 1), Pressure: "normal"})
	}
	w.person(board.VBoardCreate, board.BoardCreate{Slug: capBoards[1]})
	w.person(board.VBoardApply, board.BoardApply{Board: capBoards[1], YAML: s.yaml(1)})
	w.watch = w.judge
	return w
}

func (w *capWorld) bad(format string, args ...any) {
	if len(w.wrong) < 5 {
		w.wrong = append(w.wrong, fmt.Sprintf("Seq %d, %s: ", w.v.Seq(), time.Duration(w.now()-t0)*time.Millisecond)+fmt.Sprintf(format, args...))
	}
}

// judge holds each transaction of the executor against the naive count.
func (w *capWorld) judge(req *board.Request, res *board.Result, pre, post board.View, env *board.Env) {
	before := w.n.at(pre, w.ws, w.state, env.Now)
	after := heldRows(post)
	planner := req.Verb == board.VStart && req.Actor.Kind == board.ActorPlatform
	if planner && res.Err != nil && w.quiet {
		w.bad("a start was planned and the executor refuses it: %v", res.Err)
	}
	for _, row := range after {
		if slices.ContainsFunc(before.rows, func(h *board.Held) bool { return h.Run == row.Run }) {
			continue
		}
		run, c := board.GetRun(post, row.Run), board.GetCard(pre, row.Card)
		w.seen["start "+row.Status]++
		b := board.GetBoard(pre, row.Board)
		if why := before.forbidden(b, board.GetNode(pre, row.Node)); why != "" && !(run.Forced && strings.HasSuffix(why, "paused")) {
			w.bad("%s was started on %s although %s", row.Card, row.Node, why)
		}
		if run.Forced {
			w.seen["forced"]++
		} else if why := before.noRoom(row, true); why != "" {
			w.bad("%s was started on %s (%s, %s) without room: %s", row.Card, row.Node, row.Profile, row.Status, why)
		}
		if planner && w.quiet {
			w.inOrder(before, c, row)
		}
		defer func() { w.n.starts = append(w.n.starts, started{*row, env.Now}) }() // not while the state before it is asked about
	}
	w.noneExceeded(pre, post, before.rows, after, env.Now)
}

// inOrder: at a start, no card that comes before it and could start on that node waits.
func (w *capWorld) inOrder(m *moment, c *board.Card, row *board.Held) {
	board.EachCard(m.view, nil, func(x *board.Card) bool {
		if x.ID != c.ID && earlier(x, c) && m.could(x, row.Node, true) {
			w.bad("%s (%s, priority %d) was started on %s while %s (%s, priority %d), which comes before it, could start there", c.ID, c.Status, c.Priority, row.Node, x.ID, x.Status, x.Priority)
		}
		return true
	})
}

// noneExceeded: no transaction takes a cap that binds every row above its maximum. Cards
// are counted, as the keep rule gives a card one place (CAP-13); what was forced is left out (M-14).
func (w *capWorld) noneExceeded(pre, post board.View, before, after []*board.Held, now int64) {
	free := func(v board.View, rows []*board.Held) []*board.Held {
		return slices.DeleteFunc(slices.Clone(rows), func(h *board.Held) bool { r := board.GetRun(v, h.Run); return r != nil && r.Forced })
	}
	before, after = free(pre, before), free(post, after)
	for i := range w.n.caps {
		c := &w.n.caps[i]
		if c.counts == "starts" || !c.fleetWide() && c.scope != "board" {
			continue
		}
		for _, h := range after {
			limit, ok := w.n.limit(c, h, w.state(h.Node))
			if !ok || !c.concerns(h) {
				continue
			}
			if n, was := len(cardsOf(c.counted(after, h))), len(cardsOf(c.counted(before, h))); n > limit && n > was {
				w.bad("%d of %d, from %d, in %s", n, limit, was, c)
			}
		}
	}
}

// lead starts a loop that can be ended before the test.
func (w *capWorld) lead() {
	ctx, cancel := context.WithCancel(w.t.Context())
	w.stop = func() { cancel(); synctest.Wait() }
	w.rig.lead(ctx)
}

// idle: when the loop is idle nothing could start, by the product's own plan and by the naive count.
func (w *capWorld) idle() {
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	in := w.input()
	in.Aside = w.loop.Aside
	if list, _ := Plan(in); len(list) > 0 && !slices.ContainsFunc(list, func(s Start) bool { return w.loop.backoff.at[s.Card] > 0 }) {
		w.bad("the loop is idle and could start %s", starts(list))
	}
	m := w.n.at(w.v, w.ws, w.state, in.Now)
	board.EachCard(w.v, nil, func(c *board.Card) bool {
		for _, n := range capNodes {
			if until, _ := w.loop.Aside("n-" + n); until <= in.Now && w.loop.backoff.at[c.ID] == 0 && m.could(c, "n-"+n, true) {
				w.bad("the loop is idle, and %s (%s, waits for %+v) could start on %s", c.ID, c.Status, c.Waits, n)
			}
		}
		if c.Run == "" && c.Waits.Check == "cap" {
			w.seen["waits for a cap"]++
		}
		return true
	})
}

// ask has a request executed; a refusal is an answer like another.
func (w *capWorld) ask(a board.Actor, verb string, args any) board.Result {
	b, err := json.Marshal(args)
	if err != nil {
		w.t.Fatal(err)
	}
	return w.Do(w.t.Context(), &board.Request{Actor: a, Verb: verb, Args: b})
}

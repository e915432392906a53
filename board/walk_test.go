package board

import (
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// A walk sends random events, starts, reports and due times to a few cards and
// holds the state against what must always be true of it.
func TestWalk(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		w := newWorld(t, commands)
		w.params("web", rapid.SampledFrom([]string{"{}", `{"reviewer":"rev"}`, `{"review":false}`, `{"merge":true,"reviewer":"rev"}`, `{"rate_limit_cooldown":0,"guard_success":0}`}).Draw(r, "params"))
		var ids []string
		for i := range 4 {
			var after []string
			if i > 0 && rapid.Bool().Draw(r, "linked") {
				after = ids[:1]
			}
			ids = append(ids, w.addBy("web", manager, "card", func(c *Card) { c.Assignee = "agent" }, map[string]any{"triage": i == 3}, after...))
		}
		names := append(w.names(), "unheard")
		for range rapid.IntRange(1, 40).Draw(r, "steps") {
			w.random(r, ids, names)
			for _, id := range w.cards() {
				w.sound(id)
			}
		}
	})
}

func (w *world) names() []string {
	wf := w.flow("web").wf
	all := sortedKeys(wf.On)
	for _, s := range wf.Statuses {
		all = append(all, sortedKeys(s.On)...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (w *world) cards() (ids []string) {
	EachCard(w.v, nil, func(c *Card) bool { ids = append(ids, c.ID); return true })
	return ids
}

// random does one thing that may happen; most of them are refused.
func (w *world) random(r *rapid.T, ids, names []string) {
	c := w.card(rapid.SampledFrom(ids).Draw(r, "card"))
	switch rapid.IntRange(0, 5).Draw(r, "what") {
	case 0:
		_ = w.start(c.ID)
	case 1:
		if run := LastRun(w.v, c); run != nil {
			w.randomReport(r, run)
		}
	case 2:
		w.after(float64(rapid.SampledFrom([]int{1, 100, 901, 4000}).Draw(r, "seconds")))
		var keys []string
		EachDue(w.v, w.now, func(key string, _ *Due) bool { keys = append(keys, key); return true })
		w.exec(r, &Request{Actor: Platform(), Verb: VDue, Args: jsonOf(DueArgs{Keys: keys})})
	case 3:
		w.exec(r, &Request{Actor: manager, Verb: VEvent, Args: jsonOf(FireEvent{Card: c.ID, Event: rapid.SampledFrom(names).Draw(r, "event"), Payload: randomPayload(r)})})
	default:
		by := rapid.SampledFrom([]Actor{manager, member, Platform(), asRun(c.Run), asRun(c.ID + ".1")}).Draw(r, "by")
		_, _ = w.firing(c.ID, firing{Event: rapid.SampledFrom(names).Draw(r, "event"), Actor: by, Payload: randomPayload(r)})
	}
}

// exec runs a request as the executor does: what is refused writes nothing.
func (w *world) exec(r *rapid.T, req *Request) {
	txn, res := Exec(w.v, req, w.env())
	if res.Err != nil && !txn.Empty() {
		r.Fatalf("%s was refused (%v) and wrote %d records", req.Verb, res.Err, len(txn.Ops))
	}
	if res.Err != nil && (res.Err.Code == Internal || res.Err.Message == "") {
		r.Fatalf("%s: %+v", req.Verb, res.Err)
	}
	if !txn.Empty() {
		w.v.Apply(&txn)
	}
}

func (w *world) randomReport(r *rapid.T, run *Run) {
	a := Report{Run: run.ID, Kind: rapid.SampledFrom([]string{ReportTaken, ReportLaunched, ReportRefused, ReportFailed, ReportExited, ReportGone}).Draw(r, "kind")}
	if a.Kind == ReportExited {
		code := rapid.SampledFrom([]int64{0, 1, 75}).Draw(r, "code")
		a.Code = &code
	}
	_ = w.try(func(x *tx) *Error {
		x.req.Actor = Actor{Kind: ActorNode, Node: run.Node}
		x.req.Args = jsonOf(a)
		_, err := report(x)
		return err
	})
}

func randomPayload(r *rapid.T) map[string]any {
	p := map[string]any{}
	for _, k := range rapid.SliceOfN(rapid.SampledFrom([]string{"kind", "code", "means", "text", "children", "seconds", "refused", "why", "turns", "title"}), 0, 3).Draw(r, "keys") {
		switch k {
		case "kind":
			p[k] = rapid.SampledFrom([]any{"needs_input", "dependency", "mood", 3.0, nil}).Draw(r, k)
		case "children":
			p[k] = rapid.SampledFrom([]any{nil, []any{}, []any{map[string]any{"title": "part"}}, []any{"x"}, "x"}).Draw(r, k)
		default:
			p[k] = rapid.SampledFrom([]any{nil, 0.0, 75.0, 1e9, "text", true, []any{1.0}}).Draw(r, k)
		}
	}
	return p
}

// sound holds a card, its runs, sessions, orders and due times against each other.
func (w *world) sound(id string) {
	w.t.Helper()
	c, wf := w.card(id), w.flow("web").wf
	bad := func(format string, args ...any) {
		w.t.Helper()
		w.t.Fatalf("card %s (%s): %s\n%v", id, c.Status, fmt.Sprintf(format, args...), w.events(id))
	}
	if (c.Run != "") != wf.HasRun(c.Status) {
		bad("run %q", c.Run)
	}
	if c.Stored != wf.StoredAs(c.Status) {
		bad("stored as %q", c.Stored)
	}
	w.indexed(id)
	live, held, slots := 0, 0, map[string]int{}
	EachHeld(w.v, id, func(h *Held) bool {
		if slots[h.Slot]++; slots[h.Slot] > 1 {
			bad("two sessions of slot %s are not gone", h.Slot)
		}
		if !idlePane(h) {
			held++
		}
		return true
	})
	EachRun(w.v, id, func(r *Run) bool {
		h, start := GetHeld(w.v, r.ID), GetOrder(w.v, r.Node, r.Order)
		switch {
		case (r.Gone == "") != (h != nil):
			bad("run %s gone %q, held %v", r.ID, r.Gone, h != nil)
		case h != nil && (h.Ended != (r.Verdict != "") || h.Stopping != (r.Stop != "")):
			bad("run %s %+v held %+v", r.ID, r, h)
		case (r.State == RunEnded) != (r.Verdict != ""):
			bad("run %s is %s with verdict %q", r.ID, r.State, r.Verdict)
		case r.State == RunEnded && (start != nil || c.Run == r.ID || r.Outcome == ""):
			bad("run %s ended and: start order %v, outcome %q", r.ID, start != nil, r.Outcome)
		case r.Stop != "" && GetOrder(w.v, r.Node, r.Stop) == nil:
			bad("run %s names a stop order that is not there", r.ID)
		}
		if r.State != RunEnded {
			live++
			if c.Run != r.ID {
				bad("run %s goes on and is not current", r.ID)
			}
		}
		return true
	})
	if live > 1 || held > 1 {
		bad("%d runs, %d sessions", live, held)
	}
	CardEvents(w.v, c, func(e *Event) bool {
		if e.To != "" && e.To != c.Status {
			bad("its last move went to %s", e.To)
		}
		return e.To == ""
	})
	EachDue(w.v, 1<<62, func(_ string, d *Due) bool {
		if r := GetRun(w.v, d.Key); (d.Kind == DueRun || d.Kind == DueClaim) && (r == nil || r.State == RunEnded) {
			bad("due %s of %s, which has ended", d.Kind, d.Key)
		}
		return true
	})
}

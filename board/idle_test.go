package board

import (
	"strings"
	"testing"
)

// idling is a card whose pane came up and fell silent just now.
func idling(t *testing.T, set func(c *Card)) (*world, string, *Run) {
	w := agents(t)
	id := w.add("x", func(c *Card) {
		c.Assignee = "claude-pane"
		if set != nil {
			set(c)
		}
	})
	r := w.started(id)
	w.report(r.ID, Report{Kind: ReportSeen})
	w.report(r.ID, Report{Kind: ReportIdle})
	return w, id, r
}

func (w *world) asks(card string) []*Delivery { return OpenAsks(w.v, card) }

// IDL-03, IDL-04, IDL-06, IDL-08, IDL-10, IDL-13, M-33: a session that was silent
// for an interval is asked, once; ask, counter and time are one transaction; the
// next ask comes two intervals later; the ask is delivered by its node.
func TestIdleIsAsked(t *testing.T) {
	w, id, r := idling(t, nil)
	w.after(59)
	w.due()
	if len(w.asks(id)) != 0 {
		t.Fatal("asked early")
	}
	w.after(1)
	seq := w.v.Seq()
	w.due()
	if w.v.Seq() != seq+1 {
		t.Fatal("more than one transaction")
	}
	got := GetRun(w.v, r.ID)
	if got.Asks != 1 || got.Session.Nudged != w.now || got.Session.Silent == 0 {
		t.Fatalf("%+v", got)
	}
	asks := w.asks(id)
	if len(asks) != 1 || !strings.Contains(asks[0].Text, "looks idle") || !strings.Contains(asks[0].Text, "muster request-review") {
		t.Fatalf("%+v", asks)
	}
	if p := w.payload(id, "decision_asked"); p["turn"] != 1.0 {
		t.Fatalf("%v", p)
	}
	if p := w.payload(id, "session_idle"); p["turns"] != 0.0 || p["worked"] != false || p["waiting"] != false {
		t.Fatalf("%v", p)
	}
	w.after(119)
	w.due()
	if GetRun(w.v, r.ID).Asks != 1 {
		t.Fatal("asked again within two intervals")
	}
	w.after(1)
	w.due()
	if GetRun(w.v, r.ID).Asks != 2 {
		t.Fatal("not asked again")
	}
}

// IDL-05, INV-15: work since the last ask refills the budget; a mere reply to it does not.
func TestAReplyIsNoWork(t *testing.T) {
	for _, c := range []struct {
		quietAfter float64 // s from the ask to the last message
		asks       int64
		worked     bool
	}{{59, 2, false}, {60, 1, true}} {
		w, id, r := idling(t, nil)
		w.after(60)
		w.due()
		w.after(c.quietAfter)
		w.report(r.ID, Report{Kind: ReportBusy})
		w.report(r.ID, Report{Kind: ReportIdle})
		w.after(200)
		w.due()
		if got := GetRun(w.v, r.ID).Asks; got != c.asks || w.payload(id, "session_idle")["worked"] != c.worked {
			t.Errorf("last message %v s after the ask: %d asks", c.quietAfter, got)
		}
	}
}

// IDL-09, IDL-12, M-35: over the budget the card is blocked for a person, without
// another ask, and its pane stays open for them; the next run counts afresh.
func TestIdleOverItsBudget(t *testing.T) {
	w, id, r := idling(t, func(c *Card) { c.GoalMaxTurns = opt(2) })
	for range 4 {
		w.after(120)
		w.due()
	}
	c := w.card(id)
	if c.Status != "blocked" || c.BlockKind != "needs_input" || c.BlockReason != "idle after 2 of 2 asks" || c.Attention.Check == "" {
		t.Fatalf("%s %q", c.Status, c.BlockReason)
	}
	if got := GetRun(w.v, r.ID); got.Asks != 2 || got.Gone != "" || len(w.orders(OrderStop)) != 0 {
		t.Fatalf("%+v", got)
	}
	w.must(id, "unblock", manager)
	if next := w.claimed(id); next.Mode != ModeAdopt || next.Asks != 0 || next.Session.Silent != 0 {
		t.Fatalf("%+v", next)
	}
}

// IDL-08, IDL-10, IDL-11: a goal card is told to go on, turn by turn, within a
// budget that work does not refill; nobody but the session says that it is done.
func TestGoalMode(t *testing.T) {
	w, id, r := idling(t, func(c *Card) { c.Goal, c.GoalMaxTurns = true, opt(2) })
	w.after(60)
	w.due()
	if a := w.asks(id); len(a) != 1 || !strings.Contains(a[0].Text, "not done. Keep working (turn 1 of 2)") {
		t.Fatalf("%+v", a)
	}
	w.lastEvent(id, "goal_continued")
	w.after(300)
	w.report(r.ID, Report{Kind: ReportBusy})
	w.report(r.ID, Report{Kind: ReportIdle})
	w.after(60)
	w.due()
	if GetRun(w.v, r.ID).Asks != 2 {
		t.Fatal("work refilled a goal's budget")
	}
	w.after(120)
	w.report(r.ID, Report{Kind: ReportBusy})
	w.report(r.ID, Report{Kind: ReportIdle})
	w.after(60)
	w.due() // it worked since the last ask, and its budget is used up all the same
	w.status(id, "blocked")
}

// IDL-01, IDL-02, M-07: no verdict without a reading, an id, a last message, a
// handler, or while board or fleet is paused; a session that stands at a question to a person is not asked.
func TestIdleGivesNoVerdict(t *testing.T) {
	for name, set := range map[string]func(w *world, id string, r *Run){
		"no reading": func(w *world, _ string, _ *Run) { w.nodes["n-atlas"] = Reading{State: NodeUnknown} },
		"paused": func(w *world, _ string, _ *Run) {
			w.write(func(x *tx) *Error {
				f := GetFleet(x)
				f.PausedAt, f.PausedBy = 1, "ann"
				x.putFleet(f)
				return nil
			})
		},
		"busy again": func(w *world, _ string, r *Run) { w.report(r.ID, Report{Kind: ReportBusy}) },
		"waiting":    func(w *world, _ string, r *Run) { w.report(r.ID, Report{Kind: ReportIdle, Waiting: true}) },
		"no handler": func(w *world, _ string, _ *Run) {
			w.write(func(x *tx) *Error {
				b := GetBoard(x, "web")
				b.Workflow = 2
				x.put(TWorkflow, WorkflowKey("web", 2), &WorkflowDoc{Board: "web", Version: 2, Source: []byte("version: 1\nname: web\nextends: default\non: {session_idle: null}\n")})
				x.putBoard(b)
				return nil
			})
		},
		"no id": func(w *world, _ string, r *Run) {
			w.write(func(x *tx) *Error {
				r := GetRun(x, r.ID)
				r.SessionID = ""
				x.putRun(r)
				return nil
			})
		},
		"headless": func(w *world, _ string, r *Run) {
			w.write(func(x *tx) *Error {
				r := GetRun(x, r.ID)
				r.Surface = "headless"
				x.putRun(r)
				return nil
			})
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, id, r := idling(t, nil)
			set(w, id, r)
			w.after(500)
			for _, d := range w.dues(DueIdle) {
				if d.At <= w.now {
					if res := w.ask(Platform(), VDue, DueArgs{Keys: []string{DueKey(d.At, d.Kind, d.Key)}}); res.Err != nil {
						t.Fatal(res.Err)
					}
				}
			}
			if GetRun(w.v, r.ID).Asks != 0 || len(w.asks(id)) != 0 {
				t.Fatal("it was asked")
			}
		})
	}
}

// IDL-07: an idle session that the workflow cannot speak to is shown, unlike other observations.
func TestIdleThatFails(t *testing.T) {
	w := newWorld(t, "version: 1\nname: web\nextends: default\non: {session_idle: [{target: '{{ payload.nowhere }}x'}]}\n")
	w.edit("atlas", func(n *Node) { n.Harnesses, n.Panes = []string{"command", "claude-code"}, true })
	id := w.add("x", func(c *Card) { c.Assignee = "claude-pane" })
	r := w.started(id)
	w.report(r.ID, Report{Kind: ReportIdle})
	w.after(60)
	w.due()
	if c := w.card(id); c.Attention.Check != "session_idle" || c.Status != "running" {
		t.Fatalf("%+v", c)
	}
	if len(w.dues(DueIdle)) != 1 {
		t.Fatal("it is not offered again")
	}
}

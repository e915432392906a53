package board

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
)

// agents is a fleet of two machines that have claude-code and codex and open panes.
func agents(t testing.TB) *world {
	return agentsOf(t, "version: 1\nname: web\nextends: default\nprofiles: {rev: {harness: claude-code}, sh: {harness: command, args: [true]}}\n")
}

// agentsOf is the same with another workflow.
func agentsOf(t testing.TB, yaml string) *world {
	w := newWorld(t, yaml)
	w.node("brick", 4)
	for _, n := range []string{"atlas", "brick"} {
		w.edit(n, func(n *Node) { n.Harnesses, n.Panes = []string{"command", "claude-code", "codex"}, true })
	}
	return w
}

// on places the next start on another machine.
func (w *world) startOn(card, node string) (*Run, *Error) {
	m, err := w.firing(card, firing{Event: "start", Actor: Platform(), Start: &startCtx{Node: "n-" + node}})
	if err != nil {
		return nil, err
	}
	return m.Run, nil
}

// ask asks for a verb as Exec takes it.
func (w *world) ask(by Actor, verb string, args any, more ...func(r *Request)) Result {
	w.t.Helper()
	raw, err := json.Marshal(args)
	if err != nil {
		w.t.Fatal(err)
	}
	req := &Request{Actor: by, Verb: verb, Args: raw}
	for _, fn := range more {
		fn(req)
	}
	txn, res := Exec(w.v, req, w.env())
	if !txn.Empty() {
		if res.Err != nil {
			w.t.Fatalf("%s: a refusal wrote something: %v", verb, res.Err)
		}
		w.v.Apply(&txn)
	}
	return res
}

var person = Actor{Kind: ActorPerson, Name: "ann@atlas", Node: "n-atlas"}

// due lets everything happen whose time has come.
func (w *world) due() {
	w.t.Helper()
	for range 20 {
		var keys []string
		EachDue(w.v, w.now, func(key string, d *Due) bool { keys = append(keys, key); return true })
		if len(keys) == 0 {
			return
		}
		if res := w.ask(Platform(), VDue, DueArgs{Keys: keys}); res.Err != nil {
			w.t.Fatal(res.Err)
		}
	}
	w.t.Fatal("due times do not end")
}

// exited reports the end of a run's process.
func (w *world) exited(run string, code int64) {
	w.t.Helper()
	w.report(run, Report{Kind: ReportExited, Code: &code})
}

// review lets a card's session hand its work over and leave.
func (w *world) handedOver(id string) *Run {
	w.t.Helper()
	r := w.started(id)
	w.must(id, "request_review", asRun(r.ID), "summary", "s")
	w.exited(r.ID, 0)
	return GetRun(w.v, r.ID)
}

// sentBack lets a person send the work back.
func (w *world) sentBack(id string) {
	w.t.Helper()
	w.must(id, "request_changes", manager, "text", "not yet")
}

// SES-10, SES-13, PAN-08, INV-02: a slot whose session was not let go is resumed:
// the same session id on the same machine, with the harness's words for that, and
// in the status it was in only the short text.
func TestCardKeepsItsContext(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	w.write(func(x *tx) *Error { x.putBody(id, "the whole body"); return nil })
	first := w.handedOver(id)
	w.sentBack(id)
	r := w.claimed(id)
	s := w.spec(r)
	if r.Mode != ModeResume || r.SessionID != first.SessionID || s.SessionID != first.SessionID || s.Mode != ModeResume {
		t.Fatalf("mode %q session %q, want a resume of %q", r.Mode, r.SessionID, first.SessionID)
	}
	if !slices.Contains(s.Argv, "--resume") || slices.Contains(s.Argv, "--session-id") || !slices.Contains(s.Argv, first.SessionID) {
		t.Fatalf("argv %q", s.Argv)
	}
	if !strings.Contains(s.Prompt, "takes this session up again") || !strings.Contains(s.Prompt, "not yet") || strings.Contains(s.Prompt, "the whole body") {
		t.Fatalf("prompt %s", s.Prompt)
	}
	w.launched(r)
	if e := w.lastEvent(id, "session_resumed"); e.Run != r.ID {
		t.Fatalf("%+v", e)
	}
}

// TRI-04: the session that specified a card is the one that works it; in another status it is told all of it.
func TestTheTriageSessionGoesOn(t *testing.T) {
	w := agents(t)
	id := w.addBy("web", manager, "idea", func(c *Card) { c.Assignee = "claude" }, map[string]any{"triage": true})
	if _, err := w.firing(id, firing{Event: "start", Actor: manager, Start: &startCtx{Node: "n-atlas"}}); err != nil {
		t.Fatal(err)
	}
	r := w.launched(GetRun(w.v, w.card(id).Run))
	w.status(id, "specifying")
	w.must(id, "specify", asRun(r.ID), "title", "clear", "body", "goal, approach, proof")
	w.exited(r.ID, 0)
	w.status(id, "ready")
	next := w.claimed(id)
	if s := w.spec(next); next.Mode != ModeResume || next.SessionID != r.SessionID || !strings.Contains(s.Prompt, "You work card") || !strings.Contains(s.Prompt, "goal, approach, proof") {
		t.Fatalf("mode %q prompt %s", next.Mode, s.Prompt)
	}
}

// SES-03, INV-08: a session of one slot is never another slot's.
func TestSlotsAreApart(t *testing.T) {
	w := agents(t)
	w.params("web", `{"reviewer":"rev"}`)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	work := w.handedOver(id)
	rev := w.claimed(id)
	if rev.Slot != "reviewer" || rev.Mode != ModeFresh || rev.SessionID == work.SessionID || rev.SessionID == "" {
		t.Fatalf("%+v", rev)
	}
	w.launched(rev)
	w.must(id, "request_changes", asRun(rev.ID), "text", "no")
	w.exited(rev.ID, 0)
	if again := w.claimed(id); again.SessionID != work.SessionID || again.Slot != "worker" {
		t.Fatalf("%+v", again)
	}
}

// SES-05: the slot's session is the newest that came up; a start that was refused by its machine changes nothing.
func TestARefusedStartIsNoSession(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	r := w.claimed(id)
	w.report(r.ID, Report{Kind: ReportRefused, Error: "no room"})
	if GetSlot(w.v, id, "worker") != nil {
		t.Fatal("a session that never came up is the slot's")
	}
	if next := w.claimed(id); next.Mode != ModeFresh || next.SessionID == r.SessionID {
		t.Fatalf("%+v", next)
	}
}

// SES-14, SES-17, M-05: only a session that was let go is replaced, on any machine; the new one says which it replaces.
func TestForgottenIsReplaced(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	old := w.handedOver(id)
	w.sentBack(id)
	_, err := w.startOn(id, "brick")
	refused(t, err, "machine", "atlas")
	if res := w.ask(person, VForget, Forget{Card: id}); res.Err != nil {
		t.Fatal(res.Err)
	}
	r, err := w.startOn(id, "brick")
	if err != nil {
		t.Fatal(err)
	}
	if r.Mode != ModeFresh || r.SessionID == old.SessionID || r.Session.Replaces != old.SessionID || slices.Contains(w.spec(r).Argv, "--resume") {
		t.Fatalf("%+v", r)
	}
	w.launched(r)
	if e := w.lastEvent(id, "session_replaced"); !strings.Contains(string(e.Payload), old.SessionID) {
		t.Fatalf("%s", e.Payload)
	}
}

// SES-12, M-05, CAP-08: a slot whose session was not let go ties the start to its
// machine; the reason names the machine and what ties it, and a card that names another one waits for a person.
func TestTheSlotTiesTheMachine(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	w.handedOver(id)
	w.sentBack(id)
	s, err := NewScope(w.v, w.ws, GetBoard(w.v, "web"), w.card(id), w.now, w.env().Nodes)
	if err != nil {
		t.Fatal(err)
	}
	p, refusal := s.PlanStart()
	if refusal != nil {
		t.Fatal(refusal)
	}
	if ref, why := s.Bound(p.Profile); ref != "n-atlas" || !strings.Contains(why, "slot worker") {
		t.Fatalf("bound to %q, %s", ref, why)
	}
	_, e := w.startOn(id, "brick")
	refused(t, e, "machine", "it runs on atlas (where its session is (slot worker)), not on brick")
	w.set(id, func(c *Card) { c.Machine = "brick" })
	_, e = w.startOn(id, "brick")
	refused(t, e, "machine", "muster move "+id+" --machine brick")
	_, e = w.startOn(id, "atlas")
	refused(t, e, "machine", "named by the card")
}

// M-05, M-26: work that is nowhere else ties the card to its machine until it is saved.
func TestUnsavedWorkTiesTheMachine(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	r := w.started(id)
	code := int64(1)
	w.report(r.ID, Report{Kind: ReportExited, Code: &code, Work: "unpushed"})
	_, err := w.startOn(id, "brick")
	refused(t, err, "machine", "unpushed work")
	if r, err = w.startOn(id, "atlas"); err != nil {
		t.Fatal(err)
	}
	w.launched(r)
	w.report(r.ID, Report{Kind: ReportExited, Code: &code, Work: "saved"})
	w.must(id, "unblock", manager)
	if _, err = w.startOn(id, "brick"); err != nil {
		t.Fatal(err)
	}
}

// idlePaneOf lets a pane's run end by its own word and leaves the pane open.
func (w *world) idlePaneOf(id string) *Run {
	w.t.Helper()
	r := w.started(id)
	w.report(r.ID, Report{Kind: ReportSeen})
	w.must(id, "block", asRun(r.ID), "kind", "needs_input", "reason", "which?")
	return GetRun(w.v, r.ID)
}

// SES-06, SES-07, SES-08, M-35: an open pane that no run works in goes on with
// the next run: no new process, its prompt as a message under a key that names
// the run, its launch key kept, its lease as it is, its counters fresh.
func TestKeptSession(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude-pane" })
	old := w.idlePaneOf(id)
	w.write(func(x *tx) *Error {
		r := GetRun(x, old.ID)
		r.Asks, r.Session.Nudged, r.Lease = 3, w.now, 77_000
		x.putRun(r)
		return nil
	})
	w.must(id, "unblock", manager)
	w.after(30)
	r := w.claimed(id)
	s := w.spec(r)
	if r.Mode != ModeAdopt || r.SessionID != old.SessionID || r.Keeps != old.ID || s.Keep != old.ID {
		t.Fatalf("%+v", r)
	}
	if s.Message != "board-run-"+id+"-r2" || r.LaunchKey != old.LaunchKey || r.Lease != 77_000 || r.Asks != 0 || r.Session.Nudged != 0 {
		t.Fatalf("message %q key %q lease %d asks %d", s.Message, r.LaunchKey, r.Lease, r.Asks)
	}
	if got := GetRun(w.v, old.ID); got.Gone != GonePassed || GetHeld(w.v, old.ID) != nil || GetHeld(w.v, r.ID) == nil {
		t.Fatalf("the run before is %q", got.Gone)
	}
	if len(w.orders(OrderStop)) != 0 {
		t.Fatal("a kept session is stopped")
	}
	w.launched(r)
	if rec := GetSlot(w.v, id, "worker"); rec.Run != r.ID || rec.SessionID != old.SessionID {
		t.Fatalf("%+v", rec)
	}
	if r = GetRun(w.v, r.ID); r.Launched != w.now || r.SeenAt != w.now || r.Session.Born != old.Session.Born {
		t.Fatalf("launched %d seen %d born %d", r.Launched, r.SeenAt, r.Session.Born)
	}
	w.lastEvent(id, "session_adopted")
}

// SES-06, SES-09, M-35: what may not be kept. A closed pane is taken up again in
// a new process; one on a machine that is not heard, or that is missing, waits.
func TestNotKept(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(w *world, id string, r *Run)
		mode string // "": it waits
	}{
		{"closed by the board", func(w *world, id string, r *Run) {
			w.write(func(x *tx) *Error { x.closed(GetRun(x, r.ID), "close_session"); return nil })
			w.gone(r.ID)
		}, ModeResume},
		{"under an order to stop", func(w *world, id string, r *Run) {
			w.write(func(x *tx) *Error { x.stopSession(GetRun(x, r.ID), "x"); return nil })
		}, ""},
		{"its machine is not heard", func(w *world, id string, r *Run) { w.nodes["n-atlas"] = Reading{State: NodeUnknown, Slots: 4} }, ""},
		{"exited", func(w *world, id string, r *Run) { w.exited(r.ID, 0) }, ModeResume},
		{"another harness", func(w *world, id string, r *Run) {
			w.write(func(x *tx) *Error {
				rec := GetSlot(x, id, "worker")
				rec.Harness = "codex"
				x.putSlot(rec)
				return nil
			})
		}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := agents(t)
			id := w.add("x", func(c *Card) { c.Assignee = "claude-pane" })
			r := w.idlePaneOf(id)
			w.must(id, "unblock", manager)
			c.do(w, id, r)
			if c.mode == "" {
				refused(t, w.start(id), "session_not_gone", "")
				return
			}
			if next := w.claimed(id); next.Mode != c.mode || next.SessionID != r.SessionID {
				t.Fatalf("%+v", next)
			}
		})
	}
}

// M-35: slots share the card's workspace, one run at a time: a start waits for
// every session of another slot, but an open pane that no run works in.
func TestOneRunAtATimeInAWorkspace(t *testing.T) {
	w := agents(t)
	w.params("web", `{"reviewer":"rev"}`)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	r := w.started(id)
	w.must(id, "request_review", asRun(r.ID), "summary", "s")
	refused(t, w.start(id), "session_not_gone", "atlas is still stopping")
	pane := w.add("y", func(c *Card) { c.Assignee = "claude-pane" })
	p := w.started(pane)
	w.must(pane, "request_review", asRun(p.ID), "summary", "s")
	if rev := w.claimed(pane); rev.Slot != "reviewer" {
		t.Fatalf("%+v", rev)
	}
	if GetHeld(w.v, p.ID) == nil {
		t.Fatal("the worker's pane has lost its place")
	}
}

// SES-13, SES-15, ERR-03: a session that can go on in no way is reported as a
// launch that failed, with which and why; the workflow chooses between a person and a fresh one.
func TestASessionThatCanNotGoOn(t *testing.T) {
	for _, lost := range []struct {
		name, why string
		do        func(w *world, id string)
	}{
		{"another harness", "session of claude-code", func(w *world, id string) { w.set(id, func(c *Card) { c.Assignee = "codex" }) }},
		{"never came up again", "never came up", func(w *world, id string) {
			w.write(func(x *tx) *Error {
				rec := GetSlot(x, id, "worker")
				rec.NotResumable = true
				x.putSlot(rec)
				return nil
			})
		}},
		{"its node says so", "No conversation found", nil},
		{"its harness says so", "ended", nil},
	} {
		for policy, status := range map[string]string{"block": "blocked", "fresh": "ready"} {
			t.Run(lost.name+"/"+policy, func(t *testing.T) {
				w := agents(t)
				w.params("web", `{"lost_context":"`+policy+`"}`)
				id := w.add("x", func(c *Card) { c.Assignee = "claude" })
				old := w.handedOver(id)
				w.sentBack(id)
				switch lost.name {
				case "its node says so":
					r := w.claimed(id)
					w.report(r.ID, Report{Kind: ReportFailed, ResumeFailed: true, Error: "No conversation found"})
				case "its harness says so":
					r := w.started(id)
					code := int64(1)
					w.report(r.ID, Report{Kind: ReportExited, Code: &code, Means: MeansNoSession, Error: "ended"})
				default:
					lost.do(w, id)
					if err := w.start(id); err != nil {
						t.Fatal(err)
					}
				}
				c := w.card(id)
				var p map[string]any
				if err := json.Unmarshal(w.lastEvent(id, "spawn_failed").Payload, &p); err != nil {
					t.Fatal(err)
				}
				if p["resume_failed"] != true || p["session_id"] != old.SessionID || p["slot"] != "worker" || !strings.Contains(p["why"].(string), lost.why) {
					t.Fatalf("%v", p)
				}
				if c.Status != status || c.Failures != 0 || c.Run != "" || len(w.orders(OrderStart)) != 0 {
					t.Fatalf("%s, %d failures, run %q, orders %v", c.Status, c.Failures, c.Run, w.orders(OrderStart))
				}
				if EachHeld(w.v, id, func(h *Held) bool { t.Errorf("held %+v", h); return true }); policy == "fresh" {
					if next := w.claimed(id); next.Mode != ModeFresh || next.Session.Replaces != old.SessionID {
						t.Fatalf("%+v", next)
					}
				} else if !strings.Contains(c.BlockReason, "muster forget "+id) {
					t.Fatalf("%q", c.BlockReason)
				}
			})
		}
	}
}

// SES-18, SES-19, M-18, INV-07: a close by the session's own word is carried out
// a round later, so that it never loses its pane while its command is answered; by anybody else's, at once.
func TestCloseIsPutOff(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude-pane" })
	r := w.started(id)
	w.must(id, "request_review", asRun(r.ID), "summary", "s")
	if r = GetRun(w.v, r.ID); len(w.orders(OrderStop)) != 0 || r.Session.Closing != w.now+60_000 {
		t.Fatalf("closing %d, stops %d", r.Session.Closing, len(w.orders(OrderStop)))
	}
	w.after(59)
	w.due()
	if len(w.orders(OrderStop)) != 0 {
		t.Fatal("closed early")
	}
	w.after(1)
	w.due()
	if stops := w.orders(OrderStop); len(stops) != 1 || stops[0].Run != r.ID || GetSlot(w.v, id, "worker").Closed != w.now {
		t.Fatalf("stops %+v", stops)
	}
	two := w.add("y", func(c *Card) { c.Assignee = "claude-pane" })
	p := w.idlePaneOf(two)
	w.must(two, "complete", manager)
	if stops := w.orders(OrderStop); len(stops) != 2 || stops[1].Run != p.ID {
		t.Fatalf("stops %+v", stops)
	}
}

// SES-07: a session that goes on before the put-off close is not closed.
func TestKeptBeforeItsClose(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude-pane" })
	r := w.started(id)
	w.must(id, "request_review", asRun(r.ID), "summary", "s")
	w.after(5)
	w.sentBack(id)
	next := w.started(id)
	if next.Mode != ModeAdopt {
		t.Fatalf("%+v", next)
	}
	w.after(120)
	w.due()
	if len(w.orders(OrderStop)) != 0 {
		t.Fatal("the session that went on was closed")
	}
}

// RUN-12, M-35: a session over its age: its run is told so; an open pane is
// closed and the session goes on in a new process.
func TestAgeLimit(t *testing.T) {
	w := newWorld(t, "version: 1\nname: web\nextends: default\nstatuses: {running: {run: {limits: {age: 1000}}}}\n")
	w.edit("atlas", func(n *Node) { n.Harnesses, n.Panes = []string{"command", "claude-code"}, true })
	id := w.add("x", func(c *Card) { c.Assignee = "claude-pane" })
	w.idlePaneOf(id)
	w.must(id, "unblock", manager)
	w.after(600)
	r := w.started(id)
	if r.Mode != ModeAdopt {
		t.Fatalf("%+v", r)
	}
	w.after(401)
	w.due()
	if c := w.card(id); c.LastOutcome != "timed_out" || len(w.orders(OrderStop)) != 1 {
		t.Fatalf("%s after the age of the process was over", c.LastOutcome)
	}
	w.gone(r.ID)
	next := w.idlePaneOf(id)
	w.after(1001)
	w.due()
	if stops := w.orders(OrderStop); len(stops) != 1 || stops[0].Run != next.ID {
		t.Fatalf("an old pane stays open: %+v", stops)
	}
}

// SES-04: the slot is a template: another name is another session.
func TestASlotIsATemplate(t *testing.T) {
	w := newWorld(t, "version: 1\nname: web\nextends: default\nstatuses: {running: {run: {session: '{{ card.kind }}'}}}\n")
	w.edit("atlas", func(n *Node) { n.Harnesses = []string{"command", "claude-code"} })
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	first := w.handedOver(id)
	if first.Slot != "worker" {
		t.Fatalf("an empty slot is %q", first.Slot)
	}
	w.sentBack(id)
	w.set(id, func(c *Card) { c.Kind = "alone" })
	if r := w.claimed(id); r.Slot != "alone" || r.Mode != ModeFresh || r.Session.Replaces != "" {
		t.Fatalf("%+v", r)
	}
}

// SES-01: the id of a session that goes on in its pane comes with what is told of its
// turns: the pane is kept by it.
func TestSessionIDOfAPaneThatStays(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "codex" })
	r := w.started(id)
	w.report(r.ID, Report{Kind: ReportBusy})
	w.report(r.ID, Report{Kind: ReportIdle, Session: "thread-9"})
	if r := GetRun(w.v, r.ID); r.SessionID != "thread-9" {
		t.Errorf("%+v", r)
	}
	if rec := GetSlot(w.v, id, r.Slot); rec == nil || rec.SessionID != "thread-9" {
		t.Errorf("%+v", rec)
	}
	w.report(r.ID, Report{Kind: ReportBusy, Session: "thread-10"})
	if r := GetRun(w.v, r.ID); r.SessionID != "thread-9" {
		t.Errorf("another id took its place: %+v", r)
	}
}

// A harness that tells its session's id in its output: the id that came with the exit is the slot's.
func TestReportedSessionID(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "codex" })
	r := w.started(id)
	if r.SessionID != "" {
		t.Fatalf("an id was made for it: %q", r.SessionID)
	}
	w.must(id, "request_review", asRun(r.ID), "summary", "s")
	code := int64(0)
	w.report(r.ID, Report{Kind: ReportExited, Code: &code, Session: "thread-9"})
	w.sentBack(id)
	if next := w.claimed(id); next.Mode != ModeResume || next.SessionID != "thread-9" {
		t.Fatalf("%+v", next)
	}
}

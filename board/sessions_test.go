package board

import (
	"slices"
	"strings"
	"testing"
)

func vouch(session string, more func(v *Vouch)) func(*Request) {
	v := &Vouch{Node: "n-atlas", Session: session, Harness: "claude-code", PID: 4711, Pane: "%3", Dir: "/home/ann/app", SecretHash: []byte{1}, Ago: 900}
	if more != nil {
		more(v)
	}
	return func(r *Request) { r.Vouch = v }
}

// SES-24..28, M-14, M-19, SES-22: a session that a person has becomes the card's
// in one transaction: machine, assignee, folder, run and session; it is counted
// as no dispatcher's session, refused by no cap, and held by no lease.
func TestAdopt(t *testing.T) {
	w := agents(t)
	w.nodes["n-atlas"] = Reading{State: NodeOnline, Slots: 0} // full
	id := w.add("x", nil)
	seq := w.v.Seq()
	res := w.ask(person, VAdopt, Adopt{Card: id, Session: "s-1"}, vouch("s-1", nil))
	if res.Err != nil {
		t.Fatal(res.Err, res.Err.Hint)
	}
	if w.v.Seq() != seq+1 {
		t.Fatal("more than one transaction")
	}
	c := w.card(id)
	r := GetRun(w.v, c.Run)
	if c.Status != "running" || c.Machine != "atlas" || c.Assignee != "claude-pane" || c.Workspace != "dir:/home/ann/app" {
		t.Fatalf("%+v", c)
	}
	if r.Mode != ModeAdopt || r.Slot != "worker" || r.Role != "implementer" || r.SessionID != "s-1" || r.PID != 4711 || r.Session.Pane != "%3" ||
		!r.Session.Manual || r.LaunchKey != "" || r.Lease != 0 || r.State != RunRunning || r.Launched != w.now || len(r.SecretHash) == 0 {
		t.Fatalf("%+v", r)
	}
	if h := GetHeld(w.v, r.ID); h == nil || !h.Manual || h.Node != "n-atlas" {
		t.Fatalf("held %+v", h)
	}
	if rec := GetSlot(w.v, id, "worker"); rec == nil || rec.SessionID != "s-1" || rec.Node != "n-atlas" {
		t.Fatalf("slot %+v", rec)
	}
	if len(w.dues(DueClaim)) != 0 {
		t.Fatal("a session that is there would be orphaned")
	}
	w.lastEvent(id, "session_adopted")
	if e := w.lastEvent(id, "assigned"); !strings.Contains(string(e.Payload), "adopt") {
		t.Fatalf("%s", e.Payload)
	}
	w.must(id, "request_review", asRun(r.ID), "summary", "by hand") // its words count as its run's
	if got := GetRun(w.v, r.ID); got.Verdict != ByOwn {
		t.Fatalf("%+v", got)
	}
}

// What is refused, and that a refusal writes nothing.
func TestAdoptRefused(t *testing.T) {
	for _, c := range []struct {
		name, check, words string
		set                func(w *world, id string) func(*Request)
	}{
		{"nobody vouches (M-19)", "vouch", "no node vouches", func(w *world, id string) func(*Request) { return func(*Request) {} }},
		{"an old word (M-19)", "vouch", "too long ago", func(w *world, id string) func(*Request) {
			return vouch("s", func(v *Vouch) { v.Ago = vouchAge + 1 })
		}},
		{"another node's word (M-19)", "vouch", "only the machine that has session", func(w *world, id string) func(*Request) {
			return vouch("s", func(v *Vouch) { v.Node = "n-brick" })
		}},
		{"no process (M-19)", "vouch", "no process", func(w *world, id string) func(*Request) { return vouch("s", func(v *Vouch) { v.PID = 0 }) }},
		{"another machine is named (SES-24)", "machine", "move the card first", func(w *world, id string) func(*Request) {
			w.set(id, func(c *Card) { c.Machine = "brick" })
			return vouch("s", nil)
		}},
		{"another live session (SES-24)", "session_not_gone", "is alive", func(w *world, id string) func(*Request) {
			w.set(id, func(c *Card) { c.Assignee = "claude-pane" })
			w.idlePaneOf(id)
			w.must(id, "unblock", manager)
			return vouch("s", nil)
		}},
		{"parents not done (SES-27, SUB-05)", "validator", "waits on cards that are not done", func(w *world, id string) func(*Request) {
			p := w.add("parent", nil)
			w.write(func(x *tx) *Error { return x.addLink(id, p) })
			return vouch("s", nil)
		}},
		{"no profile of its harness", "profile", "no profile of vim", func(w *world, id string) func(*Request) {
			return vouch("s", func(v *Vouch) { v.Harness = "vim" })
		}},
		{"paused (M-16)", "pause", "holiday", func(w *world, id string) func(*Request) {
			w.write(func(x *tx) *Error {
				b := GetBoard(x, "web")
				b.PausedAt, b.PausedBy, b.PausedWhy = 1, "ann", "holiday"
				x.putBoard(b)
				return nil
			})
			return vouch("s", nil)
		}},
		{"another card's session", "vouch", "is that of card", func(w *world, id string) func(*Request) {
			other := w.add("other", nil)
			if res := w.ask(person, VAdopt, Adopt{Card: other}, vouch("s", nil)); res.Err != nil {
				w.t.Fatal(res.Err)
			}
			return vouch("s", nil)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := agents(t)
			id := w.add("x", nil)
			more := c.set(w, id)
			seq := w.v.Seq()
			res := w.ask(person, VAdopt, Adopt{Card: id}, more)
			refused(t, res.Err, c.check, c.words)
			if w.v.Seq() != seq {
				t.Fatal("a refusal wrote something")
			}
		})
	}
}

// SES-22, SES-25, SES-26, SES-28, CAP-22: what the card has already stays; the
// session replaced is named; caps for dispatched sessions do not see it.
func TestAdoptKeepsWhatTheCardHas(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	old := w.handedOver(id)
	w.sentBack(id)
	w.set(id, func(c *Card) { c.Workspace, c.Machine = "dir:/srv/app", "atlas" })
	if res := w.ask(person, VAdopt, Adopt{Card: id}, vouch("s-2", func(v *Vouch) { v.Dir = "dir:/tmp" })); res.Err != nil {
		t.Fatal(res.Err)
	}
	c := w.card(id)
	r := GetRun(w.v, c.Run)
	if c.Workspace != "dir:/srv/app" || c.Assignee != "claude" || r.Profile != "claude" || r.Session.Replaces != old.SessionID {
		t.Fatalf("%+v %+v", c, r)
	}
	if !GetHeld(w.v, r.ID).Manual {
		t.Fatal("it counts as dispatched")
	}
	w.must(id, "block", asRun(r.ID), "kind", "needs_input", "reason", "?")
	w.must(id, "unblock", manager)
	next := w.claimed(id)
	if h := GetHeld(w.v, next.ID); next.Mode != ModeAdopt || !h.Manual || h.Surface != "pane" || next.SessionID != "s-2" {
		t.Fatalf("%+v %+v", next, h) // the open pane goes on, although the profile is headless
	}
}

// M-05, M-35: move takes the run away, lets every session go, stops what lives and
// changes the machine, in one transaction; it says what stays behind and where.
func TestMove(t *testing.T) {
	w := agents(t)
	w.params("web", `{"reviewer":"rev"}`)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	first := w.handedOver(id)
	rev := w.started(id)
	w.must(id, "request_changes", asRun(rev.ID), "text", "no")
	w.exited(rev.ID, 0)
	r := w.started(id)
	seq := w.v.Seq()
	res := w.ask(person, VMove, Move{Card: id, Machine: "brick", Why: "more memory"})
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	if w.v.Seq() != seq+1 {
		t.Fatal("more than one transaction")
	}
	c := w.card(id)
	if c.Machine != "brick" || c.Run != "" || c.Status != "ready" {
		t.Fatalf("%+v", c)
	}
	if got := GetRun(w.v, r.ID); got.Outcome != "reclaimed" || got.Stop == "" {
		t.Fatalf("%+v", got)
	}
	for _, slot := range []string{"worker", "reviewer"} {
		if rec := GetSlot(w.v, id, slot); rec.Forgotten != w.now {
			t.Fatalf("%s %+v", slot, rec)
		}
	}
	for _, words := range []string{first.SessionID + " on atlas (slot worker)", rev.SessionID} {
		if !strings.Contains(string(res.Data), words) {
			t.Fatalf("%s does not say %q", res.Data, words)
		}
	}
	w.gone(r.ID)
	next, err := w.startOn(id, "brick")
	if err != nil || next.Mode != ModeFresh {
		t.Fatalf("%v %+v", err, next)
	}
	w.launched(next)
	w.exited(next.ID, 1)
	if res := w.ask(person, VMove, Move{Card: id, Machine: "any"}); res.Err != nil || w.card(id).Machine != "" {
		t.Fatal(res.Err)
	}
	if res := w.ask(person, VMove, Move{Card: id, Machine: "nowhere"}); CodeOf(res.Err) != NotFound {
		t.Fatal(res.Err)
	}
}

// M-35: what is left on a machine that cannot be asked, with no lease that ends
// it, is left only by a manager's word that it is dead.
func TestMoveFromAMachineThatIsAway(t *testing.T) {
	w := agents(t)
	w.params("web", `{"lease":null}`)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	r := w.started(id)
	w.nodes["n-atlas"] = Reading{State: NodeOffline}
	refused(t, w.ask(person, VMove, Move{Card: id, Machine: "brick"}).Err, "machine", "--force --why")
	refused(t, w.ask(person, VMove, Move{Card: id, Machine: "brick", Force: true}).Err, "", "--why")
	if res := w.ask(person, VMove, Move{Card: id, Machine: "brick", Force: true, Why: "it burnt"}); res.Err != nil {
		t.Fatal(res.Err)
	}
	if got := GetRun(w.v, r.ID); got.Gone != GoneWord || GetHeld(w.v, r.ID) != nil {
		t.Fatalf("%+v", got)
	}
	if _, err := w.startOn(id, "brick"); err != nil {
		t.Fatal(err)
	}
}

// SES-14: forget lets sessions go: by the workflow's event where it has one, else
// as the card stands; never under a run that works in it.
func TestForget(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude" })
	refused(t, w.ask(person, VForget, Forget{Card: id}).Err, "session", "no session to let go")
	w.handedOver(id)
	w.sentBack(id)
	r := w.started(id)
	refused(t, w.ask(person, VForget, Forget{Card: id}).Err, "running", "muster reclaim")
	w.must(id, "block", asRun(r.ID), "kind", "needs_input", "reason", "?")
	w.exited(r.ID, 0)
	if res := w.ask(person, VForget, Forget{Card: id}); res.Err != nil { // the workflow's own: out of blocked
		t.Fatal(res.Err)
	}
	w.status(id, "ready")
	if rec := GetSlot(w.v, id, "worker"); rec.Forgotten != w.now {
		t.Fatalf("%+v", rec)
	}
	pane := w.add("y", func(c *Card) { c.Assignee = "claude-pane" })
	p := w.idlePaneOf(pane)
	w.must(pane, "unblock", manager)
	if res := w.ask(person, VForget, Forget{Card: pane, Slot: "worker"}); res.Err != nil {
		t.Fatal(res.Err)
	}
	w.status(pane, "ready")
	if stops := w.orders(OrderStop); len(stops) != 1 || stops[0].Run != p.ID {
		t.Fatalf("an open pane that was let go lives on: %+v", stops)
	}
	refused(t, w.ask(Actor{Kind: ActorPerson, Name: "x", Node: "n-none"}, VForget, Forget{Card: pane}).Err, CheckSpeaker, "not in the fleet")
}

// WFL-21, WFL-22, M-17, M-26: hooks and clean-up are orders for the node of the
// card's workspace, written with the move; an answer counts once, and only while the card waits for it.
func TestHookIsAnOrder(t *testing.T) {
	w := agents(t)
	w.params("web", `{"merge":true}`)
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	r := w.claimed(id)
	w.report(r.ID, Report{Kind: ReportTaken})
	w.report(r.ID, Report{Kind: ReportLaunched, PID: 7, Workspace: "/srv/web-1"})
	w.must(id, "request_review", manager, "summary", "s")
	w.gone(r.ID)
	w.must(id, "complete", manager)
	w.status(id, "merging")
	orders := w.orders(OrderHook)
	if len(orders) != 1 || orders[0].Node != "n-atlas" || w.card(id).Hook == "" {
		t.Fatalf("%+v", orders)
	}
	for _, words := range []string{`"name":"merge"`, `git push origin`, `"BASE":"main"`, `"timeout":600000`, `"/srv/web-1"`} {
		if !strings.Contains(string(orders[0].Spec), words) {
			t.Errorf("%s does not hold %s", orders[0].Spec, words)
		}
	}
	node := Actor{Kind: ActorNode, Node: "n-atlas"}
	one, zero := int64(1), int64(0)
	if res := w.ask(node, VReport, Report{Kind: ReportDone, Order: orders[0].ID, Code: &one}); res.Err != nil {
		t.Fatal(res.Err)
	}
	c := w.card(id)
	if c.Status != "ready" || c.Failures != 1 || c.Hook != "" || !strings.Contains(comments(w, id)[len(comments(w, id))-1], "exit code 1") {
		t.Fatalf("%+v %v", c, comments(w, id))
	}
	refused(t, w.ask(node, VReport, Report{Kind: ReportDone, Order: orders[0].ID, Code: &zero}).Err, "superseded", "")
}

// The card leaves its status before the hook's answer: the order goes with it.
func TestHookOfACardThatLeft(t *testing.T) {
	w := agents(t)
	w.params("web", `{"merge":true}`)
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	r := w.claimed(id)
	w.report(r.ID, Report{Kind: ReportTaken})
	w.report(r.ID, Report{Kind: ReportLaunched, PID: 7, Workspace: "/srv/web-1"})
	w.must(id, "request_review", manager, "summary", "s")
	w.gone(r.ID)
	w.must(id, "complete", manager)
	w.must(id, "complete", manager) // a person says that it is merged
	w.status(id, "done")
	if len(w.orders(OrderHook)) != 0 {
		t.Fatal("the hook of a finished card still stands")
	}
	w.must(id, "archive", manager)
	clean := w.orders(OrderCleanup)
	if len(clean) != 1 || !strings.Contains(string(clean[0].Spec), "/srv/web-1") {
		t.Fatalf("%+v", clean)
	}
	node := Actor{Kind: ActorNode, Node: "n-atlas"}
	if res := w.ask(node, VReport, Report{Kind: ReportDone, Order: clean[0].ID, Error: "it holds unpushed work"}); res.Err != nil {
		t.Fatal(res.Err)
	}
	if e := w.lastEvent(id, "workspace_kept"); !strings.Contains(string(e.Payload), "unpushed") || len(w.orders(OrderCleanup)) != 0 {
		t.Fatalf("%s", e.Payload)
	}
}

// Without a workspace a hook has nowhere to run: a person is called.
func TestHookWithoutAWorkspace(t *testing.T) {
	w := agents(t)
	w.params("web", `{"merge":true}`)
	id := w.add("x", nil)
	w.set(id, func(c *Card) { c.Status, c.Stored = "review", "review" })
	if c := w.must(id, "complete", manager); c.Status != "merging" || c.Attention.Check != "hook" || len(w.orders(OrderHook)) != 0 {
		t.Fatalf("%+v", c)
	}
	if !slices.Contains(w.events(id), "complete") {
		t.Fatal(w.events(id))
	}
}

// WFL-21, WFL-22, M-17, M-26: a workspace is cleaned up only when its card is put away, by an order for the node that has
// it, written with the move; its key holds no time, so that a second archiving is another order.
func TestCleanUpIsAnOrder(t *testing.T) {
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	r := w.claimed(id)
	w.report(r.ID, Report{Kind: ReportTaken})
	w.report(r.ID, Report{Kind: ReportLaunched, PID: 7, Workspace: "/srv/web-1"})
	w.exit(id, 0)
	w.status(id, "done")
	if list := w.orders(OrderCleanup); len(list) != 0 {
		t.Fatalf("done is not put away: %+v", list)
	}
	w.must(id, "archive", manager)
	list := w.orders(OrderCleanup)
	if len(list) != 1 || list[0].Node != "n-atlas" || list[0].Card != id || !strings.Contains(string(list[0].Spec), `"/srv/web-1"`) ||
		!strings.Contains(string(list[0].Spec), `"cleanup/`+id+"/"+EventID(w.lastEvent(id, "archive").ID)+`"`) {
		t.Fatalf("%+v", list)
	}
	if res := w.ask(Actor{Kind: ActorNode, Node: "n-atlas"}, VReport, Report{Kind: ReportDone, Order: list[0].ID}); res.Err != nil {
		t.Fatal(res.Err)
	}
	if list := w.orders(OrderCleanup); len(list) != 0 {
		t.Fatalf("an order that was carried out stays: %+v", list)
	}
}

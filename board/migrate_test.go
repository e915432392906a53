package board

import (
	"strings"
	"testing"
)

// flowOf is a board's workflow with two statuses that wait and one that works, whose names a test changes.
const flowOf = `
version: 1
name: x
initial: idea
profiles: {sh: {harness: command, args: [make]}}
statuses:
  idea: {stored_as: todo, on: {start: [{target: draft, do: [{claim: {role: writer}}]}], hold: [{target: parked}]}}
  draft:
    stored_as: running
    run: {role: writer, session: desk}
    on:
      submit: [{by: [writer], target: done, do: [{end_run: ok}]}]
      exited: [{target: '{{ run.source }}', do: [{end_run: over}]}]
  parked: {stored_as: blocked, on: {back: [{target: '{{ card.previous }}'}]}}
  done: {stored_as: done}
`

// renamed is flowOf with other names, given as old, new, ...
func renamed(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(flowOf) }

// underWay has a board with a card that waits, one that is worked by a launched session, and one that is parked.
func underWay(t *testing.T) (f *fleet, idle, busy, parked string) {
	f = newFleet(t)
	f.must(f.person(VBoardCreate), BoardCreate{Slug: "x", YAML: flowOf})
	add := func() string {
		title, who := "t", "sh"
		return f.must(f.person(VCardAdd), CardAdd{Board: "x", CardFields: CardFields{Title: &title, Assignee: &who}})["id"].(string)
	}
	idle, busy, parked = add(), add(), add()
	f.launched(busy)
	f.must(f.person(VEvent), FireEvent{Card: parked, Event: "hold"})
	return f, idle, busy, parked
}

func (f *fleet) apply(yaml string) *Error {
	f.t.Helper()
	seq := f.v.Seq()
	dry := f.do(f.person(VBoardApply), BoardApply{Board: "x", YAML: yaml, DryRun: true})
	if f.v.Seq() != seq {
		f.t.Fatal("a dry run wrote something")
	}
	res := f.do(f.person(VBoardApply), BoardApply{Board: "x", YAML: yaml})
	if (dry.Err == nil) != (res.Err == nil) || dry.Err != nil && (dry.Err.Message != res.Err.Message || dry.Err.Hint != res.Err.Hint) {
		f.t.Fatalf("the dry run says %v, and then %v", dry.Err, res.Err)
	}
	return res.Err
}

// M-22: a version that loses a status, role or slot of what is under way is refused, names it, and gives the lines to add.
func TestApplySaysWhatIsLost(t *testing.T) {
	f, idle, busy, parked := underWay(t)
	run := GetCard(f.v, busy).Run
	for _, c := range []struct {
		yaml string
		says []string // of the message, then lines of the hint
	}{
		{renamed("idea", "plan"), []string{"status idea (" + idle + ", " + run + ")", "\nmigrate:\n  idea: plan   # a status without a run"}},
		{renamed("draft", "write"), []string{"status draft (" + busy + ")", "\n  draft: write   # a status with a run: its session goes on"}},
		{renamed("parked", "shelf"), []string{"status parked (" + parked + ")", "\n  parked: shelf"}},
		{renamed("writer", "author"), []string{"role writer (" + run + ")", "\n  roles: {writer: author}"}},
		{renamed("desk", "table"), []string{"slot desk (" + run + ")", "\n  slots: {desk: table}"}},
		{renamed("desk", "table", "writer", "author", "parked", "shelf"), []string{"role writer (" + run + "); slot desk (" + run + "); status parked (" + parked + ")", "\n  roles: {writer: author}\n  slots: {desk: table}\n  parked: shelf"}},
		{renamed("draft", "write") + "migrate: {draft: idea}\n", []string{"status draft (" + busy + ")"}}, // one with a run only to one with a run
	} {
		err := f.apply(c.yaml)
		if err == nil || err.Check != "migrate" {
			t.Fatalf("%v: taken, or refused for another reason: %v", c.says, err)
		}
		for _, part := range c.says {
			if !strings.Contains(err.Message+"\n"+err.Hint, part) {
				t.Errorf("%s\n%s\nwant %q", err.Message, err.Hint, part)
			}
		}
	}
	if v := GetBoard(f.v, "x").Workflow; v != 1 {
		t.Errorf("the board has version %d", v)
	}
}

// M-22: with the lines it is taken, and the session goes on under the new names: its word counts, and its end finds
// the way back to where its run began.
func TestApplyMapsWhatIsUnderWay(t *testing.T) {
	lines := "migrate: {idea: plan, draft: write, parked: shelf, roles: {writer: author}, slots: {desk: table}}\n"
	next := renamed("idea", "plan", "draft", "write", "parked", "shelf", "writer", "author", "desk", "table") + lines
	f, idle, busy, parked := underWay(t)
	if err := f.apply(next); err != nil {
		t.Fatal(err, err.Hint)
	}
	r := GetRun(f.v, GetCard(f.v, busy).Run)
	h := GetHeld(f.v, r.ID)
	if r.Role != "author" || r.Slot != "table" || r.Status != "write" || r.Source != "plan" || h.Role != "author" || h.Slot != "table" || h.Status != "write" {
		t.Errorf("run %+v, held %+v", r, h)
	}
	if GetSlot(f.v, busy, "desk") != nil || GetSlot(f.v, busy, "table") == nil || GetSlot(f.v, busy, "table").Run != r.ID {
		t.Error("the slot's session did not come along")
	}
	for id, want := range map[string]string{idle: "plan", busy: "write", parked: "shelf"} {
		if c := GetCard(f.v, id); c.Status != want {
			t.Errorf("card %s is in %s, want %s", id, c.Status, want)
		}
	}
	f.must(f.person(VEvent), FireEvent{Card: parked, Event: "back"})
	if c := GetCard(f.v, parked); c.Status != "plan" {
		t.Errorf("the parked card went back to %s", c.Status)
	}
	word := Request{Actor: Actor{Kind: ActorRun, Run: r.ID, Node: atlas}, Verb: VEvent, Secret: "s-" + r.ID}
	if res := f.do(word, FireEvent{Card: busy, Event: "submit"}); res.Err != nil {
		t.Errorf("the session's word under its new role: %v", res.Err)
	}

	f, _, busy, _ = underWay(t)
	if err := f.apply(next); err != nil {
		t.Fatal(err)
	}
	one := int64(1)
	if res := f.report(atlas, Report{Kind: ReportExited, Run: GetCard(f.v, busy).Run, Code: &one}); res.Err != nil {
		t.Fatal(res.Err)
	}
	if c := GetCard(f.v, busy); c.Status != "plan" || c.Run != "" {
		t.Errorf("after its exit the card is in %s with run %q", c.Status, c.Run)
	}
}

// M-22: a manager moves any card out of any status, past the workflow: also one that nothing takes out of, and one with
// a run, which is stopped.
func TestPutMovesAnyCard(t *testing.T) {
	stuck := strings.Replace(flowOf, "on: {back: [{target: '{{ card.previous }}'}]}", "on: {}", 1)
	for _, status := range []string{"idea", "draft", "parked", "done"} {
		f, idle, busy, parked := underWay(t)
		if err := f.apply(stuck); err != nil {
			t.Fatal(err)
		}
		id := map[string]string{"idea": idle, "draft": busy, "parked": parked, "done": idle}[status]
		if status == "done" {
			f.must(f.person(VCardPut), CardPut{Card: id, Status: "done", Why: "it is"})
		}
		run := GetCard(f.v, id).Run
		for _, to := range []string{"parked", "idea"} {
			f.must(f.person(VCardPut), CardPut{Card: id, Status: to, Why: "by hand"})
			c := GetCard(f.v, id)
			if c.Status != to || c.Run != "" || c.Stored != map[string]string{"parked": "blocked", "idea": "todo"}[to] {
				t.Errorf("from %s to %s: %+v", status, to, c)
			}
		}
		if r := GetRun(f.v, run); r != nil && (r.State != RunEnded || r.Stop == "") {
			t.Errorf("the run goes on: %+v", r)
		}
	}
	f, idle, busy, _ := underWay(t)
	for name, c := range map[string]struct {
		req  Request
		args CardPut
		says string
	}{
		"no reason":     {f.person(VCardPut), CardPut{Card: idle, Status: "done"}, "say why"},
		"no status":     {f.person(VCardPut), CardPut{Card: idle, Status: "mars", Why: "w"}, "idea, draft, parked, done"},
		"one that runs": {f.person(VCardPut), CardPut{Card: idle, Status: "draft", Why: "w"}, "muster start " + idle},
		"a session":     {Request{Actor: Actor{Kind: ActorRun, Run: GetCard(f.v, busy).Run, Node: atlas}, Verb: VCardPut, Secret: "s-" + GetCard(f.v, busy).Run}, CardPut{Card: busy, Status: "done", Why: "w"}, "not for sessions"},
	} {
		seq := f.v.Seq()
		res := f.do(c.req, c.args)
		if res.Err == nil || !strings.Contains(res.Err.Message+res.Err.Hint, c.says) || f.v.Seq() != seq {
			t.Errorf("%s: %v, want %q and nothing written", name, res.Err, c.says)
		}
	}
	f.state[atlas] = NodeOffline // M-11: its session may be working
	if res := f.do(f.person(VCardPut), CardPut{Card: busy, Status: "idea", Why: "w"}); res.Err == nil || res.Err.Check != "machine" {
		t.Errorf("its machine cannot be asked: %v", res.Err)
	}
	f.must(f.person(VCardPut), CardPut{Card: busy, Status: "idea", Why: "it burnt", Force: true})
	if h := GetHeld(f.v, RunID(busy, 1)); h != nil {
		t.Errorf("by force the session is gone: %+v", h)
	}
}

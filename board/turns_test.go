package board

import "testing"

const workingLimit = `
version: 1
name: web
extends: default
profiles: {claude-pane: {harness: claude-code, surface: pane}, head: {harness: claude-code}}
statuses: {running: {run: {limits: {working: 60}}}}
`

// SUP-25: a limit of working time counts the time in turns, of a headless session from its launch on; what waits for a
// person, or is idle, does not work.
func TestWorkingTimeIsLimited(t *testing.T) {
	w := agentsOf(t, workingLimit)
	id := w.add("x", func(c *Card) { c.Assignee = "claude-pane" })
	r := w.started(id)
	over := func() bool { w.due(); return w.card(id).Run != r.ID }
	w.report(r.ID, Report{Kind: ReportBusy})
	w.after(40)
	w.report(r.ID, Report{Kind: ReportIdle, For: TurnPermission})
	w.after(1000)
	if over() {
		t.Fatal("waiting is no work")
	}
	w.report(r.ID, Report{Kind: ReportBusy})
	w.after(20)
	if over() {
		t.Fatal("60 s are not over 60 s")
	}
	w.after(1)
	if !over() || w.payload(id, "timed_out")["what"] != "working" {
		t.Fatalf("%+v %v", GetRun(w.v, r.ID).Session, w.events(id))
	}
	if d := w.dues(DueWork); len(d) != 0 {
		t.Fatalf("%+v", d)
	}
	id = w.add("y", func(c *Card) { c.Assignee = "head" })
	r = w.started(id)
	w.after(60)
	if over() {
		t.Fatal("early")
	}
	w.after(1)
	if !over() {
		t.Fatal("a headless session works from its launch on")
	}
}

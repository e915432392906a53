package board

import (
	"strings"
	"testing"
)

// ERR-07: what others say of a failure is kept short, and says that it was cut: 500 bytes of an error, 300 of a reason.
func TestTextsOfFailuresAreBounded(t *testing.T) {
	long := strings.Repeat("é", 5000)
	short := func(what, got string, most int) {
		t.Helper()
		if len(got) > most+40 || len(got) < most-2 || !strings.HasSuffix(got, "bytes more)") {
			t.Errorf("%s has %d bytes, at most about %d: ...%s", what, len(got), most, got[max(len(got)-40, 0):])
		}
	}
	f := newFleet(t)
	id := f.card("x")
	run := f.start(id, atlas)
	if res := f.report(atlas, Report{Kind: ReportFailed, Run: run, Error: long}); res.Err != nil {
		t.Fatal(res.Err)
	}
	short("the run's error", GetRun(f.v, run).Error, 500)
	short("the card's last error", GetCard(f.v, id).LastError, 500)
	f.must(Request{Actor: Platform(), Verb: VReasons}, Reasons{Cards: []CardReason{{Card: id, Check: "cap", Text: long}}})
	short("why it waits", GetCard(f.v, id).Waits.Text, 300)
	f.must(Request{Actor: Platform(), Verb: VReasons}, Reasons{Cards: []CardReason{{Card: id}}})
	run = f.launched(id)
	one := int64(1)
	if res := f.report(atlas, Report{Kind: ReportExited, Run: run, Code: &one, Error: long}); res.Err != nil {
		t.Fatal(res.Err)
	}
	short("the error of an exit", GetRun(f.v, run).Error, 500)
}

// SUB-06, RSP-05: a promotion sets a card free of the guard against starting again what was just completed.
func TestPromotionLiftsTheGuard(t *testing.T) {
	w := newWorld(t, "version: 1\nname: o\nextends: default\nstatuses: {running: {on: {exited: [{target: todo, do: [{end_run: completed}]}]}}}\nprofiles: {sh: {harness: command, args: [true]}}\n")
	parent := w.add("parent", nil)
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	w.started(id)
	w.write(func(x *tx) *Error { return x.addLink(id, parent) }) // it waits for another card when its run is over
	w.after(5)
	w.exit(id, 0)
	w.status(id, "todo")
	w.set(id, func(c *Card) { c.Status, c.Stored = "ready", "ready" })
	if err, _ := Guard(w.v, w.ws, GetBoard(w.v, "web"), w.card(id), w.now); err == nil || err.Check != "recent_success" {
		t.Fatalf("nothing held it: %v", err)
	}
	w.set(id, func(c *Card) { c.Status, c.Stored = "todo", "todo" })
	w.after(5)
	w.must(parent, "complete", manager, "summary", "done")
	w.status(id, "ready")
	w.started(id)
}

package board

import (
	"slices"
	"strings"
	"testing"
)

// RSP-01..06, RSP-10: each check of the respawn guard holds a start back, says
// until when, lets go at exactly that time, and is off at 0.
func TestRespawnGuard(t *testing.T) {
	const s = int64(1000)
	pr := "see https://github.com/acme/app/pull/12 for it"
	for _, c := range []struct {
		name    string
		outcome string
		error   string
		comment string
		status  string
		reset   int64 // after the end, s
		check   string
		until   int64 // after the end, s
		param   string
	}{
		{name: "rate limit", outcome: "rate_limited", check: "rate_limit", until: 300, param: "rate_limit_cooldown"},
		{name: "rate limit with its end", outcome: "rate_limited", reset: 1800, check: "rate_limit", until: 1800, param: "rate_limit_cooldown"},
		{name: "rate limit without end", outcome: "rate_limited", reset: 1 << 32, check: "rate_limit", until: 7 * 86400, param: "rate_limit_cooldown"},
		{name: "rate limit skips the rest", outcome: "rate_limited", error: "401 unauthorized", comment: pr, check: "rate_limit", until: 300, param: "rate_limit_cooldown"},
		{name: "login", outcome: "crashed", error: "HTTP 403 from the API", check: "blocker_auth", until: 3600, param: "guard_auth"},
		{name: "words, not parts of words", outcome: "crashed", error: "the author of line 4291"},
		{name: "any case", outcome: "crashed", error: "Invalid API Key", check: "blocker_auth", until: 3600, param: "guard_auth"},
		{name: "success", outcome: "completed", check: "recent_success", until: 3600, param: "guard_success"},
		{name: "a review is not held by success", outcome: "completed", status: "review"},
		{name: "nor by a pull request", outcome: "crashed", comment: pr, status: "review"},
		{name: "but by a login", outcome: "crashed", error: "billing", status: "review", check: "blocker_auth", until: 3600, param: "guard_auth"},
		{name: "pull request", outcome: "crashed", comment: pr, check: "active_pr", until: 86400, param: "guard_pr"},
		{name: "another host is none", outcome: "crashed", comment: "https://example.org/acme/app/pull/12"},
		{name: "nothing", outcome: "crashed", error: "exit code 1", comment: "tried twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWorld(t, commands)
			id := w.add("x", func(card *Card) { card.Assignee = "sh" })
			w.write(func(x *tx) *Error {
				card := GetCard(x, id)
				card.Runs, card.LastError = 1, c.error
				if c.status != "" {
					card.Status = c.status
				}
				r := &Run{ID: id + ".1", Card: id, N: 1, State: RunEnded, Outcome: c.outcome, Claimed: w.now - 50*s, Ended: w.now}
				if c.reset != 0 {
					setMetadata(r, resetKey, w.now+c.reset*s)
				}
				x.putRun(r)
				if c.comment != "" {
					e := x.event(card, Event{Kind: "comment", Said: true, Text: c.comment})
					card.LastSaid = e.ID
				}
				x.putCard(card)
				return nil
			})
			end := w.now
			w.after(1)
			err, until := Guard(w.v, w.ws, GetBoard(w.v, "web"), w.card(id), w.now)
			if c.check == "" {
				if err != nil {
					t.Fatalf("held: %v", err)
				}
				return
			}
			refused(t, err, c.check, "more")
			if until != end+c.until*s {
				t.Fatalf("until %d s after the end, want %d", (until-end)/s, c.until)
			}
			if err, _ := Guard(w.v, w.ws, GetBoard(w.v, "web"), w.card(id), until-1); err == nil {
				t.Fatal("it let go too early")
			}
			if err, _ := Guard(w.v, w.ws, GetBoard(w.v, "web"), w.card(id), until); err != nil && err.Check == c.check {
				t.Fatalf("it does not let go: %v", err)
			}
			w.params("web", `{"`+c.param+`":0}`)
			if err, _ := Guard(w.v, w.ws, GetBoard(w.v, "web"), w.card(id), w.now); err != nil && err.Check == c.check {
				t.Fatalf("0 is not off: %v", err)
			}
		})
	}
}

// RSP-01, RSP-05: the guard is a validator of the start; a start it refuses
// changes nothing, --force passes it, and a later promote, unblock or reclaim lifts it.
func TestRespawnGuardAtTheStart(t *testing.T) {
	w := newWorld(t, "version: 1\nname: o\nextends: default\nstatuses: {running: {on: {exited: [{target: ready, do: [{end_run: completed}]}]}}}\nprofiles: {sh: {harness: command, args: [true]}}\n")
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	w.started(id)
	w.after(5)
	w.exit(id, 0)
	w.after(5)
	seq := w.v.Seq()
	err := w.start(id)
	refused(t, err, "recent_success", "59m55s")
	refused(t, err, "recent_success", "--force")
	if w.v.Seq() != seq {
		t.Fatal("the guard changed something")
	}
	if _, err := w.firing(id, firing{Event: "start", Actor: manager, Force: true, Why: "again", Start: &startCtx{Node: "n-atlas"}}); err != nil {
		t.Fatal(err)
	}
	w.must(id, "reclaim", manager)
	w.gone(id + ".2")
	w.started(id)
	w.after(1)
	w.exit(id, 0)
	refused(t, w.start(id), "recent_success", "")
	w.after(1)
	w.must(id, "block", manager, "kind", "transient", "reason", "x")
	w.must(id, "unblock", manager)
	w.started(id)
}

// WFL-27, EXP-09: the commands a role may use in a status, as they can be told without a payload.
func TestDoors(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("x", func(c *Card) { c.Assignee = "agent" })
	doorsIn := func(status, role string) string {
		w.set(id, func(c *Card) { c.Status = status })
		s, err := NewScope(w.v, w.ws, GetBoard(w.v, "web"), w.card(id), w.now, nil)
		if err != nil {
			t.Fatal(err)
		}
		return s.Doors(role)
	}
	for _, c := range []struct {
		status, role string
		has, not     []string
	}{
		{"running", "implementer", []string{"request-review", "muster comment", "muster block", "--subtask-of " + id}, []string{"done\n  muster complete", "decompose", "specify", "heartbeat", "exited", "muster event"}},
		{"specifying", "implementer", []string{"specify", "decompose", "muster block"}, []string{"request-review", "complete"}},
		{"reviewing", "reviewer", []string{"complete", "request-changes"}, []string{"request-review", "specify"}},
		{"done", "implementer", []string{"muster comment"}, []string{"muster block", "complete"}},
	} {
		got := doorsIn(c.status, c.role)
		for _, want := range c.has {
			if !strings.Contains(got, want) {
				t.Errorf("%s, %s: no %q in\n%s", c.status, c.role, want, got)
			}
		}
		for _, not := range c.not {
			if strings.Contains(got, not) {
				t.Errorf("%s, %s: %q in\n%s", c.status, c.role, not, got)
			}
		}
	}
	w.params("web", `{"review":false}`)
	if got := doorsIn("running", "implementer"); !strings.Contains(got, "muster complete") {
		t.Errorf("without review the implementer completes:\n%s", got)
	}
}

// BRD-20: context is bounded: the newest comments, clipped texts, at characters.
func TestContextIsBounded(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("x", nil)
	w.write(func(x *tx) *Error { x.putBody(id, strings.Repeat("ä", 20<<10)); return nil })
	for range 40 {
		w.must(id, "comment", manager, "text", "c"+jsonNumber(w.v.Seq())+strings.Repeat("é", 800))
	}
	s, err := NewScope(w.v, w.ws, GetBoard(w.v, "web"), w.card(id), w.now, nil)
	if err != nil {
		t.Fatal(err)
	}
	text := s.Context()
	if len(text) > maxContext || !strings.Contains(text, "10 older ones are left out") || !strings.Contains(text, "bytes more") || strings.Contains(text, "\ufffd") {
		t.Fatalf("%d bytes of context", len(text))
	}
	if n := strings.Count(text, "ann@atlas"); n != maxContextComments {
		t.Fatalf("%d comments", n)
	}
}

// SUB-02, EXP-09: a part of a card is told of the card it belongs to; news is what was said since its run before.
func TestArcAndNews(t *testing.T) {
	w := newWorld(t, `
version: 1
name: o
extends: default
statuses: {running: {run: {prompt: '{{ arc_context }}|{{ news }}|{{ where }}'}}}
profiles: {sh: {harness: command, args: [true]}}
`)
	arc := w.add("the arc", nil)
	w.must(arc, "comment", manager, "text", "a ruling")
	id := w.addBy("web", manager, "part", func(c *Card) { c.SubtaskOf, c.Assignee = arc, "sh" }, nil)
	w.must(id, "comment", manager, "text", "old word")
	w.after(1)
	if _, err := w.firing(id, firing{Event: "start", Actor: manager, Start: &startCtx{Node: "n-atlas"}}); err != nil {
		t.Fatal(err)
	}
	w.launched(GetRun(w.v, w.card(id).Run))
	w.after(1)
	w.must(id, "comment", manager, "text", "new word")
	w.exit(id, 1)
	if _, err := w.firing(id, firing{Event: "start", Actor: manager, Start: &startCtx{Node: "n-atlas"}}); err != nil {
		t.Fatal(err)
	}
	got := strings.Split(w.spec(GetRun(w.v, w.card(id).Run)).Prompt, "|")
	if !strings.Contains(got[0], "the arc") || !strings.Contains(got[0], "a ruling") {
		t.Errorf("arc %q", got[0])
	}
	if !strings.Contains(got[1], "new word") || strings.Contains(got[1], "old word") {
		t.Errorf("news %q", got[1])
	}
	if got[2] == "" {
		t.Error("where is empty")
	}
}

// The platform does not start a part of a card by itself: its arc's session works it (SUB-01).
func TestPartsAreNotDispatched(t *testing.T) {
	w := newWorld(t, commands)
	arc := w.add("arc", nil)
	id := w.addBy("web", manager, "part", func(c *Card) { c.SubtaskOf, c.Assignee = arc, "sh" }, nil)
	refused(t, w.start(id), "validator", "is worked by the session of "+arc)
	if !slices.Contains([]string{"ready"}, w.card(id).Status) {
		t.Fatal(w.card(id).Status)
	}
}

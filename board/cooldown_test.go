package board

import (
	"strings"
	"testing"
)

const limits = `
version: 1
name: web
extends: default
harnesses:
  agent: {headless: {fresh: [agent]}, exit: {75: rate_limit}, verdict: explicit}
  other: {headless: {fresh: [other]}, exit: {75: rate_limit}, verdict: explicit}
profiles:
  a: {harness: agent, fallback: [o, team]}
  b: {harness: agent}
  o: {harness: other}
  team: {harness: agent, account: acme}
  mates: {harness: other, account: acme}
  sh: {harness: command, args: [true]}
  sh2: {harness: command, args: [true]}
  login: {harness: command, account: acme, args: [true]}
`

// limitWorld has atlas, borea and one more board, and says why a start is refused.
func limitWorld(t *testing.T) *world {
	w := newWorld(t, limits)
	w.board("ops", limits)
	w.node("borea", 4)
	return w
}

func (w *world) of(profile string) string {
	return w.add("x", func(c *Card) { c.Assignee = profile })
}

// met lets a run of the profile end on atlas with a rate limit.
func (w *world) met(profile string, rep Report) *Run {
	w.t.Helper()
	r := w.started(w.of(profile))
	code := int64(75)
	rep.Kind, rep.Code, rep.Means = ReportExited, &code, "rate_limit"
	w.report(r.ID, rep)
	return GetRun(w.v, r.ID)
}

// tries is why a start on a node is refused: its check; "" when it is not.
func (w *world) tries(card, node string) string {
	err := w.try(func(x *tx) *Error {
		c := GetCard(x, card)
		_, err := x.fire(GetBoard(x, c.Board), c, firing{Event: "start", Actor: Platform(), Start: &startCtx{Node: "n-" + node}})
		if err != nil {
			return err
		}
		return Errorf(Refused, "only tried")
	})
	return err.Check
}

// A rate limit that one run meets holds all that share its account: the login that
// profiles name, else the harness on that machine; a plain command shares nothing.
func TestCooldownIsTheAccounts(t *testing.T) {
	for _, x := range []struct{ met, profile, node, board, check string }{
		{"a", "b", "atlas", "web", "cooldown"},
		{"a", "b", "borea", "web", ""},
		{"a", "b", "atlas", "ops", "cooldown"},
		{"a", "o", "atlas", "web", ""},
		{"a", "team", "atlas", "web", ""},
		{"team", "team", "atlas", "web", "cooldown"},
		{"team", "team", "borea", "web", "cooldown"},
		{"team", "mates", "borea", "ops", "cooldown"},
		{"team", "login", "borea", "web", "cooldown"},
		{"team", "a", "atlas", "web", ""},
		{"sh", "sh", "atlas", "web", ""},
		{"sh", "sh2", "atlas", "web", ""},
		{"login", "mates", "borea", "web", "cooldown"},
	} {
		t.Run(x.met+" then "+x.profile+" on "+x.node, func(t *testing.T) {
			w := limitWorld(t)
			w.met(x.met, Report{})
			id := w.addBy(x.board, manager, "x", func(c *Card) { c.Assignee = x.profile }, nil)
			if got := w.tries(id, x.node); got != x.check {
				t.Fatalf("refused by %q, want %q", got, x.check)
			}
			w.after(300)
			if got := w.tries(id, x.node); got != "" {
				t.Fatalf("after the limit: refused by %q", got)
			}
		})
	}
}

// Until when: the reset that the harness told, else the board's cooldown; nothing
// is for ever, 0 is off, the later of two ends counts, and only a rate limit is one.
func TestCooldownEnds(t *testing.T) {
	for _, x := range []struct {
		name   string
		report Report
		params string
		after  float64 // seconds from the end, in which it holds and behind which it does not
	}{
		{"the board's cooldown", Report{}, "", 300},
		{"the board says otherwise", Report{}, `{"rate_limit_cooldown":20}`, 20},
		{"the harness told the time", Report{ResetAt: t0 + 1_800_000}, "", 1800},
		{"the harness told how long", Report{ResetIn: 40_000}, "", 40},
		{"it was told late", Report{ResetIn: 40_000, Ago: 10_000}, "", 30},
		{"a time that is over", Report{ResetAt: t0 - 1000}, "", 300},
		{"for ever", Report{ResetAt: t0 + 1<<42}, "", 7 * 86400},
		{"0 is off", Report{ResetIn: 40_000}, `{"rate_limit_cooldown":0}`, 0},
	} {
		t.Run(x.name, func(t *testing.T) {
			w := limitWorld(t)
			if x.params != "" {
				w.params("web", x.params)
			}
			w.met("a", x.report)
			id := w.of("b")
			if x.after > 0 {
				w.after(x.after - 0.001)
				if got := w.tries(id, "atlas"); got != "cooldown" {
					t.Fatalf("refused by %q before the end", got)
				}
				w.after(0.001)
			}
			if got := w.tries(id, "atlas"); got != "" {
				t.Fatalf("refused by %q at the end", got)
			}
		})
	}
	w := limitWorld(t)
	w.met("a", Report{ResetIn: 900_000})
	w.met("team", Report{})
	later := GetCooldown(w.v, accountOf("", "n-atlas", "agent")).Until
	w.write(func(x *tx) *Error { // a run that met the limit a moment later, and knows less of it
		s, err := NewScope(x, w.ws, GetBoard(x, "web"), GetCard(x, w.of("a")), w.now, nil)
		if err != nil {
			return ruleError("x", err)
		}
		x.coolDown(&Run{ID: "web-9.1", Node: "n-atlas", Harness: "agent"}, s)
		return nil
	})
	if got := GetCooldown(w.v, accountOf("", "n-atlas", "agent")).Until; got != later {
		t.Fatalf("over at %d, and %d was known", got, later)
	}
	crashed := w.started(w.of("o"))
	w.exit(crashed.Card, 1)
	if GetCooldown(w.v, accountOf("", "n-atlas", "other")) != nil {
		t.Fatal("a crash is no rate limit")
	}
}

// A cooldown is state with a due time: it leaves the state when it is over, and
// says whose limit it is and until when; a start by force passes it.
func TestCooldownIsState(t *testing.T) {
	w := limitWorld(t)
	r := w.met("team", Report{ResetIn: 60_000})
	id := w.of("team")
	refused(t, w.start(id), "cooldown", `account "acme" is rate limited until 2027-01-15 08:01:00 UTC (run `+r.ID+` met the limit)`)
	refused(t, w.through(byAnn, VStart, Start{Card: id}, "n-borea"), "cooldown", "--force --why")
	if err := w.through(byAnn, VStart, Start{Card: id, Force: true, Why: "it was lifted"}, "n-borea"); err != nil {
		t.Fatalf("by force: %v", err)
	}
	if d := w.dues(DueCool); len(d) != 1 || d[0].At != w.now+60_000 {
		t.Fatalf("due times %+v", d)
	}
	w.after(60)
	w.write(func(x *tx) *Error {
		x.req.Args = jsonOf(DueArgs{Keys: []string{DueKey(w.now, DueCool, "account/acme")}})
		_, err := due(x)
		return err
	})
	if n := len(w.dues(DueCool)); GetCooldown(w.v, "account/acme") != nil || n != 0 {
		t.Fatalf("it is over and still there, with %d due times", n)
	}
}

// A card whose own session is counted waits for a limit as any other (it is no
// cap), and one that waits for it keeps no place for itself on that machine.
func TestCooldownAndReserves(t *testing.T) {
	c := newCaps(t, "[{description: d, counts: sessions, scope: machine, max: 2, reserve: {for: {status: reviewing}, slots: 1}}]")
	c.write(func(x *tx) *Error {
		x.put(TWorkflow, WorkflowKey("web", 1), &WorkflowDoc{Board: "web", Version: 1, Source: []byte(strings.NewReplacer(
			"rev: {harness: command,", "rev: {harness: command, account: acme,").Replace(string(GetWorkflowDoc(x, "web", 1).Source)))})
		return nil
	})
	c.hold(c.in("ready", nil), "worker", "n-atlas", nil)
	review, ready := c.in("review", nil), c.in("ready", nil)
	c.begin()
	c.want("while the review could start", c.admit(ready, "n-atlas"), "1 kept")
	c.write(func(x *tx) *Error { x.coolFor("account/acme", 1000); return nil })
	c.begin()
	c.want("while its account is under a limit", c.admit(ready, "n-atlas"), "")
	c.hold(review, "reviewer", "n-atlas", nil)
	c.begin()
	c.want("the review, which has its place", c.admit(review, "n-atlas"), "rate limited")
}

// A profile steps in only where the planned one asks for it, on the card's first
// start, and while that one is under a limit; the card says so and keeps it.
func TestFallbackAtTheClaim(t *testing.T) {
	by := func(w *world, card, profile string) *Error {
		_, err := w.firing(card, firing{Event: "start", Actor: Platform(), Start: &startCtx{Node: "n-atlas", Profile: profile}})
		return err
	}
	w := limitWorld(t)
	id := w.of("a")
	refused(t, by(w, id, "o"), "claimed_elsewhere", `played by "a" now, not by "o"`)
	w.met("b", Report{})
	refused(t, by(w, id, "sh"), "claimed_elsewhere", "")
	if err := by(w, id, "o"); err != nil {
		t.Fatal(err)
	}
	r := GetRun(w.v, w.card(id).Run)
	if r.Profile != "o" || r.Harness != "other" || r.Instead != "a" || w.card(id).Assignee != "o" {
		t.Fatalf("run %+v, assignee %q", r, w.card(id).Assignee)
	}
	said := w.lastEvent(id, "fallback")
	for _, words := range []string{`"profile":"o"`, `"instead_of":"a"`, "agent on atlas is rate limited until"} {
		if !strings.Contains(string(said.Payload), words) {
			t.Fatalf("the event says %s", said.Payload)
		}
	}
	if e := w.lastEvent(id, "assigned"); !strings.Contains(string(e.Payload), `"o"`) || !strings.Contains(string(e.Payload), "fallback of") {
		t.Fatalf("assigned: %s", e.Payload)
	}
	second := w.of("a")
	w.set(second, func(c *Card) { c.Runs = 1 })
	refused(t, by(w, second, "o"), "claimed_elsewhere", "") // what its session knows would be lost
	nobody := w.of("")
	w.params("web", `{"default_assignee":"b"}`)
	w.after(301)
	if err := by(w, nobody, "b"); err != nil || w.card(nobody).Assignee != "b" {
		t.Fatalf("DSP-08: planned as the loop does, assignee %q (%v)", w.card(nobody).Assignee, err)
	}
}

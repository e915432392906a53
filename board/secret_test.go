package board

import (
	"crypto/sha256"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// speaking is a card whose session runs and may speak, and how it asks.
func speaking(t *testing.T) (w *world, id string, say func(verb string, args any) Result) {
	w = agents(t)
	id = w.add("x", func(c *Card) { c.Assignee = "claude" })
	r := w.claimed(id)
	w.report(r.ID, Report{Kind: ReportTaken})
	hash := sha256.Sum256([]byte("mine"))
	w.report(r.ID, Report{Kind: ReportLaunched, PID: 7, SecretHash: hash[:]})
	return w, id, func(verb string, args any) Result { return w.as(r.ID, "mine", verb, args) }
}

func (w *world) as(run, secret, verb string, args any) Result {
	w.t.Helper()
	return w.ask(Actor{Kind: ActorRun, Run: run, Node: "n-atlas"}, verb, args, func(r *Request) { r.Secret = secret })
}

// verbs are all verbs that the package names, by reading its source: a new one must be decided on here.
func verbs(t *testing.T) (list []string) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		f, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(f, func(n ast.Node) bool {
			spec, ok := n.(*ast.ValueSpec)
			if !ok {
				return true
			}
			for i, id := range spec.Names {
				if len(id.Name) > 1 && id.Name[0] == 'V' && id.Name[1] >= 'A' && id.Name[1] <= 'Z' && i < len(spec.Values) {
					if lit, ok := spec.Values[i].(*ast.BasicLit); ok && lit.Kind == token.STRING {
						s, _ := strconv.Unquote(lit.Value)
						list = append(list, s)
					}
				}
			}
			return true
		})
	}
	return list
}

// Invariant 24: what a run's secret allows, over every verb there is: filing cards
// and saying events; a consistent read; nothing else, whatever it asks.
func TestARunsSecretOverEveryVerb(t *testing.T) {
	allowed := []string{VCardAdd, VEvent, VBarrier}
	all := verbs(t)
	if len(all) < 25 || !slices.Contains(all, VAdopt) {
		t.Fatalf("only %d verbs were found", len(all))
	}
	for _, verb := range all {
		w, id, say := speaking(t)
		if _, ok := verbOf(verb); !ok {
			t.Errorf("%s is no verb that Exec knows", verb)
		}
		args := map[string]any{}
		switch verb {
		case VCardAdd:
			args = map[string]any{"board": "web", "title": "an idea"}
		case VEvent:
			args = map[string]any{"card": id, "event": "comment", "payload": map[string]any{"text": "hm"}}
		}
		seq := w.v.Seq()
		res := say(verb, args)
		if ok := slices.Contains(allowed, verb); ok != (res.Err == nil) {
			t.Errorf("%s by a session: %v", verb, res.Err)
		} else if !ok && w.v.Seq() != seq {
			t.Errorf("%s was refused and wrote something", verb)
		}
	}
}

// Invariant 24: its role's events on its card, the implementer's on the card's
// parts, comments where a link is, cards as parts or ideas; no machine, no
// workspace, no profile beyond what it may; and only while its run goes on.
func TestWhatARunsSecretAllows(t *testing.T) {
	event := func(card, name string) FireEvent {
		return FireEvent{Card: card, Event: name, Payload: map[string]any{"text": "t", "summary": "s", "kind": "needs_input", "reason": "r"}}
	}
	add := func(set func(a *CardAdd)) CardAdd {
		title := "new"
		a := CardAdd{Board: "web", CardFields: CardFields{Title: &title}}
		set(&a)
		return a
	}
	word := func(s string) *string { return &s }
	for _, c := range []struct {
		name  string
		ok    bool
		words string
		ask   func(w *world, id, part, linked, other string) (string, any)
	}{
		{"its role's event", true, "", func(w *world, id, _, _, _ string) (string, any) { return VEvent, event(id, "request_review") }},
		{"a reviewer's event", false, "", func(w *world, id, _, _, _ string) (string, any) { return VEvent, event(id, "request_changes") }},
		{"a manager's event", false, "", func(w *world, id, _, _, _ string) (string, any) { return VEvent, event(id, "cancel") }},
		{"an event of the fleet", false, "", func(w *world, id, _, _, _ string) (string, any) { return VEvent, event(id, "exited") }},
		{"completes a part", true, "", func(w *world, _, part, _, _ string) (string, any) { return VEvent, event(part, "complete") }},
		{"cancels a part", false, "", func(w *world, _, part, _, _ string) (string, any) { return VEvent, event(part, "cancel") }},
		{"comments on a linked card", true, "", func(w *world, _, _, linked, _ string) (string, any) { return VEvent, event(linked, "comment") }},
		{"blocks a linked card", false, "own card", func(w *world, _, _, linked, _ string) (string, any) { return VEvent, event(linked, "block") }},
		{"comments elsewhere", false, "own card", func(w *world, _, _, _, other string) (string, any) { return VEvent, event(other, "comment") }},
		{"files a part", true, "", func(w *world, id, _, _, _ string) (string, any) {
			return VCardAdd, add(func(a *CardAdd) { a.SubtaskOf = id })
		}},
		{"files a part of another card", false, "its own card", func(w *world, _, _, _, other string) (string, any) {
			return VCardAdd, add(func(a *CardAdd) { a.SubtaskOf = other })
		}},
		{"names a machine", false, "no machine", func(w *world, _, _, _, _ string) (string, any) {
			return VCardAdd, add(func(a *CardAdd) { a.Machine = word("atlas") })
		}},
		{"names a workspace", false, "no workspace", func(w *world, _, _, _, _ string) (string, any) {
			return VCardAdd, add(func(a *CardAdd) { a.Workspace = word("dir:/etc") })
		}},
		{"names another profile", false, "its own profile", func(w *world, _, _, _, _ string) (string, any) {
			return VCardAdd, add(func(a *CardAdd) { a.Assignee = word("sh") })
		}},
		{"names a profile that is listed", true, "", func(w *world, _, _, _, _ string) (string, any) {
			w.params("web", `{"session_profiles":["sh"]}`)
			return VCardAdd, add(func(a *CardAdd) { a.Assignee = word("sh") })
		}},
		{"another board", false, "its own board", func(w *world, _, _, _, _ string) (string, any) {
			w.board("docs", "")
			return VCardAdd, add(func(a *CardAdd) { a.Board = "docs" })
		}},
		{"after its end", false, "over", func(w *world, id, _, _, _ string) (string, any) {
			w.must(id, "reclaim", manager)
			return VEvent, event(id, "comment")
		}},
		{"reads after it is gone", false, "over", func(w *world, id, _, _, _ string) (string, any) {
			w.exited(w.card(id).Run, 1)
			return VBarrier, nil
		}},
		{"forces", false, "", func(w *world, id, _, _, _ string) (string, any) {
			return VEvent, FireEvent{Card: id, Event: "block", Force: true, Why: "x"}
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w, id, say := speaking(t)
			part := w.add("part", func(x *Card) { x.SubtaskOf = id })
			linked := w.add("linked", nil, id)
			other := w.add("other", nil)
			verb, args := c.ask(w, id, part, linked, other)
			res := say(verb, args)
			if c.ok != (res.Err == nil) {
				t.Fatalf("%v", res.Err)
			}
			if !c.ok && !strings.Contains(res.Err.Message, c.words) {
				t.Fatalf("%s does not say %q", res.Err.Message, c.words)
			}
		})
	}
}

// Invariant 24: what a session files beyond its card starts in triage, at most 20 a run and 100 waiting on a board.
func TestASessionsFilingIsBounded(t *testing.T) {
	w, id, say := speaking(t)
	title := "idea"
	file := func(part bool) Result {
		a := CardAdd{Board: "web", CardFields: CardFields{Title: &title}}
		if part {
			a.SubtaskOf = id
		}
		return say(VCardAdd, a)
	}
	if res := file(false); res.Err != nil || !strings.Contains(string(res.Data), "triage") {
		t.Fatalf("%s %v", res.Data, res.Err)
	}
	for n := 1; n < runFiles; n++ {
		if res := file(true); res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	if res := file(true); CodeOf(res.Err) != Exhausted {
		t.Fatalf("card %d: %v", runFiles+1, res.Err)
	}
	w2, _, say2 := speaking(t)
	for range triageWaits {
		w2.addBy("web", Actor{Kind: ActorRun, Run: "web-9.1", Name: "web-9.1"}, "idea", nil, nil)
	}
	if res := say2(VCardAdd, CardAdd{Board: "web", CardFields: CardFields{Title: &title}}); CodeOf(res.Err) != Exhausted {
		t.Fatal(res.Err)
	}
	if res := w.as(w.card(id).Run, "another's", VBarrier, nil); res.Err == nil || res.Err.Check != "secret" {
		t.Fatalf("a wrong secret: %v", res.Err)
	}
}

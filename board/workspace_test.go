package board

import (
	"slices"
	"strings"
	"testing"
)

// places is a board whose worker has a worktree and whose reviewer names no workspace.
func places(t testing.TB) *world {
	w := newWorld(t, `
version: 1
name: web
extends: default
params: {reviewer: rev}
profiles:
  wt:
    harness: command
    args: [true]
    verdict: explicit
    workspace: {kind: worktree, repo: app, base: next, branch: 'work/{{ card.id }}', push: origin, setup: make deps, teardown: make clean, timeout: 30, bring: [.env]}
  rev: {harness: command, args: [true]}
  here: {harness: command, args: [true], workspace: {kind: dir, path: /srv/app}}
  there: {parent: here, workspace: {path: /srv/other}}
`)
	w.node("brick", 4)
	return w
}

// M-35, WSP-01: the workspace that the first session's profile asks for is the
// card's, and every slot works in it and keeps it, whatever its own profile says.
func TestCardsWorkspaceIsSharedByItsSlots(t *testing.T) {
	w := places(t)
	id := w.add("x", func(c *Card) { c.Assignee = "wt" })
	r := w.started(id)
	want := WorkSpec{Branch: "work/" + id, Base: "next", Push: "origin", Setup: "make deps", Teardown: "make clean", Timeout: 30000, Bring: []string{".env"}}
	same := func(s StartSpec) bool {
		x := *s.Work
		return s.Workspace == "worktree:app" && x.Branch == want.Branch && x.Base == want.Base && x.Push == want.Push && x.Setup == want.Setup &&
			x.Teardown == want.Teardown && x.Timeout == want.Timeout && slices.Equal(x.Bring, want.Bring)
	}
	if s := w.spec(r); !same(s) || s.Env["MUSTER_BRANCH"] != want.Branch {
		t.Fatalf("%q %+v", s.Workspace, s.Work)
	}
	if c := w.card(id); c.Workspace != "worktree:app" || c.Branch != want.Branch || c.WorkProfile != "wt" {
		t.Fatalf("%+v", c)
	}
	w.must(id, "request_review", Actor{Kind: ActorRun, Role: "implementer", Run: r.ID, Name: r.ID}, "summary", "s")
	w.gone(r.ID)
	rev := w.started(id)
	if s := w.spec(rev); rev.Profile != "rev" || !same(s) {
		t.Fatalf("%s: %q %+v", rev.Profile, s.Workspace, s.Work)
	}
}

// A card that names its own place takes nothing of another kind from its profile.
func TestCardsOwnWorkspace(t *testing.T) {
	w := places(t)
	for ws, want := range map[string]WorkSpec{
		"scratch":        {},
		"dir:/tmp":       {},
		"worktree:other": {Branch: "topic", Base: "next", Push: "origin", Setup: "make deps"},
	} {
		id := w.add(ws, func(c *Card) {
			c.Assignee, c.Workspace = "wt", ws
			if want.Branch != "" {
				c.Branch = want.Branch
			}
		})
		s := w.spec(w.started(id))
		if s.Workspace != ws || s.Work.Branch != want.Branch || s.Work.Base != want.Base || s.Work.Push != want.Push || s.Work.Setup != want.Setup {
			t.Errorf("%s: %q %+v", ws, s.Workspace, s.Work)
		}
		if c := w.card(id); c.WorkProfile != "" {
			t.Errorf("%s: %+v", ws, c)
		}
	}
	id := w.add("nothing said", func(c *Card) { c.Assignee = "rev" })
	if s := w.spec(w.started(id)); s.Workspace != "scratch" || w.card(id).Workspace != "" {
		t.Errorf("%q, the card has %q", s.Workspace, w.card(id).Workspace)
	}
}

// A branch that a template makes is looked at like one that a person names.
func TestBranchOfATemplate(t *testing.T) {
	w := newWorld(t, "version: 1\nname: web\nextends: default\nprofiles: {wt: {harness: command, args: [true], workspace: {kind: worktree, repo: app, branch: '{{ card.title }}'}}}\n")
	if err := w.start(w.add("--upload-pack=x", func(c *Card) { c.Assignee = "wt" })); err == nil || !strings.Contains(err.Message, "no name for a branch") {
		t.Errorf("%v", err)
	}
	if s := w.spec(w.started(w.add("fix-it", func(c *Card) { c.Assignee = "wt" }))); s.Work.Branch != "fix-it" {
		t.Errorf("%+v", s.Work)
	}
}

// M-05: a start elsewhere is told the commit that the work was saved at; what was
// left behind with unsaved work is not looked for.
func TestSavedWorkIsLookedForElsewhere(t *testing.T) {
	w := places(t)
	id := w.add("x", func(c *Card) { c.Assignee = "wt" })
	end := func(work, head string) {
		t.Helper()
		r := w.started(id)
		code := int64(75)
		w.report(r.ID, Report{Kind: ReportExited, Code: &code, Work: work, Head: head})
		w.after(1000)
	}
	end("saved", "abc")
	if s := w.spec(w.started(id)); s.Work.Head != "abc" {
		t.Errorf("%+v", s.Work)
	}
	code := int64(75)
	w.report(w.card(id).Run, Report{Kind: ReportExited, Code: &code, Work: "uncommitted"})
	if c := w.card(id); c.WorkHead != "abc" || c.WorkLeft != "uncommitted" || c.WorkNode != "n-atlas" {
		t.Errorf("%+v", c)
	}
	if res := w.ask(person, VMove, Move{Card: id, Machine: "brick"}); res.Err != nil {
		t.Fatal(res.Err)
	}
	if c := w.card(id); c.WorkHead != "" || c.WorkLeft != "" {
		t.Errorf("%+v", c)
	}
}

// WSP-02: one card at a time has a folder that a person named, on each machine.
func TestFolderHasOneCard(t *testing.T) {
	w := places(t)
	first := w.add("first", func(c *Card) { c.Assignee = "here" })
	w.started(first)
	second := w.add("second", func(c *Card) { c.Assignee = "here" })
	refused(t, w.start(second), "workspace", "/srv/app on atlas is worked in by card "+first)
	if _, err := w.startOn(second, "brick"); err != nil {
		t.Errorf("on another machine: %v", err)
	}
	if err := w.start(w.add("third", func(c *Card) { c.Assignee = "there" })); err != nil {
		t.Errorf("in another folder: %v", err)
	}
	dir := "dir:/srv/moved"
	w.ok(VCardEdit, CardEdit{Card: first, CardFields: CardFields{Workspace: &dir}})
	refused(t, w.start(w.add("moved", func(c *Card) { c.Assignee = "here" })), "workspace", "worked in by card "+first)
	w.exit(first, 0)
	if err := w.start(w.add("fourth", func(c *Card) { c.Assignee = "here" })); err != nil {
		t.Errorf("after its end: %v", err)
	}
}

// M-05: what a session saved is looked for in the place that it worked in. A card
// that was given another one, by whomever and whenever, begins there afresh.
func TestAnotherPlaceHasNothingSaved(t *testing.T) {
	other, topic := "worktree:other", "topic"
	for name, c := range map[string]struct {
		while bool // the session works
		place func(w *world, id string)
	}{
		"another repository": {false, func(w *world, id string) {
			w.ok(VCardEdit, CardEdit{Card: id, CardFields: CardFields{Workspace: &other}})
		}},
		"another repository while it runs": {true, func(w *world, id string) {
			w.ok(VCardEdit, CardEdit{Card: id, CardFields: CardFields{Workspace: &other}})
		}},
		"another branch while it runs": {true, func(w *world, id string) { w.ok(VCardEdit, CardEdit{Card: id, CardFields: CardFields{Branch: &topic}}) }},
		"another branch":               {false, func(w *world, id string) { w.ok(VCardEdit, CardEdit{Card: id, CardFields: CardFields{Branch: &topic}}) }},
		"by the workflow": {false, func(w *world, id string) {
			w.write(func(x *tx) *Error {
				c := GetCard(x, id)
				err := setText(x, c, "workspace", other, nil)
				x.putCard(c)
				return err
			})
		}},
		"a branch by the workflow": {false, func(w *world, id string) {
			w.write(func(x *tx) *Error {
				c := GetCard(x, id)
				err := setText(x, c, "branch", topic, nil)
				x.putCard(c)
				return err
			})
		}},
	} {
		t.Run(name, func(t *testing.T) {
			w := places(t)
			id, code := w.add("x", func(c *Card) { c.Assignee = "wt" }), int64(75)
			r := w.started(id)
			if c.while {
				c.place(w, id)
			}
			w.report(r.ID, Report{Kind: ReportExited, Code: &code, Work: "saved", Head: "abc"})
			if !c.while {
				if w.card(id).WorkHead != "abc" {
					t.Fatalf("%+v", w.card(id))
				}
				c.place(w, id)
			}
			w.after(1000)
			if s := w.spec(w.started(id)); s.Work.Head != "" {
				t.Errorf("%q on %q is looked for %s", s.Workspace, s.Work.Branch, s.Work.Head)
			}
		})
	}
}

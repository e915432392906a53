package mirror

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api/apitest"
)

type source struct{ f *apitest.Fleet }

func (s source) View(fn func(board.View) error) error {
	_, err := s.f.Read(context.Background(), false, fn)
	return err
}

// far makes the repository that is mirrored to.
func far(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "far")
	if err := (git{dir}).open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return dir
}

func machine(t *testing.T, f *apitest.Fleet, repo string) *Mirror {
	t.Helper()
	m := &Mirror{Board: "default", Dir: filepath.Join(t.TempDir(), "own"), Config: Config{Repo: repo, Folder: "web"}, Source: source{f}}
	if err := m.Check(); err != nil {
		t.Fatal(err)
	}
	if err := m.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	return m
}

// pass is all that a machine does when something happened.
func pass(t *testing.T, m *Mirror) {
	t.Helper()
	if err := m.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := m.Push(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func history(t *testing.T, repo string) string {
	t.Helper()
	s, err := (git{repo}).run(t.Context(), nil, "log", "--format=%H %an <%ae> %s | %(trailers:key=Muster-Event,valueonly,separator=)", "refs/heads/muster")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// eventsOf are the events of a history, oldest first; one that stands twice fails.
func eventsOf(t *testing.T, repo string) (list []string) {
	t.Helper()
	seen := map[string]bool{}
	for _, l := range strings.Split(history(t, repo), "\n") {
		id := l[strings.LastIndex(l, " ")+1:]
		if seen[id] {
			t.Errorf("event %s is mirrored twice", id)
		}
		seen[id] = true
		list = append([]string{id}, list...)
	}
	return list
}

func say(f *apitest.Fleet, card, text string) {
	f.Pass(time.Second)
	f.Must(apitest.Manager(), board.VEvent, board.FireEvent{Card: card, Event: "comment", Payload: map[string]any{"text": text}})
}

// day lets a board have a day; after each thing that happens it calls then.
func day(f *apitest.Fleet, then func()) {
	for i := range 6 {
		title := fmt.Sprint("card ", i)
		f.Pass(time.Second)
		id, _ := f.Must(apitest.Manager(), board.VCardAdd, board.CardAdd{Board: "default", CardFields: board.CardFields{Title: &title}})["id"].(string)
		then()
		say(f, id, "first")
		then()
		run := f.Run(id, "s"+id)
		then()
		say(f, id, "second")
		f.Exit(run, 0)
		then()
	}
	keep := map[string]any{"board": "default", "set": map[string]any{"keep": 30}}
	f.Must(apitest.Manager(), board.VBoardSet, keep)
	then()
}

// WSP-04, M-30: each event is a commit by its actor, and what is mirrored is not mirrored again.
func TestEachEventIsACommit(t *testing.T) {
	f := apitest.Story()
	repo := far(t)
	m := machine(t, f, repo)
	pass(t, m)
	say(f, "d-4", "blue")
	pass(t, m)
	say(f, "d-4", "or red")
	f.Must(apitest.Manager(), board.VEvent, board.FireEvent{Card: "d-4", Event: "unblock"})
	pass(t, m)
	h := history(t, repo)
	if n := strings.Count(h, "\n") + 1; n < 4 || !strings.Contains(h, "ann <ann@atlas> d-4: comment") || !strings.Contains(h, "d-4: unblock, ") || !strings.Contains(h, "board default: as it is") {
		t.Errorf("history:\n%s", h)
	}
	at := func(rev string) string {
		s, err := (git{repo}).run(t.Context(), nil, "show", rev+":web/cards/d-4.md")
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	if s := at("muster"); !strings.Contains(s, "blue") || !strings.Contains(s, "or red") || strings.Contains(s, "status: blocked") {
		t.Errorf("d-4 is\n%s", s)
	}
	before := m.Commits
	pass(t, m)
	again := machine(t, f, repo)
	pass(t, again)
	if m.Commits != before || again.Commits != 0 || history(t, repo) != h {
		t.Errorf("mirrored again: %d, %d", m.Commits-before, again.Commits)
	}
}

// WSP-04: what happens on other boards is read once and asks nothing of git; what happens here after that is still mirrored.
func TestOtherBoardsAreReadOnce(t *testing.T) {
	f := apitest.Story()
	repo := far(t)
	m := machine(t, f, repo)
	pass(t, m)
	f.Must(apitest.Manager(), board.VBoardCreate, board.BoardCreate{Slug: "other"})
	title := "elsewhere"
	id, _ := f.Must(apitest.Manager(), board.VCardAdd, board.CardAdd{Board: "other", CardFields: board.CardFields{Title: &title}})["id"].(string)
	for range 3 {
		say(f, id, "not here")
	}
	if err := os.Rename(m.Dir, m.Dir+".hidden"); err != nil { // a git that is asked fails
		t.Fatal(err)
	}
	from := m.walked
	if err := m.Commit(t.Context()); err != nil || m.walked <= from {
		t.Fatalf("from %s to %s: %v", from, m.walked, err)
	}
	if err := os.Rename(m.Dir+".hidden", m.Dir); err != nil {
		t.Fatal(err)
	}
	before := m.Commits
	say(f, "d-4", "here")
	pass(t, m)
	if h := history(t, repo); m.Commits != before+1 || strings.Contains(h, id) || !strings.Contains(strings.SplitN(h, "\n", 2)[0], "d-4: comment") {
		t.Errorf("%d commits:\n%s", m.Commits-before, h)
	}
}

// WSP-04: who comes late, or could not push for a week, makes the history of one that never failed.
func TestSameHistoryAfterAbsence(t *testing.T) {
	f := apitest.Story()
	prompt, late, cut := far(t), far(t), far(t)
	always, absent, offline := machine(t, f, prompt), machine(t, f, late), machine(t, f, cut)
	for _, m := range []*Mirror{always, absent, offline} {
		pass(t, m)
	}
	away := cut + ".away"
	if err := os.Rename(cut, away); err != nil {
		t.Fatal(err)
	}
	day(f, func() {
		pass(t, always)
		if err := offline.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := offline.Push(t.Context()); err == nil {
			t.Fatal("pushed to nothing")
		}
	})
	if err := os.Rename(away, cut); err != nil {
		t.Fatal(err)
	}
	pass(t, absent)
	pass(t, offline)
	want := history(t, prompt)
	if len(eventsOf(t, prompt)) < 25 {
		t.Errorf("too few events:\n%s", want)
	}
	if got := history(t, cut); got != want {
		t.Errorf("after a week without network:\n%s\n----\n%s", got, want)
	}
	if got := history(t, late); got != want {
		t.Errorf("after an absence:\n%s\n----\n%s", got, want)
	}
}

// WSP-04, M-30: two machines that mirror the same board push forward only, and no event twice, whoever was first.
func TestTwoMachinesMirrorOnce(t *testing.T) {
	f := apitest.Story()
	repo := far(t)
	a, b := machine(t, f, repo), machine(t, f, repo)
	pass(t, a)
	pass(t, b)
	for i := range 6 {
		say(f, "d-4", fmt.Sprint("word ", i))
		first, second := a, b
		if i%2 == 0 {
			first, second = b, a
		}
		if err := first.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		say(f, "d-3", fmt.Sprint("other ", i)) // the second knows more
		pass(t, second)
		if err := first.Push(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	pass(t, a)
	if n := len(eventsOf(t, repo)); n != 13 {
		t.Errorf("%d events:\n%s", n, history(t, repo))
	}
	if _, err := (git{repo}).run(t.Context(), nil, "fsck", "--strict"); err != nil {
		t.Error(err)
	}
	hand := machine(t, f, repo) // somebody pushes a commit of their own
	if err := hand.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
	tree, err := hand.git.run(t.Context(), nil, "commit-tree", "-p", "refs/heads/muster", "-m", "by hand", "refs/heads/muster^{tree}")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := hand.git.run(t.Context(), nil, "push", repo, tree+":refs/heads/muster"); err != nil {
		t.Fatal(err)
	}
	say(f, "d-4", "after it")
	pass(t, a)
	if h := history(t, repo); !strings.Contains(h, "by hand") || !strings.HasPrefix(h[41:], "ann <ann@atlas> d-4: comment") {
		t.Errorf("history:\n%s", h)
	}
}

// WSP-04: a git that was killed leaves its locks; the next start goes on.
func TestLocksOfAKilledGit(t *testing.T) {
	f := apitest.Story()
	repo := far(t)
	m := machine(t, f, repo)
	pass(t, m)
	if err := os.WriteFile(filepath.Join(m.Dir, "refs", "heads", "muster.lock"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	say(f, "d-4", "on")
	if err := m.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	pass(t, m)
	if n := len(eventsOf(t, repo)); n != 2 {
		t.Errorf("%d events", n)
	}
}

// WSP-04: a machine's file names a repository, a branch and a folder, and nothing that leads elsewhere.
func TestConfig(t *testing.T) {
	for _, c := range []Config{{}, {Repo: "--upload-pack=x"}, {Repo: "r", Branch: "-x"}, {Repo: "r", Branch: "a..b"}, {Repo: "r", Folder: "../x"}, {Repo: "r", Folder: "/x"}, {Repo: "r", Folder: ".git/hooks"}} {
		if c.Check() == nil {
			t.Errorf("%+v is taken", c)
		}
	}
	c := Config{Repo: "git@host:x.git", Folder: "boards/web"}
	if err := c.Check(); err != nil || c.Branch != "muster" {
		t.Errorf("%+v: %v", c, err)
	}
}

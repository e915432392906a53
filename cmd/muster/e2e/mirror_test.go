package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster/board"
)

// WSP-04, M-30: two machines mirror a board into a repository each. One loses its remote, the leader is killed -9 and comes back,
// that machine itself is away while the board goes on; then its remote is there again. Both histories are the same, files
// and authors and times, an event a commit.
func TestMirrorOverALeader(t *testing.T) {
	t.Parallel()
	repos := t.TempDir()
	repo := func(m *machine) string { return filepath.Join(repos, m.name+".git") }
	git := func(args ...string) string {
		t.Helper()
		out, err := exec.Command("git", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("git %v: %v: %s", args, err, out)
		}
		return strings.TrimSpace(string(out))
	}
	f := newFleetAt(t, 3, 2, func(i int, m *machine) {
		if i == 0 {
			return
		}
		git("init", "-q", "--bare", repo(m))
		if err := os.MkdirAll(m.data, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(m.data, "node.yaml"), []byte("mirrors: {default: {repo: "+repo(m)+", folder: web}}\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	})
	a, b, c := f.machines[0], f.machines[1], f.machines[2]
	f.allOnline(a)
	f.do(a, board.VPause, board.Pause{Why: "what happens is done by hand"})
	events := 0
	happens := func() {
		t.Helper()
		title := fmt.Sprint("card ", events)
		card := f.do(f.leader(), board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title}})["id"].(string)
		f.do(f.leader(), board.VEvent, board.FireEvent{Card: card, Event: "comment", Payload: map[string]any{"text": "words of " + title}})
		events += 2
	}
	pushed := func(m *machine) string {
		t.Helper()
		if _, stderr, code := m.run("board", "mirror", "default"); code != 0 {
			t.Fatalf("%s: %s", m.name, stderr)
		}
		log := git("--git-dir", repo(m), "log", "--reverse", "--format=%an %ae %ad %T %s", "muster")
		_, rest, _ := strings.Cut(log, "\n") // behind what each began with
		return rest
	}
	pushed(b)
	pushed(c)
	happens()
	pushed(b)
	pushed(c)
	if err := os.Rename(repo(c), repo(c)+".away"); err != nil {
		t.Fatal(err)
	}
	happens()
	l := f.leader()
	l.kill()
	happens()
	l.start()
	c.kill()
	happens()
	pushed(b)
	c.start()
	happens()
	f.sameState()
	if err := os.Rename(repo(c)+".away", repo(c)); err != nil {
		t.Fatal(err)
	}
	if x, y := pushed(b), pushed(c); x != y {
		t.Errorf("two histories:\n%s\nand\n%s", x, y)
	} else if log := x; strings.Count(log, ": created") != events/2 || strings.Count(log+"\n", ": comment\n") != events/2 {
		t.Errorf("of %d events:\n%s", events, log)
	}
}

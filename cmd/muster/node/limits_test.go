package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/board"
)

// The owner's limits are in node.yaml: what the machine takes is said to the fleet at
// its start, and asked once more before a session starts, as the file is then.
func TestLimitsOfTheOwner(t *testing.T) {
	n := &Node{cfg: Config{Name: "borea", Local: "member"}, dir: &folder{dir: t.TempDir()}}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(n.dir.dir, ownFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if why := n.accept("web", "command"); why != "" {
		t.Error(why)
	}
	write("boards: [docs]\nharnesses: [codex]\nlocal: viewer\n")
	up := board.NodeUp{Harnesses: []string{"command", "codex"}}
	if err := n.limits(&up); err != nil || len(up.Boards) != 1 || len(up.Harnesses) != 1 || up.Harnesses[0] != "codex" || up.Local != "viewer" {
		t.Errorf("said: %+v", up)
	}
	for _, c := range []struct{ board, harness, words string }{
		{"docs", "codex", ""}, {"web", "codex", "does not take board web"}, {"docs", "command", "does not run command"}, {"docs", "", "does not run command"},
	} {
		if why := n.accept(c.board, c.harness); !strings.Contains(why, c.words) || (c.words == "") != (why == "") {
			t.Errorf("%s %s: %q", c.board, c.harness, why)
		}
	}
	write("local: manager\n") // never more than the start said
	if err := n.limits(&up); err != nil || up.Local != "member" {
		t.Errorf("local: %s, %v", up.Local, err)
	}
	write("boards: docs\n")
	if err := n.limits(&up); err == nil {
		t.Error("a file that cannot be read is no limits")
	}
	if why := n.accept("docs", "codex"); !strings.Contains(why, "takes nothing") {
		t.Errorf("a broken file: %q", why)
	}
	for text, words := range map[string]string{"run_as: nobody\n": "as the node's own user only", "local: king\n": "none of manager"} {
		write(text)
		if _, err := n.own(); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// On a real node: an order for a board that the machine's owner closed meanwhile is refused there.
func TestAClosedBoardStartsNothing(t *testing.T) {
	n := open(t, testConfig(t, "atlas"))
	n.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	if err := os.WriteFile(n.dir.path(ownFile), []byte("boards: [docs]\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	card := n.testAdd(t, "hello", "true")
	n.until(t, "the start is refused", func() bool {
		found := false
		_ = n.store.View(func(v board.View) error {
			board.EachRun(v, card, func(r *board.Run) bool {
				found = found || strings.Contains(r.Error, "does not take board default")
				return true
			})
			return nil
		})
		return found
	})
}

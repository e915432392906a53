package node

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"muster/board"
)

func gitLog(t *testing.T, repo string) string {
	t.Helper()
	out, err := exec.Command("git", "--git-dir", repo, "log", "--reverse", "--format=%an %s", "muster").CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// WSP-04, M-30: a machine mirrors what its file says; the verb waits for the push; an event is mirrored once, also over a restart; without
// its repository the machine goes on, says so, and pushes later.
func TestMachineMirrors(t *testing.T) {
	repo := filepath.Join(t.TempDir(), "boards.git")
	if out, err := exec.Command("git", "init", "-q", "--bare", repo).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	cfg := testConfig(t, "atlas")
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cfg.Data, "node.yaml"), []byte("mirrors: {default: {repo: "+repo+", folder: web}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n := open(t, cfg)
	n.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	pushed := func(n *Node) {
		t.Helper()
		if _, err := (backend{n}).Mirror(t.Context(), "default"); err != nil {
			t.Fatal(err, n.Err())
		}
	}
	pushed(n)
	for i := range 3 {
		n.testAdd(t, fmt.Sprint("card ", i), "")
		pushed(n)
	}
	log := gitLog(t, repo)
	if err := n.Close(); err != nil {
		t.Fatal(err)
	}
	n = open(t, n.cfg)
	n.testAdd(t, "after the restart", "")
	pushed(n)
	pushed(n) // nothing is left: that is no error
	if got := gitLog(t, repo); !strings.HasPrefix(got, log) || strings.Count(got, ": created") != 4 || strings.Count(got, "as it is") != 1 {
		t.Errorf("history:\n%s\nbefore the restart:\n%s", got, log)
	}
	if _, err := (backend{n}).Mirror(t.Context(), "web"); board.CodeOf(err) != board.NotFound {
		t.Errorf("a board without a mirror: %v", err)
	}
	if err := os.Rename(repo, repo+".away"); err != nil {
		t.Fatal(err)
	}
	n.testAdd(t, "without the repository", "")
	if _, err := (backend{n}).Mirror(t.Context(), "default"); board.CodeOf(err) != board.Unavailable {
		t.Errorf("without a repository: %v", err)
	}
	if list := strings.Join(n.ownAlarms(), "\n"); !strings.Contains(list, "the mirror of board default") {
		t.Errorf("alarms: %q", list)
	}
	if err := os.Rename(repo+".away", repo); err != nil {
		t.Fatal(err)
	}
	pushed(n)
	if got := gitLog(t, repo); strings.Count(got, ": created") != 5 || strings.Count(got, "as it is") != 1 {
		t.Errorf("history:\n%s", got)
	}
}

// A mirror that cannot be stops the start of its machine, in words.
func TestBadMirrorIsRefused(t *testing.T) {
	cfg := testConfig(t, "atlas")
	if err := os.MkdirAll(cfg.Data, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(cfg.Data, "node.yaml"), []byte("mirrors: {default: {repo: x, folder: ../y}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	n, err := New(cfg)
	if err == nil {
		err = n.Open(t.Context())
		n.Close()
	}
	if err == nil || !strings.Contains(err.Error(), `mirrors: default: folder: "../y"`) {
		t.Errorf("%v", err)
	}
}

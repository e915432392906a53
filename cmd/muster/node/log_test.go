package node

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/board"
)

// A log whose folder is gone is told as that, from the machine itself and from
// every other one; only a machine that does not answer is one that does not answer.
func TestLogWhoseFolderIsGone(t *testing.T) {
	nodes := threeVoters(t)
	a := nodes[0]
	run := board.RunID(a.testAdd(t, "says", "echo here"), 1)
	a.waitStatus(t, board.CardOfRun(run), "done")
	var where, name string
	_ = a.store.View(func(v board.View) error {
		where = board.GetRun(v, run).Node
		name = board.GetNode(v, where).Name
		return nil
	})
	for _, n := range nodes {
		n.waitStatus(t, board.CardOfRun(run), "done")
		if x, err := (backend{n}).ReadLog(t.Context(), run, 0, 100, false); err != nil || string(x.Chunk) != "here\n" {
			t.Fatalf("%s reads %q (%v)", n.cfg.Name, x.Chunk, err)
		}
		if string(n.ident.ID) == where {
			defer func(dir string) { _ = os.Rename(dir+".away", dir) }(filepath.Join(n.cfg.Data, "runs", run))
		}
	}
	for _, n := range nodes {
		if string(n.ident.ID) == where {
			if err := os.Rename(filepath.Join(n.cfg.Data, "runs", run), filepath.Join(n.cfg.Data, "runs", run)+".away"); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, n := range nodes {
		_, err := (backend{n}).ReadLog(t.Context(), run, 0, 100, false)
		if !errors.Is(err, &board.Error{Code: board.NotFound}) || !strings.Contains(err.Error(), name+" has no log") || !strings.Contains(err.Error(), "folder is not there") {
			t.Errorf("%s says %v", n.cfg.Name, err)
		}
	}
}

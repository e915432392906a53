package launcher

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/launcher/memory"
)

// folders is a machine with an agent's folders and snapshots, and no sessions.
func folders(t *testing.T) *Reconciler {
	t.Helper()
	return &Reconciler{cfg: Config{Dir: t.TempDir(), Name: "atlas"}, log: slog.New(slog.DiscardHandler)}
}

// remembered is an agent whose newest snapshot, taken here, holds one file.
func remembered(t *testing.T, r *Reconciler) *board.SpecAgent {
	t.Helper()
	a := &board.SpecAgent{ID: "ag-00112233445566778899", Node: "n-atlas"}
	home := r.home(a, "d-1.1")
	must(t, os.MkdirAll(home, 0o700))
	must(t, os.WriteFile(filepath.Join(home, "notes"), []byte("what was learned"), 0o600))
	m := r.takeMemory(context.Background(), &Spec{Run: "d-1.1", AgentHome: home}, endTime)
	if m == nil || m.Hash == "" {
		t.Fatalf("no snapshot: %+v", m)
	}
	a.Hash = m.Hash
	return a
}

func (r *Reconciler) notes(t *testing.T, a *board.SpecAgent, run string) string {
	t.Helper()
	home, note, err := r.readyMemory(context.Background(), a, run, false)
	if err != nil || note != "" {
		t.Fatalf("not ready: %v %q", err, note)
	}
	b, err := os.ReadFile(filepath.Join(home, "notes"))
	if err != nil {
		t.Errorf("the session begins without its memory: %v", err)
	}
	return string(b)
}

// M-29: a session never begins with an empty folder because that went: killed while a snapshot was put in its place, or
// taken away by somebody, the folder is laid out again, whatever stands beside it of what it was.
func TestFolderThatWentIsLaidOutAgain(t *testing.T) {
	t.Parallel()
	r := folders(t)
	a := remembered(t, r)
	must(t, os.Rename(r.home(a, ""), r.home(a, "")+".old")) // where a node dies between the two renames
	if got := r.notes(t, a, "d-1.2"); got != "what was learned" {
		t.Errorf("it begins with %q", got)
	}
}

// M-29: what is ahead of its snapshot stays as it is; what another machine went past is kept, and what no snapshot can hold
// is kept as a folder: nothing that a session wrote is deleted.
func TestWhatAFolderHeldIsKept(t *testing.T) {
	t.Parallel()
	r := folders(t)
	a := remembered(t, r)
	home := r.home(a, "")
	must(t, os.WriteFile(filepath.Join(home, "notes"), []byte("more"), 0o600))
	if got := r.notes(t, a, "d-1.2"); got != "more" {
		t.Errorf("ahead of its snapshot it begins with %q", got)
	}
	must(t, os.WriteFile(home+".base", []byte(strings.Repeat("0", 64)), 0o600)) // another machine went past it
	for i := range memory.MaxFiles {
		must(t, os.WriteFile(filepath.Join(home, fmt.Sprintf("f%d", i)), nil, 0o600))
	}
	if got := r.notes(t, a, "d-1.3"); got != "what was learned" {
		t.Errorf("gone past, it begins with %q", got)
	}
	b, err := os.ReadFile(filepath.Join(home+".aside-d-1.3", "notes"))
	if err != nil || string(b) != "more" {
		t.Errorf("what no snapshot can hold is kept as %q, %v", b, err)
	}
}

// M-37: the folder of an agent that has left the state goes; not that of one that is known, that a run has, or that is young.
func TestFoldersOfAgentsThatLeft(t *testing.T) {
	r := folders(t)
	for _, name := range []string{"ag-aaaaaaaaaaaa", "ag-bbbbbbbbbbbb", "ag-cccccccccccc", "ag-cccccccccccc.d-1.2", "ag-dddddddddddd.aside-d-1.3", "else"} {
		home := filepath.Join(r.cfg.Dir, "agents", name)
		must(t, os.MkdirAll(home, 0o700))
		must(t, os.WriteFile(filepath.Join(home, "notes"), nil, 0o600))
		must(t, setBase(home, "x"))
	}
	left := func() string {
		l, err := filepath.Glob(filepath.Join(r.cfg.Dir, "agents", "*"))
		must(t, err)
		for i := range l {
			l[i] = filepath.Base(l[i])
		}
		return strings.Join(l, " ")
	}
	all := left()
	known, used := map[string]bool{"ag-aaaaaaaaaaaa": true}, map[string]bool{"ag-cccccccccccc.d-1.2": true}
	must(t, r.dropFolders(known, used, time.Now().Add(-time.Hour)))
	if got := left(); got != all {
		t.Errorf("of what is young stays: %s", got)
	}
	must(t, r.dropFolders(known, used, time.Now().Add(time.Hour)))
	if got := left(); got != "ag-aaaaaaaaaaaa ag-aaaaaaaaaaaa.base ag-cccccccccccc.d-1.2 ag-cccccccccccc.d-1.2.base ag-dddddddddddd.aside-d-1.3 ag-dddddddddddd.aside-d-1.3.base else else.base" {
		t.Errorf("left: %s", got)
	}
}

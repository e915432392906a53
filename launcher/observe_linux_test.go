package launcher

import (
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"muster/board"
)

// SUP-07, M-10: a node tells, as changes, that nothing is heard of a session, and that something is again; of one whose
// workflow does not ask, and of one that talks, nothing.
func TestQuietSessionIsTold(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(c *Config) { c.quiet = 200 * time.Millisecond })
	n.apply(t, testWorkflow+"params: {stale: null}\n")
	other := n.start("sh", "while [ ! -e end ]; do sleep 0.05; done")
	n.launched(other)
	n.apply(t, testWorkflow+"params: {stale: 1}\n")
	run := n.start("sh", "echo one; while [ ! -e go ]; do sleep 0.05; done; echo two; while [ ! -e end ]; do sleep 0.05; done")
	quiet := func(times int, kind string) {
		t.Helper()
		eventually(t, kind, func() bool { return count(n.reports(run), kind) == times })
	}
	quiet(1, board.ReportQuiet)
	if r := n.fleet.run(run); r.Session.Quiet == 0 {
		t.Error("the state does not know since when")
	}
	must(t, os.WriteFile(filepath.Join(n.fleet.run(run).Workspace, "go"), nil, 0o600))
	quiet(1, board.ReportHeard)
	quiet(2, board.ReportQuiet)
	if got := n.reports(other); slices.Contains(got, board.ReportQuiet) {
		t.Errorf("nobody asked about %s: %v", other, got)
	}
	for _, id := range []string{run, other} {
		must(t, os.WriteFile(filepath.Join(n.fleet.run(id).Workspace, "end"), nil, 0o600))
		n.gone(id)
	}
}

// SUP-07: what an earlier life of a node told is over when the session has written since: else it would be called stale.
func TestQuietBeforeARestartIsHeardAfterIt(t *testing.T) {
	t.Parallel()
	n := newNode(t, func(c *Config) { c.quiet = 200 * time.Millisecond })
	n.apply(t, testWorkflow+"params: {stale: 1}\n")
	run := n.start("sh", "while [ ! -e go ]; do sleep 0.05; done; echo two; while [ ! -e end ]; do sleep 0.05; done")
	n.launched(run)
	eventually(t, "its silence", func() bool { return n.fleet.run(run).Session.Quiet != 0 })
	must(t, n.Close())
	must(t, os.WriteFile(filepath.Join(n.fleet.run(run).Workspace, "go"), nil, 0o600))
	n.logHas(run, "two")
	n.cfg.quiet = time.Hour
	n.open()
	eventually(t, "that it is heard again", func() bool { return n.fleet.run(run).Session.Quiet == 0 })
	must(t, os.WriteFile(filepath.Join(n.fleet.run(run).Workspace, "end"), nil, 0o600))
	n.gone(run)
	if got := count(n.reports(run), board.ReportHeard); got != 1 {
		t.Errorf("told %d times", got)
	}
}

func count(list []string, s string) (k int) {
	for _, x := range list {
		if x == s {
			k++
		}
	}
	return k
}

// SUP-14, M-10: a session whose keeper is dead is missing as long as its node cannot verify that nothing of it lives; it
// is told once. When it can, its end is told.
func TestMissingIsToldOnce(t *testing.T) {
	t.Parallel()
	c := &cannotEnd{Keepers: testKeepers(t)}
	c.full.Store(true)
	n := newNode(t, func(cfg *Config) { cfg.Runner = c })
	run := n.start("sh", "while :; do sleep 1; done")
	n.launched(run)
	p, err := ReadProc(filepath.Join(n.cfg.Dir, "runs", run))
	must(t, err)
	must(t, syscall.Kill(p.Keeper, syscall.SIGKILL))
	eventually(t, "the third try", func() bool { return len(c.tries()) >= 3 })
	eventually(t, "its missing", func() bool { return n.fleet.run(run).MissingSince != 0 })
	c.full.Store(false)
	n.gone(run)
	if got := n.reports(run); !slices.Equal(got, []string{board.ReportTaken, board.ReportLaunched, board.ReportMissing, board.ReportExited}) {
		t.Errorf("reports %v", got)
	}
}

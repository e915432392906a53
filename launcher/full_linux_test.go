package launcher

import (
	"context"
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster/board"
)

// fullDisk mounts a small disk for a run's folder, moves the folder there, and
// answers how to fill it to the last byte and how to make room again.
func fullDisk(t *testing.T, dir string) (on string, fill, free func()) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("needs root: to mount a small disk")
	}
	disk := t.TempDir()
	if err := syscall.Mount("muster-test", disk, "tmpfs", syscall.MS_NOSUID, "size=1m,mode=0700"); err != nil {
		t.Skipf("needs a mount: to fill up a small disk (%v)", err)
	}
	t.Cleanup(func() { must(t, syscall.Unmount(disk, syscall.MNT_DETACH)) })
	on = filepath.Join(disk, filepath.Base(dir))
	must(t, os.CopyFS(on, os.DirFS(dir)))
	must(t, os.Chmod(on, 0o700))
	spec, err := ReadSpec(on)
	must(t, err)
	t.Cleanup(func() { endLeft(on, spec.Nonce) }) // its keeper would wait for room for ever
	filler := filepath.Join(disk, "filler")
	fill = func() {
		f, err := os.OpenFile(filler, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		must(t, err)
		for b := make([]byte, 4096); err == nil; {
			_, err = f.Write(b)
		}
		must(t, f.Close())
	}
	return on, fill, func() { must(t, os.Remove(filler)) }
}

// SUP-10, M-08: a disk that is full to the last byte does not cost a run its exit code: its
// record is written over blocks that its folder has had since its start.
func TestFullDiskKeepsTheExitCode(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	gate := filepath.Join(t.TempDir(), "gate")
	dir, _ := testSpec(t, sh(`until test -e "$1"; do sleep 0.01; done; exit 3`, gate), nil)
	dir, fill, _ := fullDisk(t, dir)
	must(t, makeRoom(dir))
	s := start(t, k, dir)
	wait(t, "the start", s.Started())
	fill()
	must(t, os.WriteFile(gate, nil, 0o600))
	if e := finish(t, s, dir); e.Code == nil || *e.Code != 3 {
		t.Errorf("record %+v, want code 3", e)
	}
	if exists(filepath.Join(dir, fileRoom)) {
		t.Error("the room is still there beside the record")
	}
}

// SUP-10, M-08: without such a room the keeper holds the folder until there is one, and answers meanwhile.
func TestKeeperWaitsForRoom(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	gate := filepath.Join(t.TempDir(), "gate")
	dir, _ := testSpec(t, sh(`until test -e "$1"; do sleep 0.01; done; exit 3`, gate), nil)
	dir, fill, free := fullDisk(t, dir)
	s := start(t, k, dir)
	wait(t, "the start", s.Started())
	pid := s.PID()
	fill()
	must(t, os.WriteFile(gate, nil, 0o600))
	eventually(t, "the end of the session", func() bool { return !alive(pid) })
	must(t, s.Stop(time.Second, "asked on a full disk"))
	if _, err := takeLock(dir); err == nil || ReadExitMust(dir) != nil {
		t.Errorf("the folder of an end that is not on disk is let go of, record %+v", ReadExitMust(dir))
	}
	free()
	if e := finish(t, s, dir); e.Code == nil || *e.Code != 3 {
		t.Errorf("record %+v, want code 3", e)
	}
}

// cannotEnd is a Runner on a disk that is full: the end of a session cannot be written.
type cannotEnd struct {
	*Keepers
	full atomic.Bool
	mu   sync.Mutex
	at   []time.Time // of every try
}

func (c *cannotEnd) End(ctx context.Context, dir string) error {
	c.mu.Lock()
	c.at = append(c.at, time.Now())
	c.mu.Unlock()
	if c.full.Load() {
		return &os.PathError{Op: "write", Path: fileExit, Err: unix.ENOSPC}
	}
	return c.Keepers.End(ctx, dir)
}

func (c *cannotEnd) tries() []time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.at[:len(c.at):len(c.at)]
}

// SUP-12: what cannot be done now is tried again ever later, and told once, not thirty times a second;
// when it can be done it is.
func TestEndThatFailsIsTriedLater(t *testing.T) {
	t.Parallel()
	c := &cannotEnd{Keepers: testKeepers(t)}
	c.full.Store(true)
	log := filepath.Join(t.TempDir(), "log")
	n := newNode(t, func(cfg *Config) {
		cfg.Runner = c
		cfg.Logger = fileLogger(t, log)
	})
	run := n.start("sh", "while :; do sleep 1; done")
	n.launched(run)
	p, err := ReadProc(filepath.Join(n.cfg.Dir, "runs", run))
	must(t, err)
	must(t, syscall.Kill(p.Keeper, syscall.SIGKILL))
	eventually(t, "the fifth try", func() bool {
		n.Wake() // others' work must not bring it forward
		return len(c.tries()) >= 5
	})
	if at := c.tries(); at[4].Sub(at[0]) < 250*time.Millisecond {
		t.Errorf("five tries within %s", at[4].Sub(at[0]))
	}
	b, err := os.ReadFile(log)
	must(t, err)
	for _, line := range []string{"keeper is dead", "not verified dead"} {
		if got := strings.Count(string(b), line); got != 1 {
			t.Errorf("%d lines say %q, want one:\n%s", got, line, b)
		}
	}
	c.full.Store(false)
	if r := n.gone(run); r.Gone != board.GoneReport {
		t.Errorf("gone by %q, want report", r.Gone)
	}
}

// M-12: a machine whose disk is full refuses a start; that is no failure of the card.
func TestFullDiskIsNotTheCardsFault(t *testing.T) {
	full := &os.PathError{Op: "write", Path: "spec.json", Err: unix.ENOSPC}
	n := &run{}
	n.notStarted(full)
	if kind, text := n.whyNot(""); kind != board.ReportRefused || !strings.Contains(text, "NOSPACE") {
		t.Errorf("a preparation without room is reported as %s, %q", kind, text)
	}
	n = &run{exit: notStarted("", full)}
	if kind, text := n.whyNot(""); kind != board.ReportRefused || !strings.Contains(text, "NOSPACE") {
		t.Errorf("a keeper without room is reported as %s, %q", kind, text)
	}
}

// A journal that cannot be opened for want of room is not a broken one: it is left where it is.
func TestJournalOnAFullDiskStays(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: to mount a small disk")
	}
	dir := t.TempDir()
	if err := unix.Mount("muster-test", dir, "tmpfs", 0, "size=8k"); err != nil {
		t.Skipf("needs a mount: to fill up a small disk (%v)", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	_, _, err := openJournal(dir, slog.New(slog.DiscardHandler))
	aside, _ := filepath.Glob(filepath.Join(dir, "*.broken-*"))
	if !errors.Is(err, unix.ENOSPC) || len(aside) != 0 {
		t.Errorf("opened on a full disk: %v; set aside: %v", err, aside)
	}
}

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// smallDisk mounts a disk of its own for a machine's data.
func smallDisk(t *testing.T, dir string, mb int) {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Mount("muster-test", dir, "tmpfs", syscall.MS_NOSUID, fmt.Sprintf("size=%dm,mode=0700", mb)); err != nil {
		t.Skipf("needs a mount: to fill up a small disk (%v)", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
}

// fill writes a file until the disk has no more than so many MB left.
func fill(t *testing.T, dir string, leave int64) (file string) {
	t.Helper()
	file = filepath.Join(dir, "filler")
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	block := make([]byte, 256<<10)
	for {
		var s syscall.Statfs_t
		if err := syscall.Statfs(dir, &s); err != nil {
			t.Fatal(err)
		}
		if left := int64(s.Bavail) * int64(s.Bsize); left <= leave<<20 {
			return file
		}
		if _, err := f.Write(block); err != nil {
			return file // it is full
		}
	}
}

// architecture.md §2, §7, invariant 1: a machine whose disk fills up refuses what is new with NOSPACE and exit code 1, and
// goes on with what runs; full to the last byte it stops, with one clear line; with room again it is back, with all that
// was acknowledged, and takes new work.
func TestDiskFillsUp(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: to mount a small disk")
	}
	t.Parallel()
	f := newFleetAt(t, 1, 4, func(_ int, m *machine) { smallDisk(t, m.data, 320) })
	f.workflow("null")
	m := f.machines[0]
	s := f.stage("disk")
	kept := f.add(m, "running while the disk fills", s.script("gate", 0), on(m))
	s.awaitStarts(m, 1, kept)

	file := fill(t, m.data, 40)
	f.eventually(10*time.Second, "refusing", func() (bool, string) {
		_, errs, code := m.run("card", "add", "too much")
		return code == 1 && strings.Contains(errs, "NOSPACE: ") && strings.Contains(errs, "free space there"), fmt.Sprintf("exit %d: %s", code, errs)
	})
	if out, _, code := m.run("status"); code != 0 || !strings.Contains(out, "alarm: NOSPACE: ") || !strings.Contains(out, m.name+", which leads") {
		t.Errorf("status exit %d does not tell: %s", code, out)
	}
	if _, errs, code := m.run("comment", kept, "said on a nearly full disk"); code != 0 {
		t.Errorf("a comment was refused, exit %d: %s", code, errs)
	}
	s.open("gate")
	f.await(m, "done", kept) // what ends things passes

	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	var after string
	f.eventually(10*time.Second, "taking work again", func() (bool, string) {
		out, errs, code := m.run("-q", "card", "add", "after", "--body", "true", "--assignee", "sh")
		after = strings.TrimSpace(out)
		return code == 0, errs
	})
	f.await(m, "done", after)

	file = fill(t, m.data, 0)
	ended := make(chan error, 1)
	go func(c interface{ Wait() error }) { ended <- c.Wait() }(m.cmd)
	acked := 0
	for full := false; !full; {
		select {
		case <-ended:
			full = true
		default:
			if _, _, code := m.run("comment", kept, fmt.Sprintf("word %d %s", acked, strings.Repeat("x", 30<<10))); code == 0 {
				acked++
			} else if code != 3 && code != 4 && code != 1 {
				t.Fatalf("a comment on a full disk: exit %d", code)
			}
			if acked > 3000 {
				t.Fatal("3000 comments fit on a full disk")
			}
		}
	}
	m.live.Store(0)
	m.cmd = nil
	b, _ := os.ReadFile(m.out)
	if !strings.Contains(string(b), "this node is unfit") || !strings.Contains(string(b), "free space or repair the disk, then start it again") {
		t.Errorf("it does not say why it stopped: %s", m.lastWords(10))
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	m.start()
	f.eventually(20*time.Second, "leading again", func() (bool, string) { st, err := m.status(); return err == nil && st.Quorum, fmt.Sprint(err) })
	out, _, _ := m.run("card", "show", kept)
	if n := strings.Count(out, "word "); n < acked || !strings.Contains(out, "said on a nearly full disk") {
		t.Errorf("%d of %d acknowledged comments are there: %.300s", n, acked, out)
	}
	t.Logf("%d comments of 30 KB were acknowledged until the disk was full", acked)
	f.await(m, "done", f.add(m, "with room again", "true", on(m)))
}

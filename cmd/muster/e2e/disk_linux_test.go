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
	return fillInto(t, dir, "filler", leave)
}

func fillInto(t *testing.T, dir, name string, leave int64) (file string) {
	t.Helper()
	file = filepath.Join(dir, name)
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
// goes on with what runs; full to the last byte, its ballast given back and filled as well, it lives, answers reads and writes nothing;
// with room again it goes on by itself, with all that was acknowledged, and takes new work.
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
		return code == 1 && strings.Contains(errs, "NOSPACE: ") && strings.Contains(errs, "free 64 MB there"), fmt.Sprintf("exit %d: %s", code, errs)
	})
	if out, _, code := m.run("status"); code != 0 || !strings.Contains(out, "alarm: NOSPACE: ") || !strings.Contains(out, m.name+", which leads") {
		t.Errorf("status exit %d does not tell: %s", code, out)
	}
	if _, errs, code := m.run("comment", kept, "said on a nearly full disk"); code != 1 || !strings.Contains(errs, "NOSPACE: ") {
		t.Errorf("a comment was not refused, exit %d: %s", code, errs)
	}
	s.open("gate")
	f.await(m, "done", kept) // what ends things passes
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	f.worksAgain(m, "after")

	pid := m.pid()
	var open []string
	for range 60 {
		id, _, _ := m.run("-q", "card", "add", "completed while the disk is full")
		open = append(open, strings.TrimSpace(id))
	}
	acked := f.completeUntilFull(m, open)
	if out, errs, code := m.run("card", "show", kept); code != 0 || !strings.Contains(out, "running while the disk fills") {
		t.Errorf("reading on a full disk: exit %d: %s%s", code, out, errs)
	}
	if out, errs, code := m.run("status"); code != 0 || !strings.Contains(out, "NOSPACE: the disk of "+m.name+" is full") {
		t.Errorf("status on a full disk: exit %d: %s%s", code, out, errs)
	}
	for _, name := range []string{"filler", "filler.late"} {
		if err := os.Remove(filepath.Join(m.data, name)); err != nil {
			t.Fatal(err)
		}
	}
	f.worksAgain(m, "with room again") // by itself
	if err := syscall.Kill(pid, 0); err != nil {
		t.Errorf("the process is another one than %d: %v", pid, err)
	}
	for _, id := range acked {
		if out, _, _ := m.run("card", "show", id); !strings.Contains(out, "said of "+id) {
			t.Errorf("acknowledged, and gone: %.300s", out)
		}
	}
	t.Logf("%d summaries were acknowledged until the disk was full", len(acked))
}

// worksAgain waits until a machine takes a card and does it.
func (f *fleet) worksAgain(m *machine, title string) {
	f.t.Helper()
	var id string
	f.eventually(20*time.Second, "taking work again", func() (bool, string) {
		out, errs, code := m.run("-q", "card", "add", title, "--body", "true", "--assignee", "sh")
		id = strings.TrimSpace(out)
		return code == 0, fmt.Sprintf("exit %d: %s\n%s", code, errs, m.lastWords(5))
	})
	f.await(m, "done", id)
}

// completeUntilFull fills a machine's disk: what ends something is written on the ballast then. It goes on with summaries
// of 12 KB while it fills that as well, until nothing is taken any more. It returns the cards of those acknowledged.
func (f *fleet) completeUntilFull(m *machine, cards []string) (acked []string) {
	f.t.Helper()
	next := 0
	say := func() (errs string, code int) {
		id := cards[next]
		if _, errs, code = m.run("complete", id, "--summary", "said of "+id+" "+strings.Repeat("x", 12<<10)); code == 0 {
			acked = append(acked, id)
		}
		if code != 3 { // else it was certainly not done; where it is not known it may be
			next++
		}
		return errs, code
	}
	fill(f.t, m.data, 0)
	f.eventually(20*time.Second, "writing on the ballast", func() (bool, string) {
		errs, code := say()
		return code == 0, fmt.Sprintf("exit %d: %s", code, errs)
	})
	for next < len(cards) {
		fillInto(f.t, m.data, "filler.late", 0)
		if errs, code := say(); code == 3 && strings.Contains(errs, "NOSPACE: the disk of "+m.name+" is full") {
			return acked
		}
	}
	f.t.Fatalf("%d summaries fit on a full disk", next)
	return nil
}

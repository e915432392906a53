package launcher

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// wholeLog reads a run's log as a follower does, and what it takes on the disk.
func wholeLog(t *testing.T, n *testNodeT, run string) (text []byte, disk int64) {
	t.Helper()
	for from, eof := int64(0), false; !eof; {
		var b []byte
		var err error
		b, from, eof, err = n.ReadLog(context.Background(), run, from, 1<<20, true)
		must(t, err)
		text = append(text, b...)
	}
	var st syscall.Stat_t
	must(t, syscall.Stat(filepath.Join(n.cfg.Dir, "runs", run, fileLog), &st))
	return text, st.Blocks * 512
}

// A session that writes without end keeps running: its log is capped, what was
// dropped is marked, the beginning and the newest are there without a gap.
func TestEndlessLogIsCapped(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	const last = 9_000_000 // 70 MB
	run := n.start("sh", fmt.Sprintf("seq 1 %d; echo and on it goes", last))
	if r := n.gone(run); r.Outcome != "completed" {
		t.Fatalf("the session ended as %s", r.Outcome)
	}
	text, disk := wholeLog(t, n, run)
	if disk > logMost+(1<<20) {
		t.Errorf("the log takes %d bytes on the disk, want %d at most", disk, logMost)
	}
	head, rest, marked := bytes.Cut(text, []byte("\n[muster: "))
	mark, tail, ok := bytes.Cut(rest, []byte("]\n"))
	if !marked || !ok || !strings.Contains(string(mark), "dropped") || !strings.Contains(string(mark), time.Now().UTC().Format("at 2006-01-")) {
		t.Fatalf("no mark in %d bytes", len(text))
	}
	if len(head) != logHead || !bytes.HasPrefix(head, []byte("1\n2\n3\n")) {
		t.Errorf("%d bytes of the beginning are there, want %d", len(head), logHead)
	}
	if len(tail) < logTail {
		t.Errorf("%d bytes of the newest are there, want %d", len(tail), logTail)
	}
	lines := strings.Split(strings.TrimSpace(string(tail)), "\n")
	if lines[len(lines)-1] != "and on it goes" {
		t.Errorf("the last line is %q", lines[len(lines)-1])
	}
	for i, want := len(lines)-2, last; i > 0; i, want = i-1, want-1 {
		if lines[i] != fmt.Sprint(want) {
			t.Fatalf("line %q where %d should be", lines[i], want)
		}
	}
	if got := string(tailOf(filepath.Join(n.cfg.Dir, "runs", run), 15)); got != "and on it goes\n" {
		t.Errorf("the newest 15 bytes are %q", got)
	}
}

// Where a file gives nothing back, the log begins anew, again and again, and a
// reader's offsets still count what the session wrote.
func TestLogBeginsAnewWithoutHoles(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	no := func(*os.File, int64, int64) error { return errors.ErrUnsupported }
	f, err := os.OpenFile(filepath.Join(dir, fileLog), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	must(t, err)
	defer f.Close()
	total := int64(0)
	for range 2 {
		must(t, capLog(dir, no))
		if c, err := readCut(dir); err != nil || c.Base != total {
			t.Fatalf("cut is %+v (%v) after %d bytes", c, err, total)
		}
		_, err := f.Write(make([]byte, logMost+1))
		must(t, err)
		total += logMost + 1
		must(t, capLog(dir, no))
	}
	_, err = f.WriteString("here")
	must(t, err)
	b, next, more, err := readOutput(dir, 5, 1000)
	if err != nil || next != total || !more || !strings.Contains(string(b), "dropped") {
		t.Errorf("at 5: %q, next %d of %d, %v", b, next, total, err)
	}
	b, next, more, err = readOutput(dir, next, 1000)
	if err != nil || string(b) != "here" || next != total+4 || more {
		t.Errorf("behind the mark: %q, next %d, more %t, %v", b, next, more, err)
	}
	if got := string(tailOf(dir, 4)); got != "here" {
		t.Errorf("the newest 4 bytes are %q", got)
	}
}

// A log below its bound is left alone.
func TestShortLogIsLeftAlone(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, fileLog), make([]byte, logMost), 0o600))
	must(t, capLog(dir, punchHole))
	if exists(filepath.Join(dir, fileCut)) {
		t.Error("it was cut")
	}
}

package logstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// small segments, so that every test passes through many of them.
const testSegment = 16 << 10

func eachKind(t *testing.T, fn func(t *testing.T, kind Kind)) {
	t.Helper()
	for _, kind := range []Kind{WAL, Bolt} {
		t.Run(string(kind), func(t *testing.T) { fn(t, kind) })
	}
}

func mustOpen(t *testing.T, kind Kind, dir string, opts Options) *Log {
	t.Helper()
	if opts.SegmentSize == 0 {
		opts.SegmentSize = testSegment
	}
	l, err := Open(kind, dir, opts)
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() { l.Close() })
	return l
}

func reopen(t *testing.T, l *Log) *Log {
	t.Helper()
	if err := l.Close(); err != nil {
		t.Fatalf("close: %v", err)
	}
	return mustOpen(t, l.kind, l.dir, Options{})
}

func entry(index uint64, size int) *raft.Log {
	data := bytes.Repeat([]byte(fmt.Sprintf("%d,", index)), size/2+1)[:size]
	return &raft.Log{Index: index, Term: 1 + index/100, Type: raft.LogType(index % 3), Data: data}
}

func entries(from, to uint64) []*raft.Log {
	var out []*raft.Log
	for i := from; i <= to; i++ {
		out = append(out, entry(i, 300))
	}
	return out
}

func mustStore(t *testing.T, l *Log, from, to uint64) {
	t.Helper()
	if err := l.StoreLogs(entries(from, to)); err != nil {
		t.Fatalf("store %d to %d: %v", from, to, err)
	}
}

// wantRange checks that exactly the entries first..last are there, equal to what was stored, and that Bytes agrees.
func wantRange(t *testing.T, l *Log, first, last uint64) {
	t.Helper()
	gotFirst, err1 := l.FirstIndex()
	gotLast, err2 := l.LastIndex()
	if err1 != nil || err2 != nil || gotFirst != first || gotLast != last {
		t.Fatalf("log is %d to %d (%v, %v), want %d to %d", gotFirst, gotLast, err1, err2, first, last)
	}
	sum := int64(0)
	for i := first; i <= last && last > 0; i++ {
		wantEntry(t, l, entry(i, 300))
		sum += int64(encodedSize(entry(i, 300)))
	}
	if got := l.Bytes(); got != sum {
		t.Errorf("Bytes is %d, want %d", got, sum)
	}
	var e raft.Log
	for _, i := range []uint64{first - 1, last + 1} {
		if err := l.GetLog(i, &e); err != raft.ErrLogNotFound {
			t.Errorf("entry %d outside of the log: %v, want raft's ErrLogNotFound itself", i, err)
		}
	}
}

func wantEntry(t *testing.T, l *Log, want *raft.Log) {
	t.Helper()
	var got raft.Log
	if err := l.GetLog(want.Index, &got); err != nil {
		t.Fatalf("entry %d: %v", want.Index, err)
	}
	if got.Index != want.Index || got.Term != want.Term || got.Type != want.Type ||
		!bytes.Equal(got.Data, want.Data) || !bytes.Equal(got.Extensions, want.Extensions) ||
		!got.AppendedAt.Equal(want.AppendedAt) {
		t.Fatalf("entry %d reads back as %+v", want.Index, got)
	}
}

func TestEmpty(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		l := mustOpen(t, kind, t.TempDir(), Options{})
		wantRange(t, l, 0, 0)
		wantRange(t, reopen(t, l), 0, 0)
	})
}

func TestAppendAndReopen(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		l := mustOpen(t, kind, t.TempDir(), Options{})
		mustStore(t, l, 1, 1)
		for i := uint64(2); i <= 200; i += 20 {
			mustStore(t, l, i, i+19)
		}
		wantRange(t, l, 1, 201)
		l = reopen(t, l)
		wantRange(t, l, 1, 201)
		mustStore(t, l, 202, 202)
		wantRange(t, l, 1, 202)
	})
}

// Raft looks at AppendedAt and Extensions of what it reads back.
func TestAllFieldsComeBack(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		l := mustOpen(t, kind, t.TempDir(), Options{})
		want := &raft.Log{Index: 1, Term: 7, Type: raft.LogConfiguration, Extensions: []byte{0, 1},
			AppendedAt: time.Date(2026, 11, 30, 1, 2, 3, 4567, time.UTC)}
		if err := l.StoreLog(want); err != nil {
			t.Fatal(err)
		}
		wantEntry(t, l, want)
		wantEntry(t, reopen(t, l), want)
	})
}

func TestTruncateBack(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		for _, keep := range []uint64{1, 49, 50, 99} {
			l := mustOpen(t, kind, t.TempDir(), Options{})
			mustStore(t, l, 1, 50)
			mustStore(t, l, 51, 100)
			if err := l.DeleteRange(keep+1, 100); err != nil {
				t.Fatal(err)
			}
			wantRange(t, l, 1, keep)
			mustStore(t, l, keep+1, keep+1)
			wantRange(t, l, 1, keep+1)
			l = reopen(t, l)
			mustStore(t, l, keep+2, keep+60)
			wantRange(t, l, 1, keep+60)
		}
	})
}

func TestTruncateFront(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		for _, drop := range []uint64{1, 49, 50, 99} {
			l := mustOpen(t, kind, t.TempDir(), Options{})
			mustStore(t, l, 1, 50)
			mustStore(t, l, 51, 100)
			if err := l.DeleteRange(1, drop); err != nil {
				t.Fatal(err)
			}
			wantRange(t, l, drop+1, 100)
			l = reopen(t, l)
			wantRange(t, l, drop+1, 100)
			mustStore(t, l, 101, 120)
			wantRange(t, l, drop+1, 120)
		}
	})
}

// After a snapshot was installed Raft empties a monotonic store and goes on far ahead.
func TestTruncateAllThenGoOnElsewhere(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		l := mustOpen(t, kind, t.TempDir(), Options{})
		mustStore(t, l, 1, 100)
		if err := l.DeleteRange(1, 100); err != nil {
			t.Fatal(err)
		}
		wantRange(t, l, 0, 0)
		l = reopen(t, l)
		wantRange(t, l, 0, 0)
		mustStore(t, l, 5000, 5100)
		wantRange(t, l, 5000, 5100)
		wantRange(t, reopen(t, l), 5000, 5100)
	})
}

func TestTruncateNothingOrTheMiddle(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		l := mustOpen(t, kind, t.TempDir(), Options{})
		mustStore(t, l, 10, 20)
		for _, r := range [][2]uint64{{1, 9}, {21, 30}, {15, 14}} {
			if err := l.DeleteRange(r[0], r[1]); err != nil {
				t.Errorf("%v: %v", r, err)
			}
		}
		if err := l.DeleteRange(12, 15); !errors.Is(err, ErrOrder) {
			t.Errorf("a cut in the middle: %v, want ErrOrder", err)
		}
		wantRange(t, l, 10, 20)
		if l.Err() != nil {
			t.Errorf("a caller's mistake has latched the store: %v", l.Err())
		}
	})
}

// A wrapper that hides IsMonotonic lets Raft append behind a gap, which raft-wal refuses for ever.
func TestGaps(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		l := mustOpen(t, kind, t.TempDir(), Options{})
		if got := raft.MonotonicLogStore(l).IsMonotonic(); got != (kind == WAL) {
			t.Fatalf("IsMonotonic is %v", got)
		}
		mustStore(t, l, 1, 10)
		err := l.StoreLogs(entries(15, 20))
		if l.IsMonotonic() {
			if !errors.Is(err, ErrOrder) {
				t.Fatalf("a gap: %v, want ErrOrder", err)
			}
			wantRange(t, l, 1, 10)
		} else if err != nil {
			t.Fatalf("a gap: %v", err)
		}
		for _, bad := range [][]*raft.Log{entries(10, 11), entries(3, 3), {entry(0, 5)}, {entry(30, 5), entry(30, 5)}} {
			if err := l.StoreLogs(bad); !errors.Is(err, ErrOrder) {
				t.Errorf("append of %d behind the end: %v, want ErrOrder", bad[0].Index, err)
			}
		}
		if l.Err() != nil {
			t.Errorf("a caller's mistake has latched the store: %v", l.Err())
		}
		reopen(t, l)
	})
}

func TestLargeEntries(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		l := mustOpen(t, kind, t.TempDir(), Options{})
		for i := uint64(1); i <= 3; i++ {
			if err := l.StoreLogs([]*raft.Log{entry(2*i-1, 1<<20), entry(2*i, 1)}); err != nil {
				t.Fatal(err)
			}
		}
		l = reopen(t, l)
		for i := uint64(1); i <= 3; i++ {
			wantEntry(t, l, entry(2*i-1, 1<<20))
			wantEntry(t, l, entry(2*i, 1))
		}
	})
}

func TestStableValues(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		l := mustOpen(t, kind, t.TempDir(), Options{})
		if v, err := l.Get([]byte("none")); err != nil || v != nil {
			t.Errorf("a key never set: %q, %v", v, err)
		}
		if n, err := l.GetUint64([]byte("none")); err != nil || n != 0 {
			t.Errorf("a number never set: %d, %v", n, err)
		}
		check := func(err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		check(l.Set([]byte("vote"), []byte("node/store")))
		check(l.SetUint64([]byte("term"), 7))
		check(l.SetUint64([]byte("term"), 1<<63+5))
		l = reopen(t, l)
		if v, err := l.Get([]byte("vote")); err != nil || string(v) != "node/store" {
			t.Errorf("vote is %q, %v", v, err)
		}
		if n, err := l.GetUint64([]byte("term")); err != nil || n != 1<<63+5 {
			t.Errorf("term is %d, %v", n, err)
		}
	})
}

func TestBytesFrom(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		l := mustOpen(t, kind, t.TempDir(), Options{})
		mustStore(t, l, 1, 30)
		one := int64(encodedSize(entry(1, 300)))
		for from, n := range map[uint64]int64{0: 30, 1: 30, 11: 20, 30: 1, 31: 0} {
			if got := l.BytesFrom(from); got != n*one {
				t.Errorf("from %d on %d bytes, want %d", from, got, n*one)
			}
		}
	})
}

// A second daemon on the folder is told at once; bbolt's own lock would wait for ever.
func TestSecondOpenIsLocked(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		dir := t.TempDir()
		l := mustOpen(t, kind, dir, Options{})
		_, err := Open(kind, dir, Options{})
		if !errors.Is(err, ErrLocked) || !strings.Contains(err.Error(), dir) {
			t.Errorf("second open: %v, want ErrLocked with the folder's name", err)
		}
		if _, err := Check(dir); !errors.Is(err, ErrLocked) {
			t.Errorf("check of an open folder: %v, want ErrLocked", err)
		}
		reopen(t, l)
	})
}

func TestWrongKind(t *testing.T) {
	for kind, other := range map[Kind]Kind{WAL: Bolt, Bolt: WAL} {
		dir := t.TempDir()
		mustOpen(t, kind, dir, Options{}).Close()
		before := listing(t, dir)
		_, err := Open(other, dir, Options{})
		if !errors.Is(err, ErrWrongKind) || !strings.Contains(err.Error(), string(kind)) {
			t.Errorf("%s opened as %s: %v, want ErrWrongKind", kind, other, err)
		}
		if after := listing(t, dir); after != before {
			t.Errorf("the folder was changed:\n%s\n%s", before, after)
		}
	}
}

func listing(t *testing.T, dir string) string {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for _, f := range files {
		b, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprintf(&out, "%s %d %x\n", f.Name(), len(b), crcOf(b))
	}
	return out.String()
}

// A node that had a vote must not start with an empty log and give it again.
func TestMustExist(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		dir := t.TempDir()
		if _, err := Open(kind, dir, Options{MustExist: true}); !errors.Is(err, ErrMissing) {
			t.Errorf("open of nothing: %v, want ErrMissing", err)
		}
		mustOpen(t, kind, dir, Options{}).Close()
		mustOpen(t, kind, dir, Options{MustExist: true})
	})
}

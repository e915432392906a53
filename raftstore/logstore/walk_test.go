package logstore

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/hashicorp/raft"
)

// What a lazy Open reads of a log is the same as what a whole one reads: which entries there are, and how long they are.
func TestLazyOpenKnowsTheSame(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		dir := t.TempDir()
		l := mustOpen(t, kind, dir, Options{SegmentSize: testSegment})
		mustStore(t, l, 1, 200)
		if err := l.DeleteRange(1, 20); err != nil {
			t.Fatal(err)
		}
		if err := l.Close(); err != nil {
			t.Fatal(err)
		}
		whole := mustOpen(t, kind, dir, Options{SegmentSize: testSegment})
		want := map[uint64]int64{}
		for i := uint64(1); i <= 201; i++ {
			want[i] = whole.BytesFrom(i)
		}
		if err := whole.Close(); err != nil {
			t.Fatal(err)
		}
		lazy := mustOpen(t, kind, dir, Options{SegmentSize: testSegment, Lazy: true})
		for i := uint64(1); i <= 201; i++ {
			if got := lazy.BytesFrom(i); got < want[i] || got > want[i]+15*180 {
				t.Fatalf("from %d on %d bytes, read whole %d", i, got, want[i])
			}
		}
		for i := uint64(21); i <= 200; i++ {
			wantEntry(t, lazy, entry(i, 300))
		}
		if err := lazy.Verify(context.Background(), 0); err != nil {
			t.Error(err)
		}
		mustStore(t, lazy, 201, 210)
	})
}

// Damage that a lazy Open has left unread is found by Verify, which latches, and by whoever reads the entry. What it
// does read, the order of the segments and where their entries lie, it refuses as a whole Open does.
func TestDamageUnderALazyOpen(t *testing.T) {
	dir := made(t, WAL)
	edit(t, segmentsOf(t, dir)[0], flip(5000))
	l := mustOpen(t, WAL, dir, Options{SegmentSize: testSegment, Lazy: true})
	if err := l.Verify(context.Background(), 0); !errors.Is(err, ErrDamaged) || !errors.Is(l.Err(), ErrDamaged) {
		t.Errorf("verify: %v, latched: %v; want ErrDamaged", err, l.Err())
	}
	var e raft.Log
	found := false
	for i := uint64(1); !found; i++ {
		err := l.GetLog(i, &e)
		found = errors.Is(err, ErrDamaged)
		if errors.Is(err, raft.ErrLogNotFound) {
			t.Fatal("no entry is damaged")
		}
	}
	for name, harm := range map[string]func(dir string){
		"head": func(dir string) { edit(t, segmentsOf(t, dir)[1], flip(9)) },
		"gone": func(dir string) { os.Remove(segmentsOf(t, dir)[1]) },
		"cut":  func(dir string) { edit(t, segmentsOf(t, dir)[1], func(b []byte) []byte { return b[:3000] }) },
		"tail": func(dir string) { names := segmentsOf(t, dir); edit(t, names[len(names)-1], flip(300)) },
	} {
		dir := made(t, WAL)
		harm(dir)
		if l, err := Open(WAL, dir, Options{SegmentSize: testSegment, Lazy: true}); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s: %v, want ErrDamaged", name, err)
			if err == nil {
				l.Close()
			}
		}
	}
}

// Verify goes on beside truncations: what is cut off meanwhile is not damage.
func TestVerifyBesideATruncation(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		l := mustOpen(t, kind, t.TempDir(), Options{SegmentSize: testSegment})
		mustStore(t, l, 1, 200)
		done := make(chan error, 1)
		go func() { done <- l.Verify(context.Background(), 0) }()
		if err := errors.Join(l.DeleteRange(1, 150), l.DeleteRange(190, 200)); err != nil {
			t.Fatal(err)
		}
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

package logstore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
)

// tail returns the path of the last segment and where its last commit ends.
func tail(t *testing.T, dir string) (path string, end int) {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(dir, "*.wal"))
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	path = names[len(names)-1]
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for end = len(b); end > 0 && b[end-1] == 0; end-- {
	}
	return path, (end + 7) / 8 * 8
}

// An append that was torn is gone after Open and leaves no bytes: raft-wal would take what is left of it as proof
// that the next append, torn in turn, had been whole, and serve it.
func TestTornAppendLeavesNothing(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, WAL, dir, Options{})
	mustStore(t, l, 1, 5)
	path, end := tail(t, dir)
	mustStore(t, l, 6, 15)
	l.Close()
	edit(t, path, flip(end+100)) // a sector of the last append was not written

	r, err := Check(dir)
	if err != nil || r.Last != 5 || len(r.Unfinished) != 1 {
		t.Errorf("check before the repair: %+v, %v", r, err)
	}
	l = mustOpen(t, WAL, dir, Options{})
	wantRange(t, l, 1, 5)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for i, c := range b[end:] {
		if c != 0 {
			t.Fatalf("byte %d of the torn append is still there", i)
		}
	}

	// The second torn append: its own commit is on disk, one of its sectors is not. Its frames end where an old one
	// began, so that the old ones would be read on from there.
	if err := l.StoreLog(entry(6, 292)); err != nil {
		t.Fatal(err)
	}
	l.Close()
	edit(t, path, flip(end+20))
	l = mustOpen(t, WAL, dir, Options{})
	wantRange(t, l, 1, 5)
	mustStore(t, l, 6, 40)
	wantRange(t, reopen(t, l), 1, 40)
}

// The process died between the append that filled a segment and the change of segments in the background. raft-wal
// alone opens such a folder and refuses every append for ever.
func TestFullSegmentNotMarkedSo(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, WAL, dir, Options{})
	b := &breaking{op: "meta"}
	l.in.(*walStore).disk.fault = b.fault
	b.armed.Store(true)
	last := uint64(0)
	for b.fired.Load() == 0 && l.StoreLog(entry(last+1, 300)) == nil {
		last++
	}
	l.Close()
	r, err := Check(dir)
	if err != nil || r.Last != last || len(r.Unfinished) != 1 {
		t.Errorf("check before the repair: %+v, %v", r, err)
	}
	l = mustOpen(t, WAL, dir, Options{})
	wantRange(t, l, 1, last)
	mustStore(t, l, last+1, last+100)
	if err := l.DeleteRange(last-3, last+100); err != nil {
		t.Fatal(err)
	}
	wantRange(t, reopen(t, l), 1, last-4)
}

// The first append of a segment is torn: the segment is empty, not damaged.
func TestTornFirstAppend(t *testing.T) {
	dir := t.TempDir()
	l := mustOpen(t, WAL, dir, Options{})
	mustStore(t, l, 7, 9)
	l.Close()
	path, _ := tail(t, dir)
	edit(t, path, flip(3)) // the head went with it
	l = mustOpen(t, WAL, dir, Options{})
	wantRange(t, l, 0, 0)
	mustStore(t, l, 1, 60)
	wantRange(t, reopen(t, l), 1, 60)
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add(appendEntry(nil, entry(9, 40)))
	f.Add([]byte{codecVersion, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		var e raft.Log
		if decodeEntry(b, &e) != nil {
			return
		}
		var again raft.Log
		if err := decodeEntry(appendEntry(nil, &e), &again); err != nil || again.Index != e.Index {
			t.Fatalf("%+v does not come back: %v", e, err)
		}
	})
}

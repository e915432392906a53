package powercut

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// survivors cuts the power of a disk with those operations many times and returns every outcome of the file "f" that
// was seen: its content, or "-" if the file is not there.
func survivors(t *testing.T, ops ...Op) map[string]bool {
	t.Helper()
	seen := map[string]bool{}
	root, trace := memDir(t), Trace{Ops: ops}
	for seed := range uint64(150) {
		dir := filepath.Join(root, "cut")
		if _, err := trace.Replay(len(ops)).Cut(rand.New(rand.NewPCG(seed, 0)), dir); err != nil {
			t.Fatal(err)
		}
		b, err := os.ReadFile(filepath.Join(dir, "f"))
		switch {
		case errors.Is(err, os.ErrNotExist):
			seen["-"] = true
		case err != nil:
			t.Fatal(err)
		default:
			seen[string(bytes.TrimRight(b, "\x00"))] = true
		}
		os.RemoveAll(dir)
	}
	return seen
}

func memDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "powercut")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

func wantSeen(t *testing.T, seen map[string]bool, want ...string) {
	t.Helper()
	for _, w := range want {
		if !seen[w] {
			t.Errorf("never seen: %.20q (seen: %d outcomes)", w, len(seen))
		}
		delete(seen, w)
	}
	for s := range seen {
		t.Errorf("seen, and impossible: %.20q", s)
	}
}

const file = rootIno + 1

func create(name string) Op { return Op{Kind: opCreate, Dir: rootIno, Name: name, Mode: 0o600} }
func write(data string) Op  { return Op{Kind: opWrite, Ino: file, Data: []byte(data)} }
func flush(ino uint64) Op   { return Op{Kind: opSync, Ino: ino} }
func rename(from, to string) Op {
	return Op{Kind: opRename, Dir: rootIno, Name: from, Dir2: rootIno, Name2: to}
}
func unlink(name string) Op        { return Op{Kind: opUnlink, Dir: rootIno, Name: name} }
func resize(size int64) Op         { return Op{Kind: opSize, Ino: file, Off: size} }
func ops(all ...Op) []Op           { return all }
func then(a []Op, more ...Op) []Op { return append(append([]Op(nil), a...), more...) }

var durable = ops(create("f"), write("old"), flush(file), flush(rootIno))

func TestWhatIsSyncedStays(t *testing.T) {
	wantSeen(t, survivors(t, durable...), "old")
}

// Without the sync of its folder a file may be gone although it was synced itself.
func TestNameNeedsItsFolder(t *testing.T) {
	wantSeen(t, survivors(t, create("f"), write("new"), flush(file)), "-", "new")
}

// With the folder alone, the name may stay and the bytes not; a size without its pages is zeros.
func TestBytesNeedTheFile(t *testing.T) {
	wantSeen(t, survivors(t, create("f"), write("new"), flush(rootIno)), "", "new")
}

func TestOverwriteIsOldOrNew(t *testing.T) {
	wantSeen(t, survivors(t, then(durable, write("NEW"))...), "old", "NEW")
	wantSeen(t, survivors(t, then(durable, write("one"), write("two"))...), "old", "one", "two")
	wantSeen(t, survivors(t, then(durable, write("NEW"), flush(file))...), "NEW")
}

func TestRenameAndUnlink(t *testing.T) {
	other := then(durable, create("g"), Op{Kind: opWrite, Ino: file + 1, Data: []byte("next")}, flush(file+1))
	wantSeen(t, survivors(t, then(other, rename("g", "f"))...), "old", "next")
	wantSeen(t, survivors(t, then(other, rename("g", "f"), flush(rootIno))...), "next")
	wantSeen(t, survivors(t, then(durable, unlink("f"))...), "old", "-")
	wantSeen(t, survivors(t, then(durable, unlink("f"), flush(rootIno))...), "-")
}

func TestSizeNeedsTheFile(t *testing.T) {
	wantSeen(t, survivors(t, then(durable, resize(1))...), "old", "o")
	wantSeen(t, survivors(t, then(durable, resize(1), flush(file))...), "o")
}

// Pages of one write survive one by one, and a page may be a mix of old and new sectors.
func TestTornWrite(t *testing.T) {
	a, b := bytes.Repeat([]byte("a"), 2*pageSize), bytes.Repeat([]byte("b"), 2*pageSize)
	half, mixed := false, false
	for s := range survivors(t, create("f"), write(string(a)), flush(file), flush(rootIno), write(string(b))) {
		first, second := s[:pageSize], s[pageSize:]
		pure := func(p string) bool { return p == string(a[:pageSize]) || p == string(b[:pageSize]) }
		half = half || first != second && pure(first) && pure(second)
		mixed = mixed || !pure(first)
		for i := 0; i < len(s); i += sectorSize {
			if sector := s[i : i+sectorSize]; sector != string(a[:sectorSize]) && sector != string(b[:sectorSize]) {
				t.Fatal("a sector is torn")
			}
		}
	}
	if !half || !mixed {
		t.Errorf("of a write of two pages one alone was seen: %v; a torn page: %v", half, mixed)
	}
}

// After the cut nothing reaches the disk, and the moment is the one that was asked for.
func TestStopAfter(t *testing.T) {
	d := New()
	stopped := d.StopAfter(2, false)
	d.mu.Lock()
	d.apply(create("f"))
	d.mu.Unlock()
	if d.Stopped() {
		t.Fatal("stopped after one change of two")
	}
	d.mu.Lock()
	d.apply(write("x"))
	d.mu.Unlock()
	<-stopped
	if err := d.on(func() syscall.Errno { t.Error("ran without power"); return 0 }); err == 0 {
		t.Error("a call after the power has gone succeeded")
	}
}

func TestLoadAndTrace(t *testing.T) {
	from, to := t.TempDir(), filepath.Join(t.TempDir(), "to")
	if err := errors.Join(os.Mkdir(filepath.Join(from, "sub"), 0o700),
		os.WriteFile(filepath.Join(from, "sub", "f"), []byte("hello"), 0o600)); err != nil {
		t.Fatal(err)
	}
	d := New()
	trace := d.Record()
	if err := d.Load(from); err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if err := trace.Write(&buf); err != nil {
		t.Fatal(err)
	}
	read, err := ReadTrace(&buf)
	if err != nil {
		t.Fatal(err)
	}
	lost, err := read.Replay(len(read.Ops)).Cut(rand.New(rand.NewPCG(1, 1)), to)
	if err != nil || !lost.None() {
		t.Fatalf("a loaded disk lost %v, %v", lost, err)
	}
	if b, err := os.ReadFile(filepath.Join(to, "sub", "f")); string(b) != "hello" {
		t.Errorf("read back %q, %v", b, err)
	}
}

package raftstore

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"

	"muster/board"
)

var fixtures = flag.Bool("raftstore.fixtures", false, "write the files of testdata that are not there yet; those that are there are never changed")

// fixture is a file that an earlier version wrote, packed. make writes it when it is not there and that is asked for.
func fixture(t *testing.T, name string, write func() []byte) []byte {
	t.Helper()
	path := filepath.Join("testdata", name+".gz")
	if _, err := os.Stat(path); os.IsNotExist(err) && *fixtures {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		_, err1 := z.Write(write())
		if err := z.Close(); err != nil || err1 != nil {
			t.Fatal(err, err1)
		}
		if err := os.WriteFile(path, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// architecture.md §7, §9: what the first version wrote is read by every later one: log entries, snapshots, backups.
func TestFilesOfTheFirstVersion(t *testing.T) {
	txns := []board.Txn{{Time: 1234, Ops: []board.Op{{Table: board.TText, Key: "d-1", Val: []byte("a text")}, {Table: board.TChild, Key: "a/b", Delete: true}}}}
	e, err := decodeEntry(fixture(t, "entry-1", func() []byte { return encodeEntry(&entry{Term: 3, Seq: 7, Txns: txns}) }))
	if err != nil || fmt.Sprint(e) != fmt.Sprint(entry{Term: 3, Seq: 7, Txns: txns}) {
		t.Errorf("entry: %+v, %v", e, err)
	}
	made := func() (*state, func()) {
		s := openTestState(t, nil)
		l := &raft.Log{Index: 1, Term: 3, Type: raft.LogCommand, Data: encodeEntry(&entry{Term: 3, Seq: 1, Txns: txns[:1]})}
		var n tallies
		if _, err := s.apply([]*raft.Log{l}, nil, &n); err != nil {
			t.Fatal(err)
		}
		return s, func() { _ = s.close(false) }
	}
	snap := fixture(t, "snapshot-1", func() []byte {
		s, done := made()
		defer done()
		p, err := s.snapshot(0, nil)
		if err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := p.persist(&b); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	})
	s := openTestState(t, nil)
	if _, err := s.restore(bytes.NewReader(snap)); err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	h := s.now().Sum.bytes()
	const want = "15627ace438bd55cb769873eb2918800"
	if got := hex.EncodeToString(h[:]); got != want || s.now().Seq != 1 {
		t.Errorf("snapshot: hash %s at %d, want %s: what a state's hash is made of has changed", got, s.now().Seq, want)
	}
	backup := fixture(t, "backup-1", func() []byte {
		var b bytes.Buffer
		a, err := newArchive(&b, About{Format: 1, Fleet: "f", Era: 1, Seq: 1, Time: 1234, Hash: "h"})
		if err != nil {
			t.Fatal(err)
		}
		if err := a.record(board.TText, "d-1", []byte("a text")); err != nil {
			t.Fatal(err)
		}
		if err := a.end(); err != nil {
			t.Fatal(err)
		}
		return b.Bytes()
	})
	var about About
	text := ""
	err = ReadBackup(bytes.NewReader(backup), func(a About) error { about = a; return nil }, func(_ board.Table, key string, val []byte) error { text += key + "=" + string(val); return nil })
	if err != nil || text != "d-1=a text" || about.Fleet != "f" || about.Seq != 1 {
		t.Errorf("backup: %q, %+v, %v", text, about, err)
	}
}

// A table of a later version is stored, counted in the hash and passed on as it came.
func TestATableOfALaterVersionIsKept(t *testing.T) {
	s := openTestState(t, nil)
	var n tallies
	txns := []board.Txn{{Ops: []board.Op{{Table: maxTable, Key: "k", Val: []byte("later")}}}}
	l := &raft.Log{Index: 1, Term: 1, Type: raft.LogCommand, Data: encodeEntry(&entry{Term: 1, Seq: 1, Txns: txns})}
	if res, err := s.apply([]*raft.Log{l}, nil, &n); err != nil || res[0] != nil {
		t.Fatal(res, err)
	}
	p, err := s.snapshot(0, nil)
	if err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := p.persist(&b); err != nil {
		t.Fatal(err)
	}
	to := openTestState(t, nil)
	if _, err := to.restore(&b); err != nil {
		t.Fatal(err)
	}
	if to.now().Sum != s.now().Sum {
		t.Error("the hash is another")
	}
	found := ""
	_ = to.read(func(v *view) error {
		_, err := eachRecord(t.Context(), v.tx, func(tab board.Table, key string, val []byte) error {
			found += fmt.Sprint(uint8(tab), key, string(val))
			return nil
		})
		return err
	})
	if found != fmt.Sprint(maxTable, "klater") {
		t.Errorf("found %q", found)
	}
}

// Every table of the board is applied from an entry: one that is not would end every node of the fleet.
func TestEveryTableIsApplied(t *testing.T) {
	s := openTestState(t, nil)
	var n tallies
	var ops []board.Op
	for tab := 1; tab <= board.Tables; tab++ {
		ops = append(ops, board.Op{Table: board.Table(tab), Key: "k", Val: []byte("v")})
	}
	l := &raft.Log{Index: 1, Term: 1, Type: raft.LogCommand, Data: encodeEntry(&entry{Term: 1, Seq: 1, Txns: []board.Txn{{Ops: ops}}})}
	if res, err := s.apply([]*raft.Log{l}, nil, &n); err != nil || res[0] != nil {
		t.Fatal(res, err)
	}
	_ = s.read(func(v *view) error {
		for _, op := range ops {
			if string(v.Get(op.Table, op.Key)) != "v" {
				t.Errorf("%s is not there", op.Table)
			}
		}
		return nil
	})
}

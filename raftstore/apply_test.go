package raftstore

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"

	"muster/board"
)

func openTestState(t testing.TB, fault func(string) error) *state { return openMapped(t, 0, fault) }

func openMapped(t testing.TB, mmap int, fault func(string) error) *state {
	t.Helper()
	s := newState(context.Background(), t.TempDir(), mmap, fault)
	if err := s.use(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.close(false) })
	return s
}

func put(key, val string) board.Op { return board.Op{Table: board.TText, Key: key, Val: []byte(val)} }

func txn(ops ...board.Op) board.Txn { return board.Txn{Time: 7, Ops: ops} }

// command is a log entry of a term with an entry in it that says its own.
func command(index, term uint64, e entry) *raft.Log {
	return &raft.Log{Index: index, Term: term, Type: raft.LogCommand, Data: encodeEntry(&e)}
}

func applyAll(t testing.TB, s *state, count *tallies, logs ...*raft.Log) []any {
	t.Helper()
	out, err := s.apply(logs, nil, count)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func text(t testing.TB, s *state, key string) string {
	t.Helper()
	var out string
	if err := s.read(func(v *view) error { out = string(v.Get(board.TText, key)); return nil }); err != nil {
		t.Fatal(err)
	}
	return out
}

// The Term rule (architecture.md §2): an entry whose executor began in another
// term than the entry's own writes nothing. With one entry in flight no history
// shows its loss, so it is counted here.
func TestEntryOfAnotherTermIsRefused(t *testing.T) {
	s := openTestState(t, nil)
	var n tallies
	out := applyAll(t, s, &n, command(1, 5, entry{Term: 3, Seq: 1, Txns: []board.Txn{txn(put("a", "stale"))}}))
	if out[0] != errRefused || n.refusedTerm.Load() != 1 {
		t.Fatalf("answer %v, refused by term %d", out[0], n.refusedTerm.Load())
	}
	if got := text(t, s, "a"); got != "" {
		t.Fatalf("a stale entry wrote %q", got)
	}
	if m := s.now(); m.Applied != 1 || m.Seq != 0 {
		t.Fatalf("after a refusal applied is %d and Seq %d, want 1 and 0", m.Applied, m.Seq)
	}
}

// The Seq rule: an entry is accepted only on the state it was decided on.
func TestEntryWithAGapInSeqIsRefused(t *testing.T) {
	s := openTestState(t, nil)
	var n tallies
	out := applyAll(t, s, &n,
		command(1, 1, entry{Term: 1, Seq: 1, Txns: []board.Txn{txn(put("a", "1")), txn(put("a", "2"))}}),
		command(2, 1, entry{Term: 1, Seq: 2, Txns: []board.Txn{txn(put("a", "again"))}}), // decided on Seq 1
		command(3, 1, entry{Term: 1, Seq: 4, Txns: []board.Txn{txn(put("a", "gap"))}}),
		command(4, 1, entry{Term: 1, Seq: 3, Txns: []board.Txn{txn(put("b", "3"))}}),
	)
	if out[0] != nil || out[1] != errRefused || out[2] != errRefused || out[3] != nil || n.refusedSeq.Load() != 2 {
		t.Fatalf("answers %v, refused by Seq %d", out, n.refusedSeq.Load())
	}
	if got := text(t, s, "a") + text(t, s, "b"); got != "23" {
		t.Fatalf("state is %q, want 23", got)
	}
	if m := s.now(); m.Applied != 4 || m.Seq != 3 {
		t.Fatalf("applied %d, Seq %d", m.Applied, m.Seq)
	}
}

// An entry at or below the applied index is skipped before anything else is
// looked at: a restart replays, and must count no gaps.
func TestReplayedEntriesAreSkippedFirst(t *testing.T) {
	s := openTestState(t, nil)
	var n tallies
	logs := []*raft.Log{
		command(1, 1, entry{Term: 1, Seq: 1, Txns: []board.Txn{txn(put("a", "1"))}}),
		command(2, 1, entry{Term: 1, Seq: 2, Txns: []board.Txn{txn(put("a", "2"))}}),
	}
	applyAll(t, s, &n, logs...)
	logs = append(logs, command(3, 1, entry{Term: 1, Seq: 3, Txns: []board.Txn{txn(put("a", "3"))}}))
	out := applyAll(t, s, &n, logs...)
	if out[0] != errSkipped || out[1] != errSkipped || out[2] != nil {
		t.Fatalf("answers %v", out)
	}
	if n.refusedSeq.Load() != 0 || n.skipped.Load() != 2 {
		t.Fatalf("replay: %d refused, %d skipped; want 0 and 2", n.refusedSeq.Load(), n.skipped.Load())
	}
}

// Entries of Raft's own move the applied index, which is not part of the hash.
func TestConfigurationEntriesMoveTheAppliedIndexOnly(t *testing.T) {
	s := openTestState(t, nil)
	var n tallies
	applyAll(t, s, &n, command(1, 1, entry{Term: 1, Seq: 1, Txns: []board.Txn{txn(put("a", "1"))}}))
	before := s.now()
	applyAll(t, s, &n, &raft.Log{Index: 2, Term: 2, Type: raft.LogConfiguration, Data: []byte("x")})
	after := s.now()
	if after.Applied != 2 || after.Term != 2 || after.Seq != 1 || after.Sum != before.Sum {
		t.Fatalf("before %+v, after %+v", before, after)
	}
}

// Invariant 8: data and applied index are one transaction.
func TestAFailedCommitWritesNothing(t *testing.T) {
	broken := false
	s := openTestState(t, func(op string) error {
		if broken && op == "state-commit" {
			return errors.New("no space")
		}
		return nil
	})
	var n tallies
	applyAll(t, s, &n, command(1, 1, entry{Term: 1, Seq: 1, Txns: []board.Txn{txn(put("a", "1"))}}))
	broken = true
	_, err := s.apply([]*raft.Log{command(2, 1, entry{Term: 1, Seq: 2, Txns: []board.Txn{txn(put("a", "2"))}})}, nil, &n)
	if err == nil {
		t.Fatal("a failed commit was answered as done")
	}
	if m := s.now(); m.Applied != 1 || m.Seq != 1 || text(t, s, "a") != "1" {
		t.Fatalf("after a failed commit: %+v, a = %q", m, text(t, s, "a"))
	}
	broken = false // it was not applied: it is not taken for a replay
	applyAll(t, s, &n, command(2, 1, entry{Term: 1, Seq: 2, Txns: []board.Txn{txn(put("a", "2"))}}))
	if text(t, s, "a") != "2" {
		t.Fatalf("applied again, a = %q", text(t, s, "a"))
	}
	if err := s.close(true); err != nil { // the file's lock is free
		t.Fatal(err)
	}
}

// An entry this version cannot read stops the node; it is not passed over.
func TestUnreadableEntryStops(t *testing.T) {
	s := openTestState(t, nil)
	var n tallies
	good := command(1, 1, entry{Term: 1, Seq: 1, Txns: []board.Txn{txn(put("a", "1"))}})
	newer := *good
	newer.Data = append([]byte{entryVersion + 1}, good.Data[1:]...)
	flipped := *good
	flipped.Data = append([]byte{}, good.Data...)
	flipped.Data[len(flipped.Data)-1] ^= 1
	for name, l := range map[string]*raft.Log{"newer version": &newer, "flipped bit": &flipped} {
		if _, err := s.apply([]*raft.Log{l}, nil, &n); err == nil {
			t.Errorf("%s: applied", name)
		}
		if m := s.now(); m.Applied != 0 {
			t.Errorf("%s: applied index moved to %d", name, m.Applied)
		}
	}
}

// Invariant 7: the running hash is that of the content, whatever the way there,
// and is remembered at every 1,000th Seq.
func TestHashIsOfTheContent(t *testing.T) {
	a, b := openTestState(t, nil), openTestState(t, nil)
	rng := rand.New(rand.NewPCG(1, 2))
	var n tallies
	content := map[string]string{}
	seq := uint64(0)
	for range 30 {
		e := entry{Term: 1, Seq: seq + 1}
		for range 80 {
			k := fmt.Sprint(rng.IntN(50))
			op := put(k, fmt.Sprint(rng.Int()))
			if rng.IntN(4) == 0 {
				op = board.Op{Table: board.TText, Key: k, Delete: true}
				delete(content, k)
			} else {
				content[k] = string(op.Val)
			}
			e.Txns = append(e.Txns, txn(op))
		}
		seq += 80
		applyAll(t, a, &n, command(seq, 1, e))
	}
	e := entry{Term: 1, Seq: 1}
	for k, v := range content { // map order: another order than a's
		e.Txns = append(e.Txns, txn(put(k, v)))
	}
	applyAll(t, b, &n, command(1, 1, e))
	if a.now().Sum != b.now().Sum || len(content) == 0 {
		t.Fatal("equal contents have different hashes")
	}
	err := a.read(func(v *view) error {
		got, err := sumAll(context.Background(), v.tx)
		if err == nil && got != v.m.Sum {
			err = errors.New("hash counted anew differs")
		}
		if at, _, ok := v.mark(0); !ok || at != 2000 {
			err = fmt.Errorf("newest mark is at %d, want 2000", at)
		}
		if _, _, ok := v.mark(1000); !ok {
			err = errors.New("no mark at 1000")
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// corrupt changes one stored value behind the state's back.
func corrupt(t testing.TB, s *state, key string) {
	t.Helper()
	err := s.cur.db.Update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(tableName(board.TText))
		v := append([]byte{}, b.Get([]byte(key))...)
		v[len(v)-1] ^= 1
		return b.Put([]byte(key), v)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Each value's checksum is looked at when it is read, by whatever way.
func TestDamagedValueIsNotServed(t *testing.T) {
	reads := map[string]func(v board.View){
		"get":  func(v board.View) { v.Get(board.TText, "a") },
		"scan": func(v board.View) { v.Scan(board.TText, "", "", func(string, []byte) bool { return true }) },
		"last": func(v board.View) { v.Last(board.TText, "") },
	}
	for name, read := range reads {
		s := openTestState(t, nil)
		var n tallies
		applyAll(t, s, &n, command(1, 1, entry{Term: 1, Seq: 1, Txns: []board.Txn{txn(put("a", "value"))}}))
		corrupt(t, s, "a")
		if err := s.read(func(v *view) error { read(v); return nil }); !errors.Is(err, ErrDamaged) {
			t.Errorf("%s of a damaged value: %v, want ErrDamaged", name, err)
		}
		_, err := s.apply([]*raft.Log{command(2, 1, entry{Term: 1, Seq: 2, Txns: []board.Txn{txn(put("a", "new"))}})}, nil, &n)
		if !errors.Is(err, ErrDamaged) {
			t.Errorf("overwriting a damaged value: %v, want ErrDamaged: the hash cannot be kept", err)
		}
	}
}

// The stored view is a board.View like the one in memory.
func TestViewIsTheTwinOfMemView(t *testing.T) {
	s := openTestState(t, nil)
	mem := board.NewMemView()
	rng := rand.New(rand.NewPCG(3, 4))
	var n tallies
	prefixes := []string{"", "a", "a/", "ab", "a\xff", "\xff", "z"}
	key := func() string { return prefixes[1+rng.IntN(6)] + fmt.Sprint(rng.IntN(30)) }
	for i := range 200 {
		x := txn()
		for range 1 + rng.IntN(5) {
			op := put(key(), fmt.Sprint(rng.Int()))
			op.Delete = rng.IntN(3) == 0
			op.Table = []board.Table{board.TText, board.TChild}[rng.IntN(2)]
			if op.Table == board.TChild || op.Delete {
				op.Val = nil
			}
			x.Ops = append(x.Ops, op)
		}
		applyAll(t, s, &n, command(uint64(i+1), 1, entry{Term: 1, Seq: uint64(i + 1), Txns: []board.Txn{x}}))
		mem.Apply(&x)
	}
	err := s.read(func(v *view) error {
		for range 300 {
			tab := []board.Table{board.TText, board.TChild, board.TCard}[rng.IntN(3)]
			p, k := prefixes[rng.IntN(len(prefixes))], key()
			if a, b := string(v.Get(tab, k)), string(mem.Get(tab, k)); a != b || v.Has(tab, k) != mem.Has(tab, k) {
				return fmt.Errorf("get %s %q: %q and %q", tab, k, a, b)
			}
			if a, b := scanned(v, tab, p, k), scanned(mem, tab, p, k); a != b {
				return fmt.Errorf("scan %s %q from %q:\n%s\nwant\n%s", tab, p, k, a, b)
			}
			ak, av := v.Last(tab, p)
			if bk, bv := mem.Last(tab, p); ak != bk || string(av) != string(bv) {
				return fmt.Errorf("last %s %q: %q and %q", tab, p, ak, bk)
			}
		}
		if v.Seq() != mem.Seq() || v.Time() != mem.Time() {
			return fmt.Errorf("Seq %d and %d, time %d and %d", v.Seq(), mem.Seq(), v.Time(), mem.Time())
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func scanned(v board.View, tab board.Table, prefix, from string) (out string) {
	v.Scan(tab, prefix, from, func(k string, val []byte) bool { out += fmt.Sprintf("%q=%q ", k, val); return len(out) < 500 })
	return out
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add(encodeEntry(&entry{Term: 3, Seq: 9, Txns: []board.Txn{txn(put("a", "1"), board.Op{Table: board.TCard, Key: "x", Delete: true})}}))
	f.Add([]byte{1, 0, 0, 0, 0})
	f.Fuzz(func(t *testing.T, b []byte) {
		e, err := decodeEntry(b)
		if err != nil {
			return
		}
		again, err := decodeEntry(encodeEntry(&e))
		if err != nil || fmt.Sprint(again) != fmt.Sprint(e) {
			t.Fatalf("read %+v, written and read again %+v: %v", e, again, err)
		}
	})
}

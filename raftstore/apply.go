package raftstore

import (
	"fmt"
	"sync/atomic"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"

	"muster/board"
)

// tallies count what the FSM did with entries. The Term rule shows nowhere
// else: with one entry in flight no history differs without it.
type tallies struct {
	batches, entries, txns, ops             atomic.Uint64
	skipped, refusedSeq, refusedTerm, reset atomic.Uint64

	commit, apply times
}

// writer is one bbolt transaction that applies log entries.
type writer struct {
	tx    *bbolt.Tx
	m     meta
	tabs  [maxTable + 1]*bbolt.Bucket
	buf   []byte // arena of sealed values: they must live as long as the transaction
	n     tally
	dirty func(board.Table, string)
}

type tally struct{ entries, txns, ops, skipped, refusedSeq, refusedTerm uint64 }

// apply applies a batch of committed entries in one transaction and answers
// each: nil, errSkipped or errRefused. On an error nothing of it is written and
// the store must stop. dirty, if not nil, is told of every key changed.
func (s *state) apply(logs []*raft.Log, dirty func(board.Table, string), count *tallies) ([]any, error) {
	out := make([]any, len(logs))
	if n := len(logs); n > 0 && logs[n-1].Index <= s.m.Applied { // a restart replays up to all since the last snapshot
		for i := range out {
			out[i] = errSkipped
		}
		count.skipped.Add(uint64(n))
		return out, nil
	}
	g, err := s.acquire()
	if err != nil {
		return nil, err
	}
	defer s.release(g)
	var w *writer
	err = guarded(func() error {
		tx, err := g.db.Begin(true)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }() // does nothing after a commit; frees the file's lock after an error or a fault
		w = &writer{tx: tx, m: s.m, dirty: dirty}
		if err := w.all(logs, out); err != nil {
			return err
		}
		if err := s.fault("state-commit"); err != nil {
			return err
		}
		return tx.Commit()
	})
	if err != nil {
		return nil, err
	}
	s.m = w.m
	s.publish()
	count.batches.Add(1)
	count.entries.Add(w.n.entries)
	count.txns.Add(w.n.txns)
	count.ops.Add(w.n.ops)
	count.skipped.Add(w.n.skipped)
	count.refusedSeq.Add(w.n.refusedSeq)
	count.refusedTerm.Add(w.n.refusedTerm)
	return out, nil
}

func (w *writer) all(logs []*raft.Log, out []any) error {
	for i, l := range logs {
		res, err := w.log(l)
		if err != nil {
			return fmt.Errorf("apply entry %d: %w", l.Index, err)
		}
		if res != nil {
			out[i] = res
		}
	}
	return w.tx.Bucket(metaBucket).Put(metaKey, w.m.encode())
}

// log applies one log entry. The order of its checks is the rule: skip before
// anything else is looked at, then Term and Seq; whatever comes of it, the
// applied index moves.
func (w *writer) log(l *raft.Log) (res, err error) {
	if l.Index <= w.m.Applied {
		w.n.skipped++
		return errSkipped, nil
	}
	w.m.Applied, w.m.Term, w.m.Floor = l.Index, l.Term, 0
	if l.Type == raft.LogConfiguration {
		return nil, putConf(w.tx, l)
	}
	if l.Type != raft.LogCommand {
		return nil, nil
	}
	e, err := decodeEntry(l.Data)
	if err != nil {
		return nil, err
	}
	switch {
	case e.Term != l.Term:
		w.n.refusedTerm++
		return errRefused, nil
	case e.Seq != w.m.Seq+1:
		w.n.refusedSeq++
		return errRefused, nil
	}
	w.n.entries++
	for i := range e.Txns {
		if err := w.txn(&e.Txns[i]); err != nil {
			return nil, err
		}
	}
	return nil, nil
}

func (w *writer) txn(t *board.Txn) error {
	for i := range t.Ops {
		if err := w.op(&t.Ops[i]); err != nil {
			return err
		}
	}
	w.n.txns++
	w.n.ops += uint64(len(t.Ops))
	w.m.Seq++
	w.m.Time = max(w.m.Time, t.Time)
	if w.m.Seq%markEvery == 0 {
		return writeMark(w.tx, w.m.Seq, w.m.Sum)
	}
	return nil
}

func (w *writer) op(op *board.Op) error {
	b := w.bucket(op.Table)
	if b == nil {
		return fmt.Errorf("%w: no table %d", ErrDamaged, op.Table)
	}
	key := raw(op.Key)
	if old := b.Get(key); old != nil {
		_, h, ok := open(op.Table, op.Key, old)
		if !ok {
			return fmt.Errorf("%w: checksum of %s %q does not hold", ErrDamaged, op.Table, op.Key)
		}
		w.m.Sum.sub(h)
	}
	if w.dirty != nil {
		w.dirty(op.Table, op.Key)
	}
	if op.Delete {
		return b.Delete(key)
	}
	h := hashOf(op.Table, op.Key, op.Val)
	w.m.Sum.add(h)
	return b.Put(key, w.seal(h, op.Val))
}

// seal puts a checksum in front of a value, in memory that lives until the commit.
func (w *writer) seal(h sum, val []byte) []byte {
	n := checkLen + len(val)
	if cap(w.buf)-len(w.buf) < n {
		w.buf = make([]byte, 0, max(n, 16<<10))
	}
	from := len(w.buf)
	w.buf = seal(w.buf, h, val)
	return w.buf[from:len(w.buf):len(w.buf)]
}

func (w *writer) bucket(t board.Table) *bbolt.Bucket {
	if t < 1 || t > maxTable {
		return nil
	}
	if w.tabs[t] == nil {
		b := w.tx.Bucket(tableName(t))
		if b == nil {
			return nil
		}
		if t == board.TEvent || t == board.TReqLog {
			b.FillPercent = 0.95 // filled in order, never again
		}
		w.tabs[t] = b
	}
	return w.tabs[t]
}

package raftstore

import (
	"sync/atomic"

	"github.com/hashicorp/raft"
)

// ahead lets the leader's own entry travel to the followers while it is written
// here. Raft replicates an entry only after the log said that it is stored, and
// counts this server from then on; so the log says it at once, and what would
// leave this process on the strength of it waits for the disk:
//
//   - the FSM ([ahead.durable]): nothing is applied, and so nobody is answered;
//   - the commit index that is told to others ([ahead.commit]);
//   - an answer that this log holds the entry, once this server follows another
//     leader (GetLog), and every later write of the log.
//
// So an index counts as committed outside of this process only when a majority
// including this server has it on the disk. Inside, Raft may believe it earlier;
// that belief, the entry and the count of it are in memory and die together. The
// vote is not concerned: it is about what this server has promised, not stored.
//
// One entry at a time is ahead: the executor's own, known by its bytes. All
// other entries are stored as ever.
type ahead struct {
	raft.LogStore                       // the cache, and the log on the disk behind it
	monotonic     bool                  // see raft.MonotonicLogStore
	fail          func(error)           // of the store
	lethal        func(error)           // fails the store and ends a goroutine of Raft
	leads         func() bool           // this server is the leader, as far as Raft knows
	own           atomic.Pointer[byte]  // first byte of the entry that the executor gives to Raft
	now           atomic.Pointer[write] // on its way to the disk, or failed: then for ever
}

// open puts it in front of a cache of logs. Before, nothing is ahead.
func (a *ahead) open(cache raft.LogStore, logs *raftLog) {
	a.LogStore, a.monotonic, a.lethal = cache, logs.IsMonotonic(), logs.lethal
}

// write is one entry on its way to the disk.
type write struct {
	entry *raft.Log
	done  chan struct{}
	err   error // valid once done is closed
}

// expect says which entry may go ahead. data must not be empty.
func (a *ahead) expect(data []byte) { a.own.Store(&data[0]) }

// StoreLogs implements raft.LogStore.
func (a *ahead) StoreLogs(list []*raft.Log) error {
	if err := a.settle(); err != nil {
		return err
	}
	if !a.mine(list) {
		return a.LogStore.StoreLogs(list)
	}
	w := &write{entry: list[0], done: make(chan struct{})}
	a.now.Store(w)
	go a.store(w, list)
	return nil
}

func (a *ahead) mine(list []*raft.Log) bool {
	if len(list) != 1 || list[0].Type != raft.LogCommand || len(list[0].Data) == 0 {
		return false
	}
	return a.own.CompareAndSwap(&list[0].Data[0], nil)
}

func (a *ahead) store(w *write, list []*raft.Log) {
	w.err = a.LogStore.StoreLogs(list)
	if w.err == nil {
		a.now.CompareAndSwap(w, nil)
	} else {
		a.fail(w.err) // before done: whoever was waiting finds the store failed
	}
	close(w.done)
}

// settle waits until nothing is on its way to the disk.
func (a *ahead) settle() error {
	if w := a.now.Load(); w != nil {
		<-w.done
		return w.err
	}
	return nil
}

// durable waits until the log is on the disk up to index.
func (a *ahead) durable(index uint64) error {
	if w := a.now.Load(); w == nil || w.entry.Index > index {
		return nil
	}
	return a.settle()
}

// commit is what others may be told of Raft's commit index.
func (a *ahead) commit(index uint64) uint64 {
	if w := a.now.Load(); w != nil && index >= w.entry.Index {
		return w.entry.Index - 1
	}
	return index
}

// StoreLog implements raft.LogStore.
func (a *ahead) StoreLog(e *raft.Log) error { return a.StoreLogs([]*raft.Log{e}) }

// GetLog implements raft.LogStore. A leader reads what it sends. A follower is asked
// for an entry when its leader sends it, and what it finds it acknowledges.
func (a *ahead) GetLog(index uint64, e *raft.Log) error {
	if w := a.now.Load(); w != nil && w.entry.Index == index {
		if a.leads() {
			*e = *w.entry
			return nil
		}
		if err := a.settle(); err != nil {
			a.lethal(err)
			return err
		}
	}
	return a.LogStore.GetLog(index, e)
}

// LastIndex implements raft.LogStore.
func (a *ahead) LastIndex() (uint64, error) {
	if err := a.settle(); err != nil {
		return 0, err
	}
	return a.LogStore.LastIndex()
}

// DeleteRange implements raft.LogStore.
func (a *ahead) DeleteRange(lo, hi uint64) error {
	if err := a.settle(); err != nil {
		return err
	}
	return a.LogStore.DeleteRange(lo, hi)
}

// IsMonotonic implements raft.MonotonicLogStore.
func (a *ahead) IsMonotonic() bool { return a.monotonic }

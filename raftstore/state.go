package raftstore

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"muster/board"
)

const (
	stateFile   = "state.db"
	asideFile   = "state.db.aside"
	restoreFile = "restore.tmp"
)

// state is the bbolt file that holds the boards: which file is in use, who
// reads it, and what its meta row says. Written by one goroutine (Raft's FSM),
// read by any.
type state struct {
	ctx   context.Context // of the store: ends snapshots
	dir   string
	mmap  int
	fault func(op string) error // test's way to break one named operation

	mu   sync.Mutex // guards cur, the reader counts, live and old
	cur  *generation
	live map[*snapshot]struct{}
	old  sync.WaitGroup // generations on their way out

	m   meta // the writer's own
	pub atomic.Pointer[meta]
}

// A generation is one open file. A restore makes the next one; the old file
// stays open until its last reader is done.
type generation struct {
	db      *bbolt.DB
	readers int
	retired bool
	idle    chan struct{} // closed when retired and without readers
}

func newState(ctx context.Context, dir string, mmap int, fault func(string) error) *state {
	if fault == nil {
		fault = func(string) error { return nil }
	}
	return &state{ctx: ctx, dir: dir, mmap: mmap, fault: fault, live: map[*snapshot]struct{}{}}
}

func (s *state) path() string { return filepath.Join(s.dir, stateFile) }

// boltOptions: nothing here is synced as it is written; Raft can rebuild it (see marker.go for when it must).
func boltOptions(mmap int) *bbolt.Options {
	return &bbolt.Options{
		NoSync: true, NoGrowSync: true, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType,
		InitialMmapSize: mmap, Timeout: time.Second, NoStatistics: true,
	}
}

func openBolt(path string, mmap int) (db *bbolt.DB, err error) {
	err = guarded(func() error {
		db, err = bbolt.Open(path, 0o600, boltOptions(mmap))
		return err
	})
	if err != nil && mmap > 1<<30 && !errors.Is(err, bolterrors.ErrTimeout) { // address space may be limited
		return openBolt(path, mmap/4)
	}
	if err != nil {
		return nil, boltError(path, err)
	}
	db.AllocSize = 1 << 20
	return db, nil
}

// initBolt makes the buckets of an empty state.
func initBolt(db *bbolt.DB) error {
	return db.Update(func(tx *bbolt.Tx) error {
		for t := board.Table(1); t <= maxTable; t++ {
			if _, err := tx.CreateBucketIfNotExists(tableName(t)); err != nil {
				return err
			}
		}
		if _, err := tx.CreateBucketIfNotExists(marksBucket); err != nil {
			return err
		}
		b, err := tx.CreateBucketIfNotExists(metaBucket)
		if err != nil || b.Get(metaKey) != nil {
			return err
		}
		return b.Put(metaKey, (&meta{}).encode())
	})
}

// use makes the state file the current generation. Tables of a newer version
// of muster are added to an older file here.
func (s *state) use() error {
	if err := s.fault("state-open"); err != nil {
		return err
	}
	db, err := openBolt(s.path(), s.mmap)
	if err != nil {
		return err
	}
	var m meta
	err = guarded(func() error {
		if err := initBolt(db); err != nil {
			return err
		}
		return db.View(func(tx *bbolt.Tx) (err error) { m, err = readMeta(tx); return err })
	})
	if err != nil {
		return errors.Join(err, db.Close())
	}
	s.mu.Lock()
	s.cur = &generation{db: db, idle: make(chan struct{})}
	s.mu.Unlock()
	s.m = m
	s.publish()
	return nil
}

func (s *state) publish() {
	m := s.m
	s.pub.Store(&m)
}

// now is the newest published meta row.
func (s *state) now() meta {
	if m := s.pub.Load(); m != nil {
		return *m
	}
	return meta{}
}

func (s *state) acquire() (*generation, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cur == nil {
		return nil, ErrClosed
	}
	s.cur.readers++
	return s.cur, nil
}

func (s *state) release(g *generation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	g.readers--
	if g.retired && g.readers == 0 {
		close(g.idle)
	}
}

// retire takes the current generation out of use; its file is closed when its
// readers are done.
func (s *state) retire() {
	s.mu.Lock()
	defer s.mu.Unlock()
	g := s.cur
	if g == nil {
		return
	}
	s.cur = nil
	g.retired = true
	if g.readers == 0 {
		close(g.idle)
	}
	s.old.Add(1)
	go func() {
		defer s.old.Done()
		<-g.idle
		_ = g.db.Close() // nothing is lost: a newer file has taken its place, or close has synced it
	}()
}

// read gives fn one consistent reading. fn must be short: it must not wait,
// send, or write to a network; a state that grows waits for its readers.
func (s *state) read(fn func(*view) error) error {
	g, err := s.acquire()
	if err != nil {
		return err
	}
	defer s.release(g)
	return guarded(func() error {
		tx, err := g.db.Begin(false)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		v, err := newView(tx)
		if err != nil {
			return err
		}
		if err := fn(v); v.err == nil {
			return err
		}
		return v.err
	})
}

// close ends the state. With sync, the file is whole on the disk afterwards.
func (s *state) close(sync bool) error {
	s.cancelSnapshots(true)
	s.mu.Lock()
	g := s.cur
	s.mu.Unlock()
	var err error
	if g != nil && sync {
		if err = s.fault("state-sync"); err == nil {
			err = errors.Join(saveFree(g.db), g.db.Sync())
		}
	}
	s.retire()
	s.old.Wait()
	return err
}

func syncDir(dir string) error {
	f, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close())
}

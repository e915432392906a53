package logstore

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/hashicorp/raft"
	"go.etcd.io/bbolt"
)

var (
	boltEntries = []byte("entries") // index, big endian -> entry
	boltStable  = []byte("stable")
)

const (
	boltMmap   = 256 << 20 // address space only: growing the map stops the writer until the readers are gone
	boltChunk  = 10_000    // entries removed in one transaction
	boltAppend = 0.95      // pages are filled in order and never again
)

// boltStore keeps log and stable values in one bbolt file, every commit synced.
type boltStore struct {
	db    *bbolt.DB
	fault func(op string) error
	sync  atomic.Uint64
}

func boltOptions() *bbolt.Options {
	return &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, InitialMmapSize: boltMmap}
}

func openBolt(dir string, opts Options) (*boltStore, error) {
	path := filepath.Join(dir, boltFile)
	if _, err := os.Stat(path); errors.Is(err, os.ErrNotExist) {
		if err := makeBolt(dir, path); err != nil {
			return nil, err
		}
	}
	if err := checkBoltFile(path); err != nil {
		return nil, err
	}
	db, err := bbolt.Open(path, 0o600, boltOptions())
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", boltFile, err)
	}
	if err := hasBuckets(db); err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return &boltStore{db: db, fault: opts.Fault}, nil
}

// makeBolt makes the file under another name first: a bbolt file half made cannot be opened, and cannot be told from
// a damaged one.
func makeBolt(dir, path string) error {
	tmp := path + ".tmp"
	if err := os.RemoveAll(tmp); err != nil {
		return err
	}
	db, err := bbolt.Open(tmp, 0o600, boltOptions())
	if err != nil {
		return err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{boltEntries, boltStable} {
			if _, err := tx.CreateBucket(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err := errors.Join(err, db.Close()); err != nil {
		return err
	}
	if err := syncPath(tmp); err != nil {
		return err
	}
	if err := os.Rename(tmp, path); err != nil {
		return err
	}
	return syncDir(dir)
}

func hasBuckets(db *bbolt.DB) error {
	return db.View(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{boltEntries, boltStable} {
			if tx.Bucket(name) == nil {
				return fmt.Errorf("%w: %s has no bucket %q", ErrDamaged, boltFile, name)
			}
		}
		return nil
	})
}

func (s *boltStore) Close() error      { return s.db.Close() }
func (s *boltStore) IsMonotonic() bool { return false }
func (s *boltStore) syncs() uint64     { return s.sync.Load() }

func indexKey(i uint64) []byte { return binary.BigEndian.AppendUint64(nil, i) }

func (s *boltStore) update(fn func(tx *bbolt.Tx) error) error {
	if s.fault != nil {
		if err := s.fault("commit"); err != nil {
			return err
		}
	}
	s.sync.Add(2)
	return s.db.Update(fn)
}

func (s *boltStore) edge(at func(*bbolt.Cursor) ([]byte, []byte)) (index uint64, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		if k, _ := at(tx.Bucket(boltEntries).Cursor()); k != nil {
			index = binary.BigEndian.Uint64(k)
		}
		return nil
	})
	return index, err
}

func (s *boltStore) FirstIndex() (uint64, error) { return s.edge((*bbolt.Cursor).First) }
func (s *boltStore) LastIndex() (uint64, error)  { return s.edge((*bbolt.Cursor).Last) }

func (s *boltStore) GetLog(index uint64, e *raft.Log) error {
	return s.db.View(func(tx *bbolt.Tx) error {
		v := tx.Bucket(boltEntries).Get(indexKey(index))
		if v == nil {
			return raft.ErrLogNotFound
		}
		if err := decodeEntry(v, e); err != nil {
			return err
		}
		if e.Index != index {
			return fmt.Errorf("%w: entry %d lies at %d", ErrDamaged, e.Index, index)
		}
		return nil
	})
}

func (s *boltStore) StoreLog(e *raft.Log) error { return s.StoreLogs([]*raft.Log{e}) }

func (s *boltStore) StoreLogs(entries []*raft.Log) error {
	return s.update(func(tx *bbolt.Tx) error {
		b := tx.Bucket(boltEntries)
		b.FillPercent = boltAppend
		for _, e := range entries {
			if err := b.Put(indexKey(e.Index), appendEntry(make([]byte, 0, encodedSize(e)), e)); err != nil {
				return err
			}
		}
		return nil
	})
}

// DeleteRange works from the outer end inwards, so that a crash between two transactions leaves no hole.
func (s *boltStore) DeleteRange(lo, hi uint64) error {
	first, err := s.FirstIndex()
	if err != nil {
		return err
	}
	fromFront := lo <= first
	for more := true; more; {
		err := s.update(func(tx *bbolt.Tx) error {
			c := tx.Bucket(boltEntries).Cursor()
			for range boltChunk {
				k := outermost(c, fromFront)
				if k == nil {
					more = false
					return nil
				}
				if i := binary.BigEndian.Uint64(k); i < lo && !fromFront || i > hi && fromFront {
					more = false
					return nil
				}
				if err := c.Delete(); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

func outermost(c *bbolt.Cursor, front bool) []byte {
	if front {
		k, _ := c.First()
		return k
	}
	k, _ := c.Last()
	return k
}

func (s *boltStore) Set(key, val []byte) error {
	return s.update(func(tx *bbolt.Tx) error { return tx.Bucket(boltStable).Put(key, val) })
}

func (s *boltStore) Get(key []byte) (val []byte, err error) {
	err = s.db.View(func(tx *bbolt.Tx) error {
		if v := tx.Bucket(boltStable).Get(key); v != nil {
			val = append([]byte{}, v...)
		}
		return nil
	})
	return val, err
}

func (s *boltStore) SetUint64(key []byte, val uint64) error { return s.Set(key, indexKey(val)) }

func (s *boltStore) GetUint64(key []byte) (uint64, error) {
	v, err := s.Get(key)
	if err != nil || v == nil {
		return 0, err
	}
	if len(v) != 8 {
		return 0, fmt.Errorf("stable value %q has %d bytes, not 8", key, len(v))
	}
	return binary.BigEndian.Uint64(v), nil
}

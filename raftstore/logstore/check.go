package logstore

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/hashicorp/raft"
	"github.com/hashicorp/raft-wal/metadb"
	"github.com/hashicorp/raft-wal/types"
	"go.etcd.io/bbolt"
)

// Report is what Check found in a folder.
type Report struct {
	Kind        Kind
	First, Last uint64 // 0 if the log is empty
	LastTerm    uint64 // of the last entry
	Entries     uint64
	Bytes       int64 // encoded entries
	Stable      int   // stable values
	Segments    int   // WAL only

	// Unfinished says what the next Open will repair by itself: the traces of a write that was cut off.
	Unfinished []string
}

// Check reads a log store that no node runs on, and changes nothing: it does not repair, nor make the folder. Every
// entry and every checksum is read. Errors: ErrMissing, ErrLocked, ErrDamaged (with the report so far).
func Check(dir string) (Report, error) {
	var r Report
	kind, err := detect(dir)
	if err != nil {
		return r, err
	}
	if kind == "" {
		return r, fmt.Errorf("log store %s: %w", dir, ErrMissing)
	}
	r.Kind = kind
	if _, err := os.Stat(filepath.Join(dir, lockFile)); err == nil {
		lock, err := lockDir(dir)
		if err != nil {
			return r, err
		}
		defer lock.Close()
	}
	err = caught(func() error {
		if kind == WAL {
			return r.checkWAL(dir)
		}
		return r.checkBolt(filepath.Join(dir, boltFile))
	})
	if err != nil {
		return r, openError(dir, err)
	}
	return r, nil
}

func readOnly(path string) (*bbolt.DB, error) {
	if err := checkBoltFile(path); err != nil {
		return nil, err
	}
	return bbolt.Open(path, 0, &bbolt.Options{ReadOnly: true, Timeout: time.Second})
}

func (r *Report) add(index uint64, n int) {
	if r.First == 0 {
		r.First = index
	}
	r.Last = index
	r.Entries++
	r.Bytes += int64(n)
}

// termOf notes the term of an entry, which was checked.
func (r *Report) termOf(raw []byte) {
	var e raft.Log
	if decodeEntry(raw, &e) == nil {
		r.LastTerm = e.Term
	}
}

func (r *Report) checkBolt(path string) error {
	db, err := readOnly(path)
	if err != nil {
		return err
	}
	if err := hasBuckets(db); err != nil {
		return errors.Join(err, db.Close())
	}
	err = db.View(func(tx *bbolt.Tx) error {
		r.Stable = tx.Bucket(boltStable).Stats().KeyN
		if err := walkBucket(tx, false, r.add); err != nil {
			return err
		}
		if _, raw := tx.Bucket(boltEntries).Cursor().Last(); raw != nil {
			r.termOf(raw)
		}
		return nil
	})
	return errors.Join(err, db.Close())
}

func (r *Report) checkWAL(dir string) error {
	state, err := r.walState(filepath.Join(dir, walMetaFile))
	if err != nil {
		return err
	}
	r.Segments = len(state.Segments)
	w := walk{dir: dir, visit: r.add, entry: r.termOf, unfinished: func(s string) { r.Unfinished = append(r.Unfinished, s) }}
	return w.segments(state.Segments)
}

func (r *Report) walState(path string) (types.PersistentState, error) {
	var state types.PersistentState
	db, err := readOnly(path)
	if err != nil {
		return state, err
	}
	err = db.View(func(tx *bbolt.Tx) error {
		meta, stable := tx.Bucket([]byte(metadb.MetaBucket)), tx.Bucket([]byte(metadb.StableBucket))
		if meta == nil || stable == nil {
			return fmt.Errorf("%w: %s has no buckets", ErrDamaged, walMetaFile)
		}
		r.Stable = stable.Stats().KeyN
		if raw := meta.Get([]byte(metadb.MetaKey)); raw != nil {
			return json.Unmarshal(raw, &state)
		}
		return nil
	})
	return state, errors.Join(err, db.Close())
}

package launcher

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"time"

	"go.etcd.io/bbolt"
	berrors "go.etcd.io/bbolt/errors"

	"muster/board"
	"muster/board/lease"
)

// journal is what a node must not forget when it dies: which launch keys were
// taken or voided, the highest epoch of each card and slot, and the reports
// that have no outcome yet. Every write is synced, except acknowledgements,
// which ride with the next one: an item that is sent twice is known by its
// number. It belongs to the reconciler's loop.
type journal struct {
	db   *bbolt.DB
	id   string
	next uint64 // number of the next outbox item
}

var (
	bucketMeta    = []byte("meta")
	bucketEntries = []byte("entries") // launch key -> entryRecord
	bucketHigh    = []byte("high")    // card/slot -> lease.Epoch
	bucketTyped   = []byte("typed")   // order, or prompt/run -> what became of a text
	bucketOutbox  = []byte("outbox")  // number, big-endian -> item
	keyID         = []byte("id")
	keyNext       = []byte("next")
)

// entryRecord is an entry as it is stored; the slot is what its epoch is compared in.
type entryRecord struct {
	Slot  string      `json:"slot"`
	Entry lease.Entry `json:"entry"`
}

// item is one message of the outbox: a report of this node, or a word a session
// left behind. Moments are stored, ages are sent (M-02).
type item struct {
	N      uint64         `json:"n"`
	Run    string         `json:"run"`
	Act    lease.Report   `json:"act"`
	Report *board.Report  `json:"report,omitempty"`
	Word   *board.Request `json:"word,omitempty"`

	Delivered *board.Delivered `json:"delivered,omitempty"`
	Boot      string           `json:"boot"`
	At        lease.Instant    `json:"at"`
	Wall      int64            `json:"wall"`
}

// change is what one decision writes; several are one transaction.
type change struct {
	key, slot string
	entry     *lease.Entry // nil: forget the key
	high      bool
	file      *item

	typed, state string // of a text; without a state it is forgotten
}

// contents is what a journal held when it was opened.
type contents struct {
	entries map[string]entryRecord
	high    map[string]lease.Epoch
	typed   map[string]string
	outbox  []*item
	lost    string // why the one before it is not there; "": it is, or there was none
}

const journalFile = "journal.db"

// openJournal opens the journal of a data folder. One that cannot be read is
// set aside and replaced by a new one with a new id: the run folders still say
// what was started, so nothing is started again.
func openJournal(dir string, log *slog.Logger) (*journal, *contents, error) {
	path := filepath.Join(dir, journalFile)
	missing := !exists(path)
	j, c, err := loadJournal(path)
	if err == nil && missing {
		if names, _ := os.ReadDir(filepath.Join(dir, "runs")); len(names) > 0 {
			c.lost = "it is missing beside the folders of runs"
		}
	}
	if err == nil || errors.Is(err, berrors.ErrTimeout) || errors.Is(err, os.ErrPermission) || isFull(err) {
		if errors.Is(err, berrors.ErrTimeout) {
			err = fmt.Errorf("journal %s is in use by another process", path)
		}
		return j, c, err
	}
	aside := fmt.Sprintf("%s.broken-%d", path, time.Now().Unix())
	if rerr := os.Rename(path, aside); rerr != nil {
		return nil, nil, errors.Join(err, rerr)
	}
	log.Error("journal cannot be read: set aside, a new one begins", "journal", aside, "err", err)
	j, c, lerr := loadJournal(path)
	if lerr == nil {
		c.lost = err.Error()
	}
	return j, c, lerr
}

func loadJournal(path string) (j *journal, c *contents, err error) {
	var db *bbolt.DB
	defer func() {
		// bbolt panics on some damages instead of answering.
		if p := recover(); p != nil {
			err = fmt.Errorf("journal %s: %v", path, p)
		}
		if err != nil && db != nil {
			db.Close()
		}
	}()
	db, err = bbolt.Open(path, 0o600, &bbolt.Options{Timeout: time.Second, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType})
	if err != nil {
		return nil, nil, fmt.Errorf("journal %s: %w", path, err)
	}
	if err := checkFile(db); err != nil {
		return nil, nil, fmt.Errorf("journal %s: %w", path, err)
	}
	j = &journal{db: db}
	c = &contents{entries: map[string]entryRecord{}, high: map[string]lease.Epoch{}, typed: map[string]string{}}
	if err := db.Update(func(tx *bbolt.Tx) error { return j.load(tx, c) }); err != nil {
		return nil, nil, fmt.Errorf("journal %s: %w", path, err)
	}
	return j, c, nil
}

func checkFile(db *bbolt.DB) error {
	return db.View(func(tx *bbolt.Tx) error {
		var first error
		for err := range tx.Check() {
			if first == nil {
				first = err
			}
		}
		return first
	})
}

func (j *journal) load(tx *bbolt.Tx, c *contents) error {
	for _, name := range [][]byte{bucketMeta, bucketEntries, bucketHigh, bucketTyped, bucketOutbox} {
		if _, err := tx.CreateBucketIfNotExists(name); err != nil {
			return err
		}
	}
	meta := tx.Bucket(bucketMeta)
	if j.id = string(meta.Get(keyID)); j.id == "" {
		var b [16]byte
		if _, err := rand.Read(b[:]); err != nil {
			return err
		}
		j.id = hex.EncodeToString(b[:])
		if err := meta.Put(keyID, []byte(j.id)); err != nil {
			return err
		}
	}
	j.next = 1
	if b := meta.Get(keyNext); len(b) == 8 {
		j.next = binary.BigEndian.Uint64(b)
	}
	err := tx.Bucket(bucketEntries).ForEach(func(k, v []byte) error {
		var e entryRecord
		err := json.Unmarshal(v, &e)
		c.entries[string(k)] = e
		return err
	})
	if err != nil {
		return err
	}
	err = tx.Bucket(bucketHigh).ForEach(func(k, v []byte) error {
		var e lease.Epoch
		err := json.Unmarshal(v, &e)
		c.high[string(k)] = e
		return err
	})
	if err != nil {
		return err
	}
	err = tx.Bucket(bucketTyped).ForEach(func(k, v []byte) error {
		c.typed[string(k)] = string(v)
		return nil
	})
	if err != nil {
		return err
	}
	return tx.Bucket(bucketOutbox).ForEach(func(k, v []byte) error {
		it := new(item)
		err := json.Unmarshal(v, it)
		c.outbox = append(c.outbox, it)
		return err
	})
}

// write makes changes and acknowledgements one synced transaction. Items get
// their numbers here.
func (j *journal) write(changes []change, acked []uint64) error {
	err := j.db.Update(func(tx *bbolt.Tx) error {
		for _, n := range acked {
			if err := tx.Bucket(bucketOutbox).Delete(number(n)); err != nil {
				return err
			}
		}
		next := j.next
		for i := range changes {
			if err := writeChange(tx, &changes[i], &next); err != nil {
				return err
			}
		}
		return tx.Bucket(bucketMeta).Put(keyNext, number(next))
	})
	if err != nil {
		return fmt.Errorf("journal: %w", err)
	}
	for i := range changes {
		if changes[i].file != nil {
			j.next = changes[i].file.N + 1
		}
	}
	return nil
}

func writeChange(tx *bbolt.Tx, c *change, next *uint64) error {
	switch typed := tx.Bucket(bucketTyped); {
	case c.typed != "" && c.state == "":
		return typed.Delete([]byte(c.typed))
	case c.typed != "":
		return typed.Put([]byte(c.typed), []byte(c.state))
	}
	if c.key == "" { // a note: of no launch key
		return c.number(tx, next)
	}
	if c.entry == nil {
		return tx.Bucket(bucketEntries).Delete([]byte(c.key))
	}
	if err := putJSON(tx.Bucket(bucketEntries), []byte(c.key), entryRecord{c.slot, *c.entry}); err != nil {
		return err
	}
	if c.high {
		if err := putJSON(tx.Bucket(bucketHigh), []byte(c.slot), c.entry.Epoch); err != nil {
			return err
		}
	}
	if c.file == nil {
		return nil
	}
	return c.number(tx, next)
}

// number gives the item that is filed its number, and stores it.
func (c *change) number(tx *bbolt.Tx, next *uint64) error {
	c.file.N = *next
	*next++
	return putJSON(tx.Bucket(bucketOutbox), number(c.file.N), c.file)
}

func putJSON(b *bbolt.Bucket, key []byte, v any) error {
	val, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return b.Put(key, val)
}

func number(n uint64) []byte { return binary.BigEndian.AppendUint64(nil, n) }

func (j *journal) close() error { return j.db.Close() }

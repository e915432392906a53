package logstore

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"time"

	"github.com/hashicorp/raft"
)

// Store is what Raft needs of a log folder. Both kinds implement it, and so does Log, which is what Open returns.
type Store interface {
	raft.LogStore
	raft.StableStore

	// IsMonotonic tells Raft that the store refuses gaps between indexes. A wrapper that hides it lets Raft append
	// behind a gap after it has installed a snapshot.
	IsMonotonic() bool
	// Bytes is the size of the live entries as encoded, without framing, preallocation and free pages. (Of entries that
	// a lazy Open has left unread it is up to 15 bytes each too high.)
	Bytes() int64
	Close() error
}

// Kind names a way of keeping the log on disk.
type Kind string

const (
	// WAL is raft-wal: append-only segments, one sync an append.
	WAL Kind = "wal"
	// Bolt is one bbolt file, two syncs an append.
	Bolt Kind = "bolt"
	// Default is the kind a new folder gets.
	Default = WAL
)

// Errors of this package, for errors.Is. What is printed also says which folder, why, and what to do next.
var (
	// ErrDamaged: the folder holds a log or a vote that cannot be trusted. The node must not go on under this store
	// id: a forgotten vote may be given twice.
	ErrDamaged = errors.New("log store is damaged")
	// ErrLocked: another process has the folder open.
	ErrLocked = errors.New("log store is in use by another process")
	// ErrWrongKind: the folder was made by the other kind of store.
	ErrWrongKind = errors.New("log store is of another kind")
	// ErrMissing: Options.MustExist, and there is no log store in the folder.
	ErrMissing = errors.New("no log store here")
	// ErrHung: a write did not return within Watch.Slow.
	ErrHung = errors.New("write to the log store hangs")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("log store is closed")
	// ErrShort, from Options.Fault, lets a write end half way.
	ErrShort = errors.New("the disk took half of a write")
	// ErrOrder: entries out of order, or a truncation in the middle: a mistake of the caller. Nothing was written and
	// the latch is untouched.
	ErrOrder = errors.New("log entries out of order")
)

// Watch is the watchdog on a disk that hangs.
type Watch struct {
	// Slow is how long one write may take; 0 switches the watchdog off.
	Slow time.Duration
	// OnHang is called once, in a goroutine of its own, when a write has not returned within Slow: the place to close
	// the Raft transport, so that heartbeats stop and others elect. When it returns the store latches with ErrHung.
	OnHang func()
}

// Options of Open. The zero value is good.
type Options struct {
	// MustExist refuses a folder without a log store (ErrMissing) instead of making one: for a node that knows that it
	// had a log here.
	MustExist bool
	// Lazy leaves the entries unread at Open (of WAL: those in full segments) until they are asked for. Right after an
	// earlier Open and Close, or the death of that process, while the machine stayed up: what was synced then is as
	// good as it was. Damage shows at the first read of an entry, and in Verify.
	Lazy bool
	// SegmentSize in bytes for WAL: the size of one file, preallocated. 0 means 16 MiB.
	SegmentSize int
	Watch       Watch
	Logger      *slog.Logger

	// Fault is the test's way to break one named operation of the disk (Operations): its error is the operation's, and
	// nothing is done; with ErrShort half of a write is; as long as it does not return the disk hangs.
	Fault func(op string) error
}

// Operations are the names that Options.Fault is asked for, by kind of store.
func Operations(kind Kind) []string {
	if kind == Bolt {
		return []string{"commit"}
	}
	return []string{"create", "write", "sync", "meta"}
}

const (
	lockFile           = "LOCK"
	walMetaFile        = "wal-meta.db"
	boltFile           = "log.db"
	defaultSegmentSize = 16 << 20
)

// inner is one kind of store behind the latch. Its writes are called by one goroutine at a time.
type inner interface {
	raft.LogStore
	raft.StableStore
	IsMonotonic() bool
	Close() error
	syncs() uint64
	// each visits all entries, in order, with the bytes of each; only before the first write. lazy leaves entries
	// unread where their sizes are known without.
	each(lazy bool, visit visitor) error
}

// Open opens the log store in dir, or makes one of that kind. It syncs what it finds (an earlier process may have
// been killed between its write and its sync, and Raft counts what it reads as stored) and, unless Options.Lazy,
// reads every entry once: damage shows here and not in the middle of the night. Errors: ErrLocked, ErrWrongKind, ErrDamaged, ErrMissing.
func Open(kind Kind, dir string, opts Options) (*Log, error) {
	if kind != WAL && kind != Bolt {
		return nil, fmt.Errorf("log store %s: unknown kind %q: use %q or %q", dir, kind, WAL, Bolt)
	}
	if opts.SegmentSize == 0 {
		opts.SegmentSize = defaultSegmentSize
	}
	if opts.Logger == nil {
		opts.Logger = slog.New(slog.DiscardHandler)
	}
	if err := makeDir(dir); err != nil {
		return nil, fmt.Errorf("log store %s: %w", dir, err)
	}
	lock, err := lockDir(dir)
	if err != nil {
		return nil, err
	}
	l, err := openLocked(kind, dir, opts)
	if err != nil {
		lock.Close()
		return nil, err
	}
	l.lock = lock
	return l, nil
}

func openLocked(kind Kind, dir string, opts Options) (*Log, error) {
	found, err := detect(dir)
	if err != nil {
		return nil, err
	}
	switch {
	case found == "" && opts.MustExist:
		return nil, fmt.Errorf("log store %s: %w, and this node had one: its log and vote are lost; "+
			"it may only rejoin under a new store id", dir, ErrMissing)
	case found != "" && found != kind:
		return nil, fmt.Errorf("log store %s: %w: it is %q and the node is set to %q: set it back, "+
			"or move the folder aside and let the node rejoin under a new store id", dir, ErrWrongKind, found, kind)
	}
	if err := syncAll(dir); err != nil {
		return nil, fmt.Errorf("log store %s: %w", dir, err)
	}
	l := newLog(kind, dir, opts)
	err = caught(func() error {
		in, err := openInner(kind, dir, opts)
		if err != nil {
			return err
		}
		l.in = in
		return l.readAll(opts.Lazy)
	})
	if err != nil {
		if l.in != nil && !errors.Is(err, errPanic) { // after a panic its locks may be held for ever
			l.in.Close()
		}
		return nil, openError(dir, err)
	}
	return l, nil
}

func openInner(kind Kind, dir string, opts Options) (inner, error) {
	if kind == WAL {
		s, err := openWAL(dir, opts)
		if err != nil {
			return nil, err // not a nil *walStore in an interface
		}
		return s, nil
	}
	s, err := openBolt(dir, opts)
	if err != nil {
		return nil, err
	}
	return s, nil
}

// openError tells damage from a disk that refuses: only the second may be better after a second try.
func openError(dir string, err error) error {
	var path *fs.PathError
	if !errors.Is(err, ErrDamaged) && !errors.Is(err, fs.ErrNotExist) && errors.As(err, &path) {
		return fmt.Errorf("log store %s: %w", dir, err)
	}
	return damaged(dir, err)
}

func damaged(dir string, cause error) error {
	if errors.Is(cause, ErrDamaged) {
		return fmt.Errorf("log store %s: %w; its vote counts no more: move the folder aside and let the node rejoin "+
			"under a new store id", dir, cause)
	}
	return fmt.Errorf("log store %s: %w: %w; its vote counts no more: move the folder aside and let the node rejoin "+
		"under a new store id", dir, ErrDamaged, cause)
}

// detect says which kind of store the folder holds: "" is none. Segments without their meta file are damage: an
// empty store made beside them would forget the vote.
func detect(dir string) (Kind, error) {
	has := func(name string) bool { _, err := os.Lstat(filepath.Join(dir, name)); return err == nil }
	segments := 0
	files, err := os.ReadDir(dir) // no pattern: a folder's own name may be one
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", fmt.Errorf("log store %s: %w", dir, err)
	}
	for _, f := range files {
		if strings.HasSuffix(f.Name(), ".wal") {
			segments++
		}
	}
	wal, bolt := has(walMetaFile), has(boltFile)
	switch {
	case wal && bolt:
		return "", damaged(dir, fmt.Errorf("both %s and %s are there", walMetaFile, boltFile))
	case wal:
		return WAL, nil
	case bolt:
		return Bolt, nil
	case segments > 0:
		return "", damaged(dir, fmt.Errorf("%d segments without %s", segments, walMetaFile))
	}
	return "", nil
}

var errPanic = errors.New("panic")

// caught turns a panic of a store that reads a broken file, and a fault on its memory map, into an error.
func caught(fn func() error) (err error) {
	defer debug.SetPanicOnFault(debug.SetPanicOnFault(true))
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("%w: %w: %v", ErrDamaged, errPanic, p)
		}
	}()
	return fn()
}

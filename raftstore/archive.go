package raftstore

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"

	"go.etcd.io/bbolt"

	"muster/board"
)

// A backup is a stream: a line that names the format, a line of JSON that says
// of what it is, every record (table byte, key and value with their lengths as
// varints), a zero byte, the number of records (8 bytes, big endian) and the
// SHA-256 of all before it. It is made of records, not of pages of the file, so
// that nothing is in it which its writer did not put there, and so that the file
// of a later version may look otherwise.
const (
	archiveMagic   = "muster backup 1\n"
	archiveHeadMax = 64 << 10
	archiveValMax  = 16 << 20
)

// ErrBackup: what was read is no backup, or not a whole one, or of a newer version.
var ErrBackup = errors.New("backup cannot be read")

// About says of what a backup is.
type About struct {
	Format  uint64 `json:"format"` // of the state in it: see board.Format
	Fleet   string `json:"fleet"`
	Name    string `json:"name,omitempty"`
	Era     uint64 `json:"era"`
	Seq     uint64 `json:"seq"`
	Time    int64  `json:"time"`           // board time of its newest transaction, ms
	Hash    string `json:"hash"`           // of the state it was taken from, as `muster check` shows it
	Node    string `json:"node,omitempty"` // that took it
	Taken   string `json:"taken,omitempty"`
	Version string `json:"version,omitempty"`
}

// Backup writes one moment of the state to w, which must be a file: a reading
// stays open meanwhile. keep says how a record stands in the backup, nil for not
// at all; its error is that of the backup. A backup that a restore or a growing state broke off is begun anew, by
// truncating w.
func (s *Store) Backup(ctx context.Context, w BackupFile, about About, keep func(board.Table, string, []byte) ([]byte, error)) (About, error) {
	for try := 0; ; try++ {
		got, err := s.backup(ctx, w, about, keep)
		if !errors.Is(err, errCancelled) || try == 5 || ctx.Err() != nil {
			return got, err
		}
		if _, err := w.Seek(0, io.SeekStart); err != nil {
			return got, err
		}
		if err := w.Truncate(0); err != nil {
			return got, err
		}
	}
}

// BackupFile is what a backup is written to. *os.File is one.
type BackupFile interface {
	io.Writer
	io.Seeker
	Truncate(size int64) error
}

func (s *Store) backup(ctx context.Context, w io.Writer, about About, keep func(board.Table, string, []byte) ([]byte, error)) (About, error) {
	p, err := s.state.snapshot(s.cfg.Snapshots.Rate, s.fail)
	if err != nil {
		return about, err
	}
	if !p.begin() {
		return about, errCancelled
	}
	defer p.end()
	defer context.AfterFunc(ctx, p.stop)()
	err = guarded(func() error {
		v, err := newView(p.tx)
		if err != nil {
			return err
		}
		about.Seq, about.Time, about.Hash = v.m.Seq, v.m.Time, fmt.Sprintf("%x@%d", v.m.Sum.bytes(), v.m.Seq)
		if f := board.GetFleet(v); f != nil {
			about.Fleet, about.Name, about.Era, about.Format = f.ID, f.Name, f.Era, f.Format
		}
		if v.err != nil {
			return v.err
		}
		a, err := newArchive(w, about)
		if err != nil {
			return err
		}
		got, err := eachRecord(p.ctx, p.tx, func(t board.Table, key string, val []byte) error {
			kept, err := keep(t, key, val)
			if err != nil || kept == nil {
				return err
			}
			return a.record(t, key, kept)
		})
		if err == nil && got != v.m.Sum {
			err = fmt.Errorf("%w: its hash at Seq %d is not the one it was counted to", ErrDamaged, v.m.Seq)
		}
		if err != nil {
			return err
		}
		return a.end()
	})
	if errors.Is(err, ErrDamaged) {
		s.fail(err)
	}
	return about, err
}

// eachRecord reads all records of a state, checks each, and counts their hash.
func eachRecord(ctx context.Context, tx *bbolt.Tx, fn func(board.Table, string, []byte) error) (sum, error) {
	var total sum
	for t := board.Table(1); t <= maxTable; t++ {
		b := tx.Bucket(tableName(t))
		if b == nil {
			continue
		}
		c, n := b.Cursor(), 0
		for k, stored := c.First(); k != nil; k, stored = c.Next() {
			val, h, ok := open(t, string(k), stored)
			if !ok {
				return sum{}, fmt.Errorf("%w: checksum of %s %q does not hold", ErrDamaged, t, k)
			}
			total.add(h)
			if n++; n%1024 == 0 && ctx.Err() != nil {
				return sum{}, errCancelled
			}
			if err := fn(t, string(k), val); err != nil {
				return sum{}, err
			}
		}
	}
	return total, nil
}

type archive struct {
	w   *bufio.Writer
	sum hash.Hash
	n   uint64
	buf []byte
}

func newArchive(w io.Writer, about About) (*archive, error) {
	a := &archive{sum: sha256.New()}
	a.w = bufio.NewWriterSize(io.MultiWriter(w, a.sum), 256<<10)
	head, err := json.Marshal(about)
	if err != nil {
		return nil, err
	}
	_, err = fmt.Fprintf(a.w, "%s%s\n", archiveMagic, head)
	return a, err
}

func (a *archive) record(t board.Table, key string, val []byte) error {
	a.n++
	a.buf = append(a.buf[:0], byte(t))
	a.buf = binary.AppendUvarint(a.buf, uint64(len(key)))
	a.buf = append(a.buf, key...)
	a.buf = binary.AppendUvarint(a.buf, uint64(len(val)))
	if _, err := a.w.Write(a.buf); err != nil {
		return err
	}
	_, err := a.w.Write(val)
	return err
}

func (a *archive) end() error {
	tail := binary.BigEndian.AppendUint64([]byte{0}, a.n)
	if _, err := a.w.Write(tail); err != nil {
		return err
	}
	if err := a.w.Flush(); err != nil { // the hash is of what was written so far
		return err
	}
	if _, err := a.w.Write(a.sum.Sum(nil)); err != nil {
		return err
	}
	return a.w.Flush()
}

// ReadBackup reads a backup: begin hears what it is of, fn every record. Nothing
// may be made of it before ReadBackup has returned nil: only then is it whole.
// Values are valid until fn returns. Errors: ErrBackup, and those of begin and fn.
func ReadBackup(r io.Reader, begin func(About) error, fn func(board.Table, string, []byte) error) error {
	x := &unarchive{r: bufio.NewReaderSize(r, 256<<10), sum: sha256.New()}
	about, err := x.head()
	if err != nil {
		return err
	}
	if err := begin(about); err != nil {
		return err
	}
	for n := uint64(0); ; n++ {
		t, key, val, err := x.record()
		if err != nil {
			return err
		}
		if t == 0 {
			return x.tail(n)
		}
		if err := fn(t, key, val); err != nil {
			return err
		}
	}
}

// BackupAbout reads what a backup says of itself, and nothing more.
func BackupAbout(r io.Reader) (About, error) {
	return (&unarchive{r: bufio.NewReader(r), sum: sha256.New()}).head()
}

type unarchive struct {
	r   *bufio.Reader
	sum hash.Hash
	buf []byte
}

func bad(format string, a ...any) error {
	return fmt.Errorf("%w: %s", ErrBackup, fmt.Sprintf(format, a...))
}

func cut(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return bad("it is cut off: it ends before its hash")
	}
	return err
}

func (x *unarchive) head() (a About, err error) {
	magic := make([]byte, len(archiveMagic))
	if _, err := io.ReadFull(x.r, magic); err != nil || string(magic) != archiveMagic {
		if string(magic[:14]) == archiveMagic[:14] {
			return a, bad("it is of a newer version (%q): restore it with the muster that made it, or a newer one", magic)
		}
		return a, bad("this is no backup of muster")
	}
	x.sum.Write(magic)
	var line []byte
	for len(line) == 0 || line[len(line)-1] != '\n' {
		b, err := x.ReadByte()
		if err != nil {
			return a, cut(err)
		}
		if line = append(line, b); len(line) > archiveHeadMax {
			return a, bad("its second line is too long")
		}
	}
	if err := json.Unmarshal(line, &a); err != nil || a.Fleet == "" {
		return a, bad("it does not say of what it is")
	}
	return a, nil
}

// ReadByte implements io.ByteReader: what is read is hashed.
func (x *unarchive) ReadByte() (byte, error) {
	b, err := x.r.ReadByte()
	if err == nil {
		x.sum.Write([]byte{b})
	}
	return b, err
}

func (x *unarchive) take(limit uint64) ([]byte, error) {
	n, err := binary.ReadUvarint(x)
	if err != nil {
		return nil, cut(err)
	}
	if n > limit {
		return nil, bad("a record of %d bytes; the bound is %d", n, limit)
	}
	if uint64(cap(x.buf)) < n {
		x.buf = make([]byte, n)
	}
	b := x.buf[:n]
	if _, err := io.ReadFull(x.r, b); err != nil {
		return nil, cut(err)
	}
	x.sum.Write(b)
	return b, nil
}

func (x *unarchive) record() (t board.Table, key string, val []byte, err error) {
	b, err := x.ReadByte()
	if err != nil || b == 0 {
		return 0, "", nil, cut(err)
	}
	t = board.Table(b)
	if t > maxTable {
		return 0, "", nil, bad("it has a table %d: it is of a newer version; restore it with the muster that made it, or a newer one", b)
	}
	k, err := x.take(maxKey)
	if err != nil {
		return 0, "", nil, err
	}
	if key = string(k); key == "" {
		return 0, "", nil, bad("a record without a key")
	}
	val, err = x.take(archiveValMax)
	return t, key, val, err
}

func (x *unarchive) tail(n uint64) error {
	var count [8]byte
	if _, err := io.ReadFull(x.r, count[:]); err != nil {
		return cut(err)
	}
	x.sum.Write(count[:])
	want := x.sum.Sum(nil)
	got := make([]byte, len(want))
	if _, err := io.ReadFull(x.r, got); err != nil {
		return cut(err)
	}
	if binary.BigEndian.Uint64(count[:]) != n || string(got) != string(want) {
		return bad("it was changed or damaged: its hash is %s, and it names %s", hex.EncodeToString(want)[:16], hex.EncodeToString(got)[:16])
	}
	if _, err := x.r.ReadByte(); !errors.Is(err, io.EOF) {
		return bad("something follows its end")
	}
	return nil
}

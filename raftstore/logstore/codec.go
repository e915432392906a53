package logstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"io"
	"math/bits"
	"time"

	"github.com/hashicorp/raft"
)

// An entry on disk, in both kinds: version byte, CRC-32C of all that follows, then index, term, type, time of
// append (ns since epoch, 0 = none), data with its length, extensions with their length. raft-wal has a checksum of
// the last batch only, and looks at it only after a crash.
const (
	codecVersion = 1
	codecID      = 1<<16 + codecVersion // raft-wal keeps the lower ones for itself
	codecHead    = 5
)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// encodedSize is what an entry takes on disk, without framing.
func encodedSize(e *raft.Log) int {
	at := int64(0)
	if !e.AppendedAt.IsZero() {
		at = e.AppendedAt.UnixNano()
	}
	n := codecHead + 1 + len(e.Data) + len(e.Extensions)
	for _, v := range [...]uint64{e.Index, e.Term, uint64(at<<1) ^ uint64(at>>63), uint64(len(e.Data)), uint64(len(e.Extensions))} {
		n += (bits.Len64(v|1) + 6) / 7
	}
	return n
}

// checkEntry checks an entry's form and checksum without copying it. It fails with ErrDamaged.
func checkEntry(b []byte) (index uint64, err error) {
	if len(b) < codecHead || b[0] != codecVersion {
		return 0, fmt.Errorf("%w: entry is not of version %d", ErrDamaged, codecVersion)
	}
	if crc32.Checksum(b[codecHead:], castagnoli) != binary.LittleEndian.Uint32(b[1:]) {
		return 0, fmt.Errorf("%w: checksum of an entry does not hold", ErrDamaged)
	}
	index, n := binary.Uvarint(b[codecHead:])
	if n <= 0 {
		return 0, fmt.Errorf("%w: entry has a wrong length", ErrDamaged)
	}
	return index, nil
}

func appendEntry(b []byte, e *raft.Log) []byte {
	start := len(b)
	b = append(b, codecVersion, 0, 0, 0, 0)
	b = binary.AppendUvarint(b, e.Index)
	b = binary.AppendUvarint(b, e.Term)
	b = append(b, byte(e.Type))
	at := int64(0)
	if !e.AppendedAt.IsZero() {
		at = e.AppendedAt.UnixNano()
	}
	b = binary.AppendVarint(b, at)
	b = binary.AppendUvarint(b, uint64(len(e.Data)))
	b = append(b, e.Data...)
	b = binary.AppendUvarint(b, uint64(len(e.Extensions)))
	b = append(b, e.Extensions...)
	binary.LittleEndian.PutUint32(b[start+1:], crc32.Checksum(b[start+codecHead:], castagnoli))
	return b
}

// decodeEntry reads an entry; nothing in e refers to b afterwards. It fails with ErrDamaged.
func decodeEntry(b []byte, e *raft.Log) error {
	if _, err := checkEntry(b); err != nil {
		return err
	}
	r := reader{b: b[codecHead:]}
	*e = raft.Log{Index: r.uvarint(), Term: r.uvarint(), Type: raft.LogType(r.byte())}
	if at := r.varint(); at != 0 {
		e.AppendedAt = time.Unix(0, at)
	}
	e.Data = r.bytes()
	e.Extensions = r.bytes()
	if r.bad || len(r.b) != 0 {
		return fmt.Errorf("%w: entry has a wrong length", ErrDamaged)
	}
	return nil
}

// reader takes fields off b; after the first that is short everything is zero and bad is set.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) byte() byte {
	if b := r.take(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	r.take(max(n, 1))
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	r.take(max(n, 1))
	return v
}

func (r *reader) bytes() []byte {
	n := r.uvarint()
	if n > uint64(len(r.b)) {
		r.bad = true
		return nil
	}
	if n == 0 {
		return nil
	}
	return append([]byte(nil), r.take(int(n))...)
}

// walCodec is the same encoding for raft-wal.
type walCodec struct{}

func (walCodec) ID() uint64 { return codecID }

func (walCodec) Encode(e *raft.Log, w io.Writer) error {
	_, err := w.Write(appendEntry(make([]byte, 0, encodedSize(e)), e))
	return err
}

func (walCodec) Decode(b []byte, e *raft.Log) error { return decodeEntry(b, e) }

package raftstore

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"

	"muster/board"
)

// An entry is what one Raft log entry carries: the transactions of one batch,
// with the Seq of the first and the term its executor began in.
//
// Stored: version byte, CRC-32C of all that follows, term, Seq, number of
// transactions; of each its board time and number of changes; of each change
// the table (high bit: delete), the key and, unless deleted, the value, with
// their lengths. Numbers are varints.
type entry struct {
	Term, Seq uint64
	Txns      []board.Txn
}

const (
	entryVersion = 1
	entryHead    = 5
	deleteBit    = 0x80
	maxTable     = 40   // tables that can be stored; those above board.Tables are a later version's (architecture.md §7)
	maxKey       = 1024 // bytes of a key; bbolt takes 32,768
)

// A table of the board that could not be stored would end every node that applies a change of it: this does not build then.
const _ = uint(maxTable - board.Tables)

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

func encodeEntry(e *entry) []byte {
	n := entryHead + 30
	for i := range e.Txns {
		n += e.Txns[i].Size() + 10
	}
	b := make([]byte, entryHead, n)
	b[0] = entryVersion
	b = binary.AppendUvarint(b, e.Term)
	b = binary.AppendUvarint(b, e.Seq)
	b = binary.AppendUvarint(b, uint64(len(e.Txns)))
	for i := range e.Txns {
		t := &e.Txns[i]
		b = binary.AppendVarint(b, t.Time)
		b = binary.AppendUvarint(b, uint64(len(t.Ops)))
		for j := range t.Ops {
			b = appendOp(b, &t.Ops[j])
		}
	}
	binary.LittleEndian.PutUint32(b[1:], crc32.Checksum(b[entryHead:], castagnoli))
	return b
}

func appendOp(b []byte, op *board.Op) []byte {
	if op.Delete {
		b = append(b, byte(op.Table)|deleteBit)
	} else {
		b = append(b, byte(op.Table))
	}
	b = binary.AppendUvarint(b, uint64(len(op.Key)))
	b = append(b, op.Key...)
	if !op.Delete {
		b = binary.AppendUvarint(b, uint64(len(op.Val)))
		b = append(b, op.Val...)
	}
	return b
}

// decodeEntry reads an entry. Values refer to b. A version it does not know is
// an error: whoever cannot read an entry must stop, not go on without it.
func decodeEntry(b []byte) (entry, error) {
	if len(b) < entryHead || b[0] != entryVersion {
		return entry{}, fmt.Errorf("log entry of an unknown version: this node is too old for it")
	}
	if crc32.Checksum(b[entryHead:], castagnoli) != binary.LittleEndian.Uint32(b[1:]) {
		return entry{}, fmt.Errorf("log entry: checksum does not hold")
	}
	r := reader{b: b[entryHead:]}
	e := entry{Term: r.uvarint(), Seq: r.uvarint()}
	n := r.count(2)
	e.Txns = make([]board.Txn, 0, n)
	for range n {
		t := board.Txn{Time: r.varint()}
		ops := r.count(2)
		t.Ops = make([]board.Op, 0, ops)
		for range ops {
			t.Ops = append(t.Ops, r.op())
		}
		e.Txns = append(e.Txns, t)
	}
	if r.bad || len(r.b) > 0 {
		return entry{}, fmt.Errorf("log entry: wrong length")
	}
	return e, nil
}

// reader takes fields off b; after the first that is short, all are zero and bad is set.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n uint64) []byte {
	if r.bad || n > uint64(len(r.b)) {
		r.bad, r.b = true, nil
		return nil
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) uvarint() uint64 {
	v, n := binary.Uvarint(r.b)
	r.take(uint64(max(n, 1)))
	return v
}

func (r *reader) varint() int64 {
	v, n := binary.Varint(r.b)
	r.take(uint64(max(n, 1)))
	return v
}

// count reads a number of things that take at least size bytes each.
func (r *reader) count(size int) uint64 {
	n := r.uvarint()
	if n > uint64(len(r.b)/size) {
		r.bad = true
		return 0
	}
	return n
}

func (r *reader) op() board.Op {
	var op board.Op
	if t := r.take(1); t != nil {
		op.Table, op.Delete = board.Table(t[0]&^deleteBit), t[0]&deleteBit != 0
	}
	op.Key = string(r.take(r.uvarint()))
	if !op.Delete {
		op.Val = r.take(r.uvarint())
	}
	if op.Table < 1 || op.Table > maxTable || op.Key == "" {
		r.bad = true
	}
	return op
}

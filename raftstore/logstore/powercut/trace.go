package powercut

import (
	"compress/gzip"
	"encoding/gob"
	"errors"
	"io"
)

// Kinds of Op.
const (
	opCreate = iota + 1
	opUnlink
	opRename
	opWrite
	opSize
	opSync
)

// Op is one change of the disk.
type Op struct {
	Kind        int
	Dir, Dir2   uint64
	Name, Name2 string
	Ino         uint64
	Off         int64
	Data        []byte
	Mode        uint32
	IsDir       bool
}

// Trace is all that was done to a disk, in order.
type Trace struct{ Ops []Op }

// Record begins to keep everything that is done to the disk, which must still be empty.
func (d *Disk) Record() *Trace {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trace = &Trace{}
	return d.trace
}

// Written returns what the first n operations have written to a file with that name in the root: the place for a
// child's own words about what it has begun and what was acknowledged, in exact order with what it did to the disk.
func (t *Trace) Written(name string, n int) []byte {
	var out []byte
	ino, next := uint64(0), uint64(rootIno+1)
	for _, op := range t.Ops[:n] {
		switch {
		case op.Kind == opCreate:
			if op.Dir == rootIno && op.Name == name {
				ino = next
			}
			next++
		case op.Kind == opWrite && op.Ino == ino && ino != 0:
			out = append(out[:min(op.Off, int64(len(out)))], op.Data...)
		}
	}
	return out
}

// Replay returns a disk to which the first n operations have been done.
func (t *Trace) Replay(n int) *Disk {
	d := New()
	for _, op := range t.Ops[:n] {
		d.apply(op)
	}
	return d
}

// Write writes the trace, compressed.
func (t *Trace) Write(w io.Writer) error {
	z := gzip.NewWriter(w)
	return errors.Join(gob.NewEncoder(z).Encode(t), z.Close())
}

// ReadTrace reads what Write wrote.
func ReadTrace(r io.Reader) (*Trace, error) {
	z, err := gzip.NewReader(r)
	if err != nil {
		return nil, err
	}
	t := &Trace{}
	return t, errors.Join(gob.NewDecoder(z).Decode(t), z.Close())
}

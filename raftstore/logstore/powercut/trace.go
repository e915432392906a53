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
	opMark
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

// Mark returns the words of a mark, false if the Op is a change of the disk.
func (o Op) Mark() ([]byte, bool) { return o.Data, o.Kind == opMark }

// Trace is all that was done to a disk, in order.
type Trace struct{ Ops []Op }

// Record begins to keep everything that is done to the disk, which must still be empty.
func (d *Disk) Record() *Trace {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.trace = &Trace{}
	return d.trace
}

// Mark writes words into the trace, for example what the child has acknowledged. Without Record it does nothing.
func (d *Disk) Mark(words []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.trace != nil {
		d.apply(Op{Kind: opMark, Data: words})
	}
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

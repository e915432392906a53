package board

import (
	"encoding/binary"
	"fmt"
	"slices"
	"sync"
	"unsafe"
)

// codecVersion is the first byte of every stored record.
const codecVersion = 1

// maxTag bounds the tags of a record, so that decoding needs no map.
const maxTag = 64

// record is what the codec stores: fields names each field once, for both
// directions; rest keeps what a newer version wrote and this one does not know.
type record interface {
	fields(w *wire)
	rest() *[]byte
}

// unknown is embedded by every record: fields of a newer version survive a read
// and write by an older one (architecture.md §7).
type unknown struct{ raw []byte }

func (u *unknown) rest() *[]byte { return &u.raw }

const (
	kindInt   = 0
	kindBytes = 1
)

// field is where one stored field lies in the record: small, because the
// fields of every record that is read are listed once.
type field struct {
	tag, kind      uint8
	used           bool
	from, val, end uint32 // key, value and end of the field
	n              uint64
}

// wire walks a record's fields, writing them (enc) or reading them.
type wire struct {
	enc bool
	buf []byte
	src []byte // what is read, behind the version
	in  []field
	idx [maxTag]uint16 // 1 + first position of the tag in in
	err error
}

func zigzag(v int64) uint64   { return uint64(v<<1) ^ uint64(v>>63) }
func unzigzag(u uint64) int64 { return int64(u>>1) ^ -int64(u&1) }

func (w *wire) key(tag, kind uint8) {
	w.buf = binary.AppendUvarint(w.buf, uint64(tag)<<2|uint64(kind))
}

func (w *wire) putBytes(tag uint8, b []byte) {
	w.key(tag, kindBytes)
	w.buf = binary.AppendUvarint(w.buf, uint64(len(b)))
	w.buf = append(w.buf, b...)
}

// value is the bytes of a field.
func (w *wire) value(f *field) []byte { return w.src[f.val:f.end] }

// first gives the first stored value of a tag.
func (w *wire) first(tag, kind uint8) *field {
	p := w.idx[tag]
	if p == 0 {
		return nil
	}
	for i := int(p) - 1; i < len(w.in); i++ {
		if f := &w.in[i]; f.tag == tag && f.kind == kind {
			f.used = true
			return f
		}
	}
	return nil
}

func (w *wire) each(tag uint8, fn func(b []byte)) {
	p := w.idx[tag]
	if p == 0 {
		return
	}
	for i := int(p) - 1; i < len(w.in); i++ {
		if f := &w.in[i]; f.tag == tag && f.kind == kindBytes {
			f.used = true
			fn(w.value(f))
		}
	}
}

func (w *wire) int(tag uint8, p *int64) {
	if w.enc {
		if *p != 0 {
			w.key(tag, kindInt)
			w.buf = binary.AppendUvarint(w.buf, zigzag(*p))
		}
	} else if f := w.first(tag, kindInt); f != nil {
		*p = unzigzag(f.n)
	}
}

func (w *wire) uint(tag uint8, p *uint64) {
	v := int64(*p)
	w.int(tag, &v)
	*p = uint64(v)
}

func (w *wire) bool(tag uint8, p *bool) {
	var v int64
	if *p {
		v = 1
	}
	w.int(tag, &v)
	*p = v != 0
}

// optInt is an integer that may be absent, which is not the same as zero (EXP-11).
func (w *wire) optInt(tag uint8, p **int64) {
	if w.enc {
		if *p != nil {
			w.key(tag, kindInt)
			w.buf = binary.AppendUvarint(w.buf, zigzag(**p))
		}
	} else if f := w.first(tag, kindInt); f != nil {
		v := unzigzag(f.n)
		*p = &v
	}
}

func (w *wire) bytes(tag uint8, p *[]byte) {
	if w.enc {
		if len(*p) > 0 {
			w.putBytes(tag, *p)
		}
	} else if f := w.first(tag, kindBytes); f != nil {
		*p = slices.Clone(w.value(f))
	}
}

func str[S ~string](w *wire, tag uint8, p *S) {
	if w.enc {
		if *p != "" {
			w.key(tag, kindBytes)
			w.buf = binary.AppendUvarint(w.buf, uint64(len(*p)))
			w.buf = append(w.buf, *p...)
		}
	} else if f := w.first(tag, kindBytes); f != nil {
		*p = S(w.value(f))
	}
}

func (w *wire) strs(tag uint8, p *[]string) {
	if w.enc {
		for _, s := range *p {
			w.putBytes(tag, []byte(s))
		}
		return
	}
	w.each(tag, func(b []byte) { *p = append(*p, string(b)) })
}

// dict stores a map in key order, so that equal maps have equal bytes (M-23).
func (w *wire) dict(tag uint8, p *map[string]string) {
	if w.enc {
		for _, k := range sortedKeys(*p) {
			b := binary.AppendUvarint(nil, uint64(len(k)))
			b = append(append(b, k...), (*p)[k]...)
			w.putBytes(tag, b)
		}
		return
	}
	w.each(tag, func(b []byte) {
		n, a := binary.Uvarint(b)
		if a <= 0 || n > uint64(len(b)-a) {
			w.err = fmt.Errorf("field %d: broken map entry", tag)
			return
		}
		if *p == nil {
			*p = map[string]string{}
		}
		(*p)[string(b[a:a+int(n)])] = string(b[a+int(n):])
	})
}

func (w *wire) counts(tag uint8, p *map[string]int64) {
	if w.enc {
		for _, k := range sortedKeys(*p) {
			b := binary.AppendUvarint(nil, zigzag((*p)[k]))
			w.putBytes(tag, append(b, k...))
		}
		return
	}
	w.each(tag, func(b []byte) {
		n, a := binary.Uvarint(b)
		if a <= 0 {
			w.err = fmt.Errorf("field %d: broken count", tag)
			return
		}
		if *p == nil {
			*p = map[string]int64{}
		}
		(*p)[string(b[a:])] = unzigzag(n)
	})
}

// nest stores a record inside a record; an empty one is not stored.
func (w *wire) nest(tag uint8, r record) {
	if w.enc {
		from := len(w.buf)
		w.record(r)
		if n := len(w.buf) - from; n > 1 { // its key and length are put in front, when the length is known
			var room [2 * binary.MaxVarintLen32]byte
			head := binary.AppendUvarint(binary.AppendUvarint(room[:0], uint64(tag)<<2|kindBytes), uint64(n))
			w.buf = slices.Insert(w.buf, from, head...)
		} else {
			w.buf = w.buf[:from]
		}
	} else if f := w.first(tag, kindBytes); f != nil {
		if err := unmarshal(w.value(f), r); err != nil {
			w.err = fmt.Errorf("field %d: %w", tag, err)
		}
	}
}

// Encode is a record as a state holds it. The executor writes its own; this is for who makes states that no rule would.
func Encode(r record) []byte { return marshal(r) }

func marshal(r record) []byte {
	w := wires.Get().(*wire)
	w.enc = true
	w.record(r)
	b := slices.Clone(w.buf)
	w.release()
	return b
}

// wires are used again: a record costs its own bytes, and not those of the walk over its fields.
var wires = sync.Pool{New: func() any { return &wire{} }}

// keptWire bounds what a wire that waits for its next use keeps, bytes: one large record must not stay for ever.
const keptWire = 64 << 10

// release gives a wire back. Nothing of its buffers may be held after that.
func (w *wire) release() {
	if cap(w.buf) > keptWire || cap(w.in) > keptWire/int(unsafe.Sizeof(field{})) {
		return
	}
	*w = wire{buf: w.buf[:0], in: w.in[:0]}
	wires.Put(w)
}

func (w *wire) record(r record) {
	w.buf = append(w.buf, codecVersion)
	r.fields(w)
	w.buf = append(w.buf, *r.rest()...)
}

func unmarshal(b []byte, r record) error {
	if len(b) == 0 || b[0] != codecVersion {
		return fmt.Errorf("record of an unknown version")
	}
	w := wires.Get().(*wire)
	defer w.release()
	w.src = b[1:]
	if err := w.parse(); err != nil {
		return err
	}
	r.fields(w)
	if w.err != nil {
		return w.err
	}
	keep := (*r.rest())[:0]
	for i := range w.in {
		if f := &w.in[i]; !f.used {
			keep = append(keep, w.src[f.from:f.end]...)
		}
	}
	*r.rest() = keep
	return nil
}

// Bounds of a stored record. No transaction is larger than a megabyte.
const (
	maxFields = 1 << 14
	maxRecord = 1 << 30
)

// parse lists the fields.
func (w *wire) parse() error {
	if len(w.src) > maxRecord {
		return fmt.Errorf("broken record: %d bytes", len(w.src))
	}
	for at := 0; at < len(w.src); {
		f, err := w.field(at)
		if err != nil {
			return err
		}
		if len(w.in) == maxFields {
			return fmt.Errorf("broken record: more than %d fields", maxFields)
		}
		at = int(f.end)
		w.in = append(w.in, f)
		if w.idx[f.tag] == 0 {
			w.idx[f.tag] = uint16(len(w.in))
		}
	}
	return nil
}

// field reads the field that begins at a place of the record.
func (w *wire) field(at int) (field, error) {
	b := w.src[at:]
	k, a := binary.Uvarint(b)
	if a <= 0 || k>>2 == 0 || k>>2 >= maxTag {
		return field{}, fmt.Errorf("broken record: bad field key")
	}
	f := field{tag: uint8(k >> 2), kind: uint8(k & 3), from: uint32(at)}
	n, c := binary.Uvarint(b[a:])
	if c <= 0 || f.kind > kindBytes {
		return field{}, fmt.Errorf("broken record: field %d", f.tag)
	}
	end := a + c
	f.val = uint32(at + end)
	if f.kind == kindBytes {
		if n > uint64(len(b)-end) {
			return field{}, fmt.Errorf("broken record: field %d is cut off", f.tag)
		}
		end += int(n)
	} else {
		f.n = n
	}
	f.end = uint32(at + end)
	return f, nil
}

func sortedKeys[V any](m map[string]V) []string {
	ks := make([]string, 0, len(m))
	for k := range m {
		ks = append(ks, k)
	}
	slices.Sort(ks)
	return ks
}

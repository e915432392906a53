package tmux

import (
	"bytes"
	"unicode/utf8"
)

// A client of tmux drops what is typed into it and is no character, or none that its machine knows the width of.
// So every byte that is no ASCII is typed as a character of its own, one of 256 private ones, and the pane's keeper makes
// the byte of it again. A character that is one of these is typed byte by byte like any other: nothing is taken for another.
const (
	byteRune = 0xe100 // and the byte
	byteSize = 3      // of such a character: ee, then two bytes with its bits
)

// Typed is what a client of tmux is given so that a keeper that reads by [Bytes] gets b, wherever b is cut.
func Typed(b []byte) []byte {
	if !bytes.ContainsFunc(b, func(r rune) bool { return r >= utf8.RuneSelf }) {
		return b
	}
	out := make([]byte, 0, len(b)*byteSize)
	for _, c := range b {
		if c < utf8.RuneSelf {
			out = append(out, c)
		} else {
			out = utf8.AppendRune(out, byteRune+rune(c))
		}
	}
	return out
}

// Bytes reads what was typed by [Typed] as it was before. Other characters are read as they are: not all that comes to a pane is typed so.
type Bytes struct {
	rest []byte // the beginning of what may be such a character
}

// Read is what came, as far as it is known what it means. The answer is good until the next call.
func (y *Bytes) Read(b []byte) []byte {
	if len(y.rest) == 0 && bytes.IndexByte(b, 0xee) < 0 {
		return b
	}
	b = append(y.rest, b...)
	y.rest = nil
	out := make([]byte, 0, len(b))
	for i := 0; i < len(b); i++ {
		switch head := b[i:min(i+byteSize, len(b))]; {
		case !begins(head):
			out = append(out, b[i])
		case len(head) < byteSize:
			y.rest = bytes.Clone(head)
			return out
		default:
			out = append(out, head[1]<<6|head[2]&0x3f)
			i += byteSize - 1
		}
	}
	return out
}

// begins tells that b, of at most byteSize bytes, is such a character or the beginning of one.
func begins(b []byte) bool {
	return b[0] == 0xee && (len(b) < 2 || b[1]>>2 == 0x84>>2) && (len(b) < byteSize || b[2]>>6 == 2)
}

package tmux

import (
	"bytes"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"
)

// What is typed is characters to tmux, and the bytes that were sent to the keeper, wherever either of them is cut.
func TestTypedBytesAreReadAsTheyWere(t *testing.T) {
	piece := rapid.OneOf(
		rapid.SliceOfN(rapid.Byte(), 0, 6),
		rapid.Map(rapid.Int32Range(0xe0fe, 0xe201), func(r rune) []byte { return utf8.AppendRune(nil, r) }),
		rapid.Map(rapid.Rune(), func(r rune) []byte { return utf8.AppendRune(nil, r) }),
		rapid.SampledFrom([][]byte{{0xee}, {0xee, 0x84}, {0xee, 0x87, 0xbf}, {0xee, 0x88, 0x80}, []byte("plain")}))
	rapid.Check(t, func(t *rapid.T) {
		sent := bytes.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "sent"), nil)
		var typed, read []byte
		for _, b := range cut(t, sent) {
			typed = append(typed, Typed(b)...)
		}
		if !utf8.Valid(typed) {
			t.Fatalf("%q is typed as %q, which no client passes on", sent, typed)
		}
		var y Bytes
		for _, b := range cut(t, typed) {
			read = append(read, y.Read(b)...)
		}
		if !bytes.Equal(read, sent) {
			t.Fatalf("%q was read as %q", sent, read)
		}
	})
}

// cut takes bytes apart somewhere.
func cut(t *rapid.T, b []byte) (parts [][]byte) {
	for len(b) > 0 {
		n := rapid.IntRange(1, len(b)).Draw(t, "cut")
		parts, b = append(parts, bytes.Clone(b[:n])), b[n:]
	}
	return parts
}

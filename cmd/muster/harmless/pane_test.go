package harmless

import (
	"strings"
	"testing"
	"unicode/utf8"
)

// What a program drew is read as lines of text, in whatever pieces it comes.
func TestPaneText(t *testing.T) {
	for _, c := range []struct{ name, in, want string }{
		{"lines", "one\r\ntwo\r\n", "one\ntwo\n"},
		{"no end", "one\r\ntwo", "one\ntwo\n"},
		{"colours", "\x1b[1;31mred\x1b[0m and \x1b[38;2;1;2;3mmore\x1b[m\r\n", "red and more\n"},
		{"progress", "10 %\r50 %\r100 %\r\n", "100 %\n"},
		{"rows", "\x1b[2J\x1b[Htop\x1b[5;1Hfifth\x1b[6;1H\x1b[K", "top\nfifth\n"},
		{"drawn again", "\x1b[Hsame\x1b[2;1H\x1b[Hsame\x1b[2;1H", "same\n"},
		{"a program's own line twice", "x\r\nx\r\n", "x\nx\n"},
		{"gap", "a\x1b[3Cb\r\n", "a   b\n"},
		{"backspace", "helk\blo\r\n", "hello\n"},
		{"title and clipboard", "\x1b]0;title\x07\x1b]52;c;aGk=\x1b\\text\r\n", "text\n"},
		{"character sets, keypad", "\x1b(B\x1b=\x1b>é世\r\n", "é世\n"},
		{"bell, delete, nul", "a\x07\x7f\x00b\r\n", "ab\n"},
		{"direction", "a\u202eb\r\n", "a\\u202eb\n"},
		{"no text", "\xff\xfe\r\n", "\ufffd\n"},
		{"cut off in a sequence", "a\r\n\x1b[3", "a\n"},
	} {
		var whole, bytes Pane
		got := whole.Write([]byte(c.in))
		got += whole.Rest()
		one := ""
		for i := range len(c.in) {
			one += bytes.Write([]byte{c.in[i]})
		}
		one += bytes.Rest()
		if got != c.want || one != c.want {
			t.Errorf("%s: %q, byte by byte %q; want %q", c.name, got, one, c.want)
		}
	}
}

// Whatever a program prints: no control character comes through, and memory has a bound.
func FuzzPaneText(f *testing.F) {
	for _, s := range []string{"one\r\ntwo", "\x1b[2J\x1b[H\x1b]0;x\x07", "\x1b[999999999999C", "\x1bPq\x1b\x1b\\", "\b\b\b"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var p Pane
		out := p.Write(b) + p.Rest()
		if !utf8.ValidString(out) || strings.ContainsFunc(out, func(r rune) bool { return r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r <= 0x9f }) {
			t.Errorf("%q gives %q", b, out)
		}
		if len(p.line) > 2*paneLine || len(p.seq) > paneSeq {
			t.Errorf("a line of %d, parameters of %d bytes", len(p.line), len(p.seq))
		}
	})
}

package tmux

import (
	"errors"
	"fmt"
	"strings"
)

// errZero: tmux has no way to write a zero byte in a word.
var errZero = errors.New("a word of a tmux command holds a zero byte")

// line is a command as tmux reads it from a control-mode client: each word
// quoted, one line. It is the only place where words become a command.
func line(words ...string) (string, error) {
	var b strings.Builder
	for i, w := range words {
		if strings.IndexByte(w, 0) >= 0 {
			return "", errZero
		}
		if i > 0 {
			b.WriteByte(' ')
		}
		quote(&b, w)
	}
	b.WriteByte('\n')
	return b.String(), nil
}

// quote writes a word between double quotes, where tmux replaces variables and
// a home folder, so that everything but what is plainly harmless is written as
// its octal code: no newline ends the line, no quote the word, no `;` the command.
func quote(b *strings.Builder, word string) {
	b.WriteByte('"')
	for i := range len(word) {
		if c := word[i]; plain(c) {
			b.WriteByte(c)
		} else {
			fmt.Fprintf(b, `\%03o`, c)
		}
	}
	b.WriteByte('"')
}

func plain(c byte) bool {
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9':
		return true
	}
	return strings.IndexByte("-_./@%:=,+ ", c) >= 0
}

// Name makes a name that tmux takes as it is, [a-z0-9-]{1,40}: in a target, `.`
// and `:` mean something, and in a name a format. Of a long one the end counts.
func Name(s string) string {
	b := []byte(strings.ToLower(s[max(len(s)-40, 0):]))
	for i, c := range b {
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') {
			b[i] = '-'
		}
	}
	if len(b) == 0 {
		return "x"
	}
	return string(b)
}

// Text is what may be typed into a terminal of what somebody wrote: its printable
// characters, newlines and tabs. Every other control character, among them the
// escape that could end a paste and begin keys, is shown as a sign and has no effect.
func Text(s string) string {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n', r == '\t':
			return r
		case r == '\r':
			return '\n'
		case r < 0x20:
			return 0x2400 + r // the picture of the control character
		case r == 0x7f:
			return 0x2421
		case r >= 0x80 && r < 0xa0: // C1: 0x9b is an escape sequence's beginning to some
			return 0xfffd
		}
		return r
	}, strings.ToValidUTF8(s, "\ufffd"))
}

package harmless

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Text is foreign text with its control characters made visible; line ends and tabs stay.
func Text(s string) string { return Keep(s, "\n\t") }

// Line is foreign text as one line: line ends and tabs are made visible, too.
func Line(s string) string { return Keep(s, "") }

// Keep is foreign text with its control characters made visible but for those given.
func Keep(s, keep string) string {
	clean := true
	for _, r := range s {
		if hidden(r) && !strings.ContainsRune(keep, r) {
			clean = false
			break
		}
	}
	if clean && utf8.ValidString(s) {
		return s
	}
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&b, `\x%02x`, s[i])
		case strings.ContainsRune(keep, r) || !hidden(r):
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x80:
			fmt.Fprintf(&b, `\x%02x`, r)
		default:
			fmt.Fprintf(&b, `\u%04x`, r)
		}
		i += n
	}
	return b.String()
}

// hidden are control characters, and those that reorder or hide what stands beside them.
func hidden(r rune) bool {
	return unicode.IsControl(r) || unicode.Is(unicode.Bidi_Control, r) || unicode.Is(unicode.Zl, r) || unicode.Is(unicode.Zp, r) || r == 0xfeff || r == 0x200b
}

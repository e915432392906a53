package tui

import (
	"slices"
	"strings"
	"unicode"

	"github.com/charmbracelet/x/ansi"
)

// lineInput is text that is being typed.
type lineInput struct {
	text []rune
	at   int
	area bool // it may have several lines
}

// insert takes what was typed or pasted; control characters are nobody's text.
func (l *lineInput) insert(s string) {
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	var add []rune
	for _, r := range s {
		switch {
		case r == '\n' && l.area:
		case r == '\n' || r == '\t':
			r = ' '
		case unicode.IsControl(r) || r == unicode.ReplacementChar:
			continue
		}
		add = append(add, r)
	}
	l.text = slices.Insert(l.text, l.at, add...)
	l.at += len(add)
}

// key edits, and tells whether the key was an editing one.
func (l *lineInput) key(k keyMsg) bool {
	switch k.name {
	case "left", "ctrl+b":
		l.at = max(l.at-1, 0)
	case "right", "ctrl+f":
		l.at = min(l.at+1, len(l.text))
	case "home", "ctrl+a":
		l.at = 0
	case "end", "ctrl+e":
		l.at = len(l.text)
	case "backspace", "ctrl+h":
		if l.at > 0 {
			l.text = slices.Delete(l.text, l.at-1, l.at)
			l.at--
		}
	case "delete", "ctrl+d":
		if l.at < len(l.text) {
			l.text = slices.Delete(l.text, l.at, l.at+1)
		}
	case "ctrl+u":
		l.text, l.at = slices.Delete(l.text, 0, l.at), 0
	case "ctrl+k":
		l.text = l.text[:l.at]
	case "ctrl+w":
		i := l.at
		for i > 0 && unicode.IsSpace(l.text[i-1]) {
			i--
		}
		for i > 0 && !unicode.IsSpace(l.text[i-1]) {
			i--
		}
		l.text, l.at = slices.Delete(l.text, i, l.at), i
	default:
		if k.text == "" {
			return false
		}
		l.insert(k.text)
	}
	return true
}

func (l *lineInput) String() string { return string(l.text) }

// layout breaks the text into rows of w columns, and tells where the cursor stands.
func (l *lineInput) layout(w int) (rows []string, x, y int) {
	w = max(w, 2)
	var b strings.Builder
	used := 0
	for i := 0; ; i++ {
		if i == l.at {
			x, y = used, len(rows)
		}
		if i == len(l.text) {
			break
		}
		r := l.text[i]
		n := ansi.StringWidth(string(r))
		if r == '\n' || used+n > w {
			rows = append(rows, b.String())
			b.Reset()
			used = 0
			if i == l.at {
				x, y = 0, len(rows)
				if r == '\n' {
					x, y = ansi.StringWidth(rows[len(rows)-1]), len(rows)-1
				}
			}
		}
		if r != '\n' {
			b.WriteString(line(string(r)))
			used += n
		}
	}
	return append(rows, b.String()), min(x, w-1), y
}

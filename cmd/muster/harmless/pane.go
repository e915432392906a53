package harmless

import (
	"strconv"
	"strings"
	"unicode/utf8"
)

// Pane makes lines of text of what a program drew on a terminal: what moves the cursor to
// another row begins a line, what comes back to the beginning of one writes over it, colours and all
// other sequences are left out. It reads a stream; the zero value is ready.
type Pane struct {
	line  []byte // as it stands
	last  string // the line before: a screen that is drawn again is not told again
	over  bool   // what comes next writes over the line
	state paneState
	seq   []byte // parameters of the sequence that is being read
}

type paneState int

const (
	panePlain  paneState = iota
	paneEscape           // after ESC
	paneCSI              // parameters
	paneString           // OSC, DCS, APC, PM, SOS, until BEL or ST
	paneStringEscape
	paneOne // one more byte belongs to it: a character set
)

// Bounds of one line and of one sequence's parameters, bytes.
const (
	paneLine = 64 << 10
	paneSeq  = 64
)

// Write takes what was printed and answers the lines that are whole, each with its end.
func (p *Pane) Write(b []byte) string {
	var out strings.Builder
	for _, c := range b {
		switch p.state {
		case paneEscape:
			p.escape(c)
		case paneCSI:
			if c >= 0x40 && c <= 0x7e {
				p.state = panePlain
				p.csi(&out, c)
			} else if len(p.seq) < paneSeq {
				p.seq = append(p.seq, c)
			}
		case paneString:
			switch c {
			case 0x07:
				p.state = panePlain
			case 0x1b:
				p.state = paneStringEscape
			}
		case paneStringEscape:
			if p.state = paneString; c == '\\' {
				p.state = panePlain
			}
		case paneOne:
			p.state = panePlain
		default:
			p.plain(&out, c)
		}
	}
	return out.String()
}

func (p *Pane) escape(c byte) {
	p.state = panePlain
	switch c {
	case '[':
		p.state, p.seq = paneCSI, p.seq[:0]
	case ']', 'P', 'X', '^', '_':
		p.state = paneString
	case '(', ')', '*', '+', '#', '%', ' ':
		p.state = paneOne
	case 0x1b:
		p.state = paneEscape
	}
}

func (p *Pane) plain(out *strings.Builder, c byte) {
	switch {
	case c == 0x1b:
		p.state = paneEscape
	case c == '\n' || c == '\v' || c == '\f':
		p.end(out, true)
	case c == '\r':
		p.over = true
	case c == '\b':
		_, n := utf8.DecodeLastRune(p.line)
		p.line = p.line[:len(p.line)-n]
	case c == '\t' || c >= 0x20 && c != 0x7f:
		if p.over {
			p.line, p.over = p.line[:0], false
		}
		if p.line = append(p.line, c); len(p.line) >= paneLine && utf8.Valid(p.line) {
			p.end(out, true)
		}
	}
}

// csi acts on a sequence that moves the cursor.
func (p *Pane) csi(out *strings.Builder, c byte) {
	switch c {
	case 'A', 'B', 'E', 'F', 'H', 'f', 'd', 'J': // another row, or all of them
		p.end(out, false)
	case 'G', '`': // a column
		if n := p.number(); n <= 1 {
			p.over = true
		}
	case 'C': // to the right, over what is blank
		if !p.over {
			p.line = append(p.line, strings.Repeat(" ", min(p.number(), 200))...)
		}
	}
}

// number is the first parameter of the sequence, 1 without one.
func (p *Pane) number() int {
	first, _, _ := strings.Cut(string(p.seq), ";")
	if n, err := strconv.Atoi(first); err == nil && n > 0 {
		return n
	}
	return 1
}

// end ends the line; one that the program did not end itself is told when it says something new.
func (p *Pane) end(out *strings.Builder, own bool) {
	text := strings.TrimRight(strings.ToValidUTF8(string(p.line), "\ufffd"), " ")
	p.line, p.over = p.line[:0], false
	if text == "" && !own || text == p.last && (text == "" || !own) {
		return
	}
	p.last = text
	out.WriteString(Keep(text, "\t"))
	out.WriteByte('\n')
}

// Rest is the line that has no end yet.
func (p *Pane) Rest() string {
	var out strings.Builder
	p.end(&out, false)
	return out.String()
}

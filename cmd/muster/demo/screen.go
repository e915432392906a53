package demo

import (
	"fmt"
	"io"
	"strings"
	"time"
)

// look is what a person sees at a moment.
type look struct {
	nodes []nodeLook
	rows  []row
	done  int
	all   int
}

// nodeLook is one machine.
type nodeLook struct {
	name, role, dead string // dead: what happened to it, "" while it is up
	sessions         []string
	slots            int
}

// row is the cards of one kind.
type row struct {
	kind  string
	cells []cell
}

// cell is one card.
type cell int

const (
	waits cell = iota
	runs
	done
	stuck
)

// style is how a look is drawn.
type style struct{ colour, unicode bool }

const (
	dim    = "2"
	red    = "31"
	green  = "32"
	yellow = "33"
	bold   = "1"
)

func (s style) paint(code, text string) string {
	if !s.colour {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) mark(c cell) string {
	marks := [...]string{".", "o", "#", "!"}
	if s.unicode {
		marks = [...]string{"·", "▒", "█", "✗"}
	}
	return s.paint([...]string{dim, yellow, green, red}[c], marks[c])
}

// render draws a look; it is pure. Every line fits 80 columns.
func render(l look, s style) []string {
	var out []string
	for _, n := range l.nodes {
		if n.dead != "" {
			out = append(out, fmt.Sprintf("  %-6s %s", n.name, s.paint(red, n.dead)))
			continue
		}
		role := fmt.Sprintf("%-8s", n.role)
		if n.role == "leader" {
			role = s.paint(bold, role)
		}
		var slots strings.Builder
		for i := range n.slots {
			c := waits
			if i < len(n.sessions) {
				c = runs
			}
			slots.WriteString(s.mark(c))
		}
		out = append(out, clip(fmt.Sprintf("  %-6s %s %s  %s", n.name, role, slots.String(), strings.Join(n.sessions, " ")), 110))
	}
	out = append(out, "")
	for _, r := range l.rows {
		var b strings.Builder
		for _, c := range r.cells {
			b.WriteString(s.mark(c))
		}
		out = append(out, fmt.Sprintf("  %-7s%s", r.kind, b.String()))
	}
	return append(out, "", fmt.Sprintf("  %d of %d cards done", l.done, l.all))
}

func clip(s string, n int) string {
	if len(s) > n {
		return s[:n]
	}
	return s
}

// screen is where the show is seen: redrawn in place on a terminal, calm lines
// elsewhere.
type screen struct {
	out      io.Writer
	terminal bool
	style    style
	begun    time.Time
	drawn    int // lines of the picture that stand on the terminal
	last     time.Time
	lastDone int
}

// say adds a line to what happened, above the picture.
func (s *screen) say(format string, args ...any) {
	s.wipe()
	fmt.Fprintf(s.out, "%6.1fs  %s\n", time.Since(s.begun).Seconds(), fmt.Sprintf(format, args...))
}

// plain adds text without a time.
func (s *screen) plain(format string, args ...any) {
	s.wipe()
	fmt.Fprintf(s.out, format+"\n", args...)
}

func (s *screen) wipe() {
	if s.drawn > 0 {
		fmt.Fprintf(s.out, "\x1b[%dA\x1b[J", s.drawn)
		s.drawn = 0
	}
}

// draw shows the picture of now; where it cannot be redrawn, a line now and then.
func (s *screen) draw(l look) {
	if !s.terminal {
		if l.done != s.lastDone && time.Since(s.last) > 2*time.Second {
			s.last, s.lastDone = time.Now(), l.done
			running := 0
			for _, n := range l.nodes {
				running += len(n.sessions)
			}
			s.say("%d of %d cards done, sessions: %d", l.done, l.all, running)
		}
		return
	}
	lines := render(l, s.style)
	s.wipe()
	fmt.Fprintln(s.out, strings.Join(lines, "\n"))
	s.drawn = len(lines)
}

package tui

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"muster/board"
	"muster/cmd/muster/harmless"
)

// Looks, as SGR parameters. Nothing is said by colour alone.
const (
	plain   = ""
	bold    = "1"
	dim     = "2"
	chosen  = "7"
	red     = "31"
	green   = "32"
	yellow  = "33"
	cyan    = "36"
	redBold = "1;31"
)

// paint is text in a look.
func paint(look, text string) string {
	if look == plain || text == "" {
		return text
	}
	return "\x1b[" + look + "m" + text + "\x1b[0m"
}

// line is foreign text for one row; lines is foreign text of several.
func line(s string) string { return harmless.Line(s) }

func lines(s string) string { return strings.ReplaceAll(harmless.Text(s), "\t", "    ") }

// cut is text in at most w columns.
func cut(s string, w int) string { return ansi.Truncate(s, max(w, 0), "…") }

// fit is text in exactly w columns.
func fit(s string, w int) string {
	s = cut(s, w)
	return s + strings.Repeat(" ", max(w-ansi.StringWidth(s), 0))
}

// wrap breaks text into rows of at most w columns.
func wrap(s string, w int) []string {
	return strings.Split(ansi.Wrap(s, max(w, 1), ""), "\n")
}

func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 100*time.Second:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 100*time.Minute:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func (m *model) since(t *time.Time) string {
	if t == nil || t.IsZero() {
		return ""
	}
	return age(m.now.Sub(*t))
}

// words is an error for a person, with what to do next.
func words(err error) string {
	var e *board.Error
	if !errors.As(err, &e) {
		return err.Error()
	}
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

// state is how things stand: a word, its look, and why when they do not stand well.
func (m *model) state() (word, look, why string) {
	switch {
	case !m.lost.IsZero() && m.now.Sub(m.lost) >= awayAfter:
		why = "no node answers"
		if m.lostWhy != "" {
			why = m.lostWhy
		}
		if !m.heard.IsZero() {
			why += ". What you see is as of " + m.heard.Local().Format("15:04:05")
		}
		return "away", redBold, why + ". Trying again ..."
	case m.heard.IsZero():
		return "reading", dim, ""
	case m.age != nil && time.Duration(*m.age)*time.Millisecond > staleAfter:
		return "stale", yellow, fmt.Sprintf("%s has heard from no leader for %d s: what you see may be older than that, and nothing can be changed from here until then", m.here(), *m.age/1000)
	case m.fleet != nil && !m.fleet.Quorum:
		return "stale", yellow, "no leader is reachable from " + m.here() + ": nothing starts or moves; what runs goes on"
	}
	return "live", green, ""
}

func (m *model) here() string {
	if m.board != nil {
		return m.board.You.Node
	}
	return "this node"
}

// header is the first rows of every view.
func (m *model) header() []string {
	word, look, why := m.state()
	right := paint(look, "● "+word)
	left := paint(bold, "muster") + " " + line(m.slug)
	var parts []string
	if f := m.fleet; f != nil {
		on := 0
		for _, n := range f.Nodes {
			if n.State == board.NodeOnline {
				on++
			}
		}
		if len(m.needs) > 0 {
			parts = append(parts, paint(yellow, fmt.Sprintf("%d need you", len(m.needs))))
		}
		leader := "no leader"
		if f.Quorum && f.Leader != "" {
			leader = "leader " + line(f.Leader)
		}
		parts = append(parts, fmt.Sprintf("%d/%d machines", on, len(f.Nodes)), leader, count(f.Sessions, "session"), "at "+line(m.here()))
	}
	head := left
	for _, p := range parts {
		if ansi.StringWidth(head)+ansi.StringWidth(p)+3+ansi.StringWidth(right)+1 > m.w {
			break
		}
		head += " · " + p
	}
	gap := m.w - ansi.StringWidth(head) - ansi.StringWidth(right)
	if gap < 1 {
		head = cut(head, m.w-ansi.StringWidth(right)-1)
		gap = max(m.w-ansi.StringWidth(head)-ansi.StringWidth(right), 0)
	}
	rows := []string{head + strings.Repeat(" ", gap) + right}
	if why == "" {
		why, look = m.trouble(), yellow
	}
	if why != "" {
		all := wrap(line(why), m.w)
		if len(all) > 2 {
			all = []string{all[0], cut(strings.Join(all[1:], " "), m.w)}
		}
		for _, row := range all {
			rows = append(rows, paint(look, row))
		}
	}
	return rows
}

// trouble is what a person should know of the fleet before all else.
func (m *model) trouble() string {
	f := m.fleet
	switch {
	case f == nil:
		return ""
	case len(f.Alarms) > 0:
		return "! " + more(f.Alarms[0], len(f.Alarms))
	case len(f.Pauses) > 0:
		p := f.Pauses[0]
		return more(strings.TrimSpace("paused: "+p.Of+" "+p.Name)+" by "+p.By+": "+p.Why, len(f.Pauses))
	}
	return ""
}

func count(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func more(text string, n int) string {
	if n > 1 {
		return fmt.Sprintf("%s (and %d more: f)", text, n-1)
	}
	return text
}

// screen is the whole terminal, row by row, and where the cursor stands (-1: nowhere).
func (m *model) screen() (rows []string, x, y int) {
	x, y = -1, -1
	rows = m.header()
	foot := m.footer()
	room := max(m.h-len(rows)-len(foot), 0)
	var body []string
	if m.form != nil || m.menu != nil {
		body, x, y = m.box(room)
		if y >= 0 {
			y += len(rows)
		}
	} else {
		body = m.body(room)
	}
	for len(body) < room {
		body = append(body, "")
	}
	rows = append(append(rows, body[:room]...), foot...)
	if m.typing {
		x, y = min(1+ansi.StringWidth(string(m.filter.text[:m.filter.at])), m.w-1), m.h-1
	}
	for i := range rows {
		rows[i] = cut(rows[i], m.w)
	}
	return rows[:min(len(rows), m.h)], x, y
}

func (m *model) body(room int) []string {
	switch m.view {
	case viewCard:
		return m.cardBody(room)
	case viewFleet:
		return m.fleetBody(room)
	case viewNeeds:
		return m.needsBody(room)
	case viewInbox:
		return m.inboxBody(room)
	case viewHelp:
		return m.helpBody(room)
	}
	return m.boardBody(room)
}

// footer is the last outcome and what may be typed, or the filter.
func (m *model) footer() []string {
	said := ""
	if m.toast != "" {
		look := green
		if m.bad {
			look = redBold
		}
		all := wrap(m.toast, m.w)
		said = paint(look, all[0])
		if len(all) > 1 && m.bad {
			return []string{paint(look, all[0]), paint(look, cut(strings.Join(all[1:], " "), m.w)), m.hints()}
		}
	}
	return []string{said, m.hints()}
}

func (m *model) hints() string {
	text := ""
	switch {
	case m.typing:
		return "/" + string(m.filter.text)
	case m.form != nil:
		text = "Tab field · Ctrl-S, or Enter in the last field: do it · Ctrl-J line · Esc leave"
	case m.menu != nil && len(m.menu.rows) == 0:
		text = "Esc back"
	case m.menu != nil:
		text = "Enter choose · Esc leave it"
	case m.view == viewBoard:
		text = "? keys  n new  Enter open  m move  c comment  A attach  / filter  f fleet  q end"
	case m.view == viewCard:
		text = "m move  c comment  y approve  r send back  u answer  A attach  S send  Esc back"
	case m.view == viewFleet:
		text = "j k machine  D drain  p pause  Esc back"
	case m.view == viewNeeds:
		text = "Enter open  u answer  y approve  r send back  A attach  m move  Esc back"
	case m.view == viewInbox:
		text = "Enter open  d all read  Esc back"
	case m.view == viewHelp:
		text = "Esc back"
	}
	return paint(dim, cut(text, m.w))
}

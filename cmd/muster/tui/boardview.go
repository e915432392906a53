package tui

import (
	"fmt"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"muster/cmd/muster/api"
)

const (
	columnWidth = 20 // at least
	columnMost  = 44
	cardRows    = 2
)

// boardBody draws the columns that have cards, as many as fit beside the chosen one, and of each what fits.
func (m *model) boardBody(room int) []string {
	if m.board == nil {
		return []string{"", "  reading board " + line(m.slug) + " ..."}
	}
	rows := []string{m.counts()}
	var full []int
	at := 0
	for i, x := range m.cols.list {
		if len(x.list) == 0 {
			continue
		}
		if i == m.cols.col {
			at = len(full)
		}
		full = append(full, i)
	}
	if len(full) == 0 {
		text := "  no cards: n files one"
		if len(m.filter.text) > 0 {
			text = "  no card is like that: / changes the filter, Esc ends it"
		}
		return append(rows, "", text)
	}
	n := min(max(m.w/columnWidth, 1), len(full))
	width := min(m.w/n, columnMost)
	first := min(max(at-n/2, 0), len(full)-n)
	cells := make([][]string, n)
	for i := range n {
		cells[i] = m.columnRows(full[first+i], width, room-1)
	}
	for r := range room - 1 {
		var b strings.Builder
		for i := range n {
			if r < len(cells[i]) {
				b.WriteString(cells[i][r])
			} else {
				b.WriteString(strings.Repeat(" ", width))
			}
		}
		rows = append(rows, strings.TrimRight(b.String(), " "))
	}
	return rows
}

// counts names every column with how many cards it has, or only those with cards when there is no room for all; the
// chosen one stands in brackets.
func (m *model) counts() string {
	for _, all := range []bool{true, false} {
		var b strings.Builder
		for i, x := range m.cols.list {
			if !all && x.all == 0 {
				continue
			}
			n := fmt.Sprint(x.all)
			if len(m.filter.text) > 0 {
				n = fmt.Sprintf("%d/%d", len(x.list), x.all)
			}
			switch text := line(x.Name) + " " + n; {
			case i == m.cols.col && len(x.list) > 0:
				b.WriteString(paint(bold, "["+text+"]"))
			case x.all == 0:
				b.WriteString(paint(dim, " "+text+" "))
			default:
				b.WriteString(" " + text + " ")
			}
		}
		if !all || ansi.StringWidth(b.String()) <= m.w {
			return b.String()
		}
	}
	return ""
}

func (m *model) columnRows(at, width, room int) []string {
	x := m.cols.list[at]
	rows := []string{paint(bold, fit(fmt.Sprintf("%s %d", line(x.Name), len(x.list)), width))}
	fits := max((room-1)/cardRows, 1)
	if at == m.cols.col {
		x.top = min(max(x.top, m.cols.row-fits+1), m.cols.row)
	}
	x.top = min(max(x.top, 0), max(len(x.list)-fits, 0))
	for i := x.top; i < len(x.list) && i < x.top+fits; i++ {
		rows = append(rows, m.cardCell(x.list[i], width-1, at == m.cols.col && i == m.cols.row)...)
	}
	return rows
}

// cardCell is a card in two rows: its id and how it stands, and its title.
func (m *model) cardCell(c *api.LiveCard, width int, on bool) []string {
	look, text := m.stands(c)
	head := line(c.ID)
	if text != "" {
		head += " " + text
	}
	mark := "  "
	if on {
		mark = "> "
	}
	head, title := fit(mark+head, width), fit("  "+line(c.Title), width)
	if on {
		return []string{paint(chosen, head) + " ", paint(chosen, title) + " "}
	}
	return []string{paint(look, head) + " ", title + " "}
}

// stands is how a card stands, in a few characters: what matters most comes first.
func (m *model) stands(c *api.LiveCard) (look, text string) {
	switch {
	case c.Attention != nil:
		return yellow, "! " + line(c.Attention.Kind) + " " + m.since(c.Attention.Since)
	case c.Session != nil && c.Session.Stopping:
		return cyan, "stopping @" + line(c.Session.Node)
	case c.Session != nil:
		turn := ""
		if c.Session.Turn != "" && c.Session.Turn != "busy" {
			turn = " " + line(c.Session.Turn)
		}
		return cyan, m.since(&c.Session.Since) + " @" + line(c.Session.Node) + turn
	case c.Reason != nil && c.Reason.Check != "":
		return dim, "waits: " + line(c.Reason.Check)
	case len(c.WaitsFor) > 0 && c.Stored == "todo":
		return dim, "after " + line(c.WaitsFor[0])
	}
	return dim, m.since(&c.UpdatedAt)
}

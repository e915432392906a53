package tui

import (
	"fmt"
	"strings"
	"time"

	"github.com/charmbracelet/x/ansi"

	"muster/cmd/muster/api"
)

// table aligns rows of cells, already harmless; the first row is the head.
func table(rows [][]string) []string {
	var width []int
	for _, r := range rows {
		for i, c := range r {
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], ansi.StringWidth(c))
		}
	}
	list := make([]string, len(rows))
	for k, r := range rows {
		var b strings.Builder
		for i, c := range r {
			b.WriteString(fit(c, width[i]) + "  ")
		}
		list[k] = strings.TrimRight(b.String(), " ")
	}
	return list
}

// choose marks the chosen row of a table with a head, and shows a window of it around that row.
func window(head string, list []string, at, room, w int) []string {
	rows := []string{paint(bold, "  "+head)}
	fits := max(room-1, 1)
	top := min(max(at-fits+1, 0), max(len(list)-fits, 0))
	for i := top; i < len(list) && i < top+fits; i++ {
		if i == at {
			rows = append(rows, paint(chosen, fit("> "+list[i], w)))
			continue
		}
		rows = append(rows, "  "+list[i])
	}
	return rows
}

func (m *model) fleetBody(room int) []string {
	f := m.fleet
	if f == nil {
		return []string{"", "  nothing is known of the fleet yet (a token of one board is shown none)"}
	}
	m.list = min(m.list, max(len(f.Nodes)-1, 0))
	cells := [][]string{{"MACHINE", "ROLE", "STATE", "RUNS", "MEMORY", "LOAD", "DISK", "AGE"}}
	for i := range f.Nodes {
		cells = append(cells, m.nodeCells(&f.Nodes[i]))
	}
	all := table(cells)
	rows := window(all[0], all[1:], m.list, min(len(all), max(room/2, 3)), m.w)
	tell := func(head, look string, list []string) {
		if len(list) == 0 {
			return
		}
		rows = append(rows, paint(bold, "  "+head))
		for _, x := range list {
			for _, r := range wrap(line(x), m.w-4) {
				rows = append(rows, paint(look, "    "+r))
			}
		}
	}
	var paused []string
	for _, p := range f.Pauses {
		paused = append(paused, strings.TrimSpace(p.Of+" "+p.Name)+" by "+p.By+" "+m.since(p.Since)+": "+p.Why)
	}
	tell("ALARMS", redBold, f.Alarms)
	tell("PAUSES", yellow, paused)
	tell("NOTES", plain, f.Notes)
	if len(m.sess) > 0 {
		cells := [][]string{{"SESSION", "MACHINE", "SLOT", "PROFILE", "STATUS", "SINCE"}}
		for _, s := range m.sess {
			cells = append(cells, []string{line(s.Run), line(s.Node), line(s.Slot), line(s.Profile), line(strings.TrimSpace(s.Status + " " + s.Turn)), m.since(&s.Since)})
		}
		for i, r := range table(cells) {
			look := plain
			if i == 0 {
				look = bold
			}
			rows = append(rows, paint(look, "  "+r))
		}
	}
	return rows
}

func (m *model) nodeCells(n *api.Node) []string {
	role := n.Role
	if n.Leader {
		role = "leader"
	}
	state := n.State
	if n.Draining {
		state += ", draining"
	}
	if n.Estop {
		state += ", ESTOP"
	}
	memory, disk, last := line(n.MemoryPressure), "-", "-"
	if n.FreeMB > 0 {
		memory = strings.TrimSpace(memory + " " + megabytes(n.FreeMB))
	}
	if n.DiskFreeMB > 0 {
		disk = megabytes(n.DiskFreeMB)
	}
	if n.AgeS != nil {
		last = age(time.Duration(*n.AgeS * float64(time.Second)))
	}
	return []string{line(n.Name), line(role), line(state), fmt.Sprintf("%d/%d", n.Running, n.Slots), memory, fmt.Sprintf("%.1f", n.Load), disk, last}
}

func megabytes(n int64) string {
	if n >= 10<<10 {
		return fmt.Sprintf("%d GB", n>>10)
	}
	return fmt.Sprintf("%d MB", n)
}

func (m *model) needsBody(room int) []string {
	if len(m.needs) == 0 {
		return []string{"", "  nothing needs you"}
	}
	m.list = min(m.list, len(m.needs)-1)
	cells := [][]string{{"CARD", "WHAT", "SINCE", "TITLE", "WHY"}}
	for _, n := range m.needs {
		cells = append(cells, []string{line(n.Card), line(n.Kind), m.since(n.Since), cut(line(n.Title), 26), line(n.Text)})
	}
	all := table(cells)
	rows := window(all[0], all[1:], m.list, room-3, m.w)
	return append(rows, append([]string{""}, wrap(line(m.needs[m.list].Text), m.w)...)...)
}

func (m *model) inboxBody(room int) []string {
	l := m.inbox.Notices
	if len(l) == 0 {
		return []string{"", "  nothing new was told to you"}
	}
	m.list = min(m.list, len(l)-1)
	cells := [][]string{{"CARD", "WHAT", "BY", "AGO", "TITLE", "TEXT"}}
	for i := range l {
		cells = append(cells, []string{line(l[i].Card), line(l[i].Kind), line(l[i].By), m.since(&l[i].At), cut(line(l[i].Title), 26), line(l[i].Text)})
	}
	all := table(cells)
	rows := window(all[0], all[1:], m.list, room-3, m.w)
	return append(rows, append([]string{""}, wrap(line(l[m.list].Text), m.w)...)...)
}

var helpKeys = [][2]string{
	{"h j k l, arrows", "another card; PgUp PgDn g G further"},
	{"Enter", "open the card; in it 1 card, 2 log, 3 timeline, 4 diff"},
	{"/", "filter: words, @who, k=v, status:s, !  (Esc ends it)"},
	{"n", "file a card"},
	{"c", "comment"},
	{"m", "all that may be said of the card, and why the rest may not"},
	{"u", "unblock: your answer to what it waits for"},
	{"y  r", "approve (complete); send back (request changes)"},
	{"s  x", "start now; stop its session"},
	{"A  S", "attach to its terminal (Ctrl-] comes back); send it a text"},
	{"p", "pause or resume the board; in the fleet view, the fleet"},
	{"D", "in the fleet view: drain the machine, or end that"},
	{"b f a i", "board, fleet, what needs you, what you were told"},
	{"B", "another board"},
	{"Esc  q", "back; at the board q ends the program (Ctrl-C always)"},
}

// helpBody is the keys from the chosen row on.
func (m *model) helpBody(room int) []string {
	rows := []string{paint(bold, "  keys")}
	for _, k := range helpKeys {
		text := wrap(k[1], max(m.w-20, 10))
		rows = append(rows, "  "+fit(k[0], 16)+" "+text[0])
		for _, t := range text[1:] {
			rows = append(rows, strings.Repeat(" ", 19)+t)
		}
	}
	m.list = min(m.list, max(len(rows)-room, 0))
	return rows[m.list:min(len(rows), m.list+room)]
}

package tui

import (
	"fmt"
	"slices"
	"strings"

	"github.com/charmbracelet/x/ansi"

	"muster/cmd/muster/api"
	"muster/cmd/muster/harmless"
)

type tabID int

const (
	tabCard tabID = iota
	tabLog
	tabTimeline
	tabDiff
)

// keepLines is how much of a log is kept: what came before is in `muster log`.
const keepLines = 5000

// cardView is the open card. Its rows are made when it, or the width, changes; drawing takes a window of them.
type cardView struct {
	id     string
	tab    tabID
	detail *api.CardDetail
	why    api.Why
	events []api.Event
	diff   *api.Diff
	wrong  string // why there is nothing to show

	run   string // whose log is followed
	next  int64
	ended bool
	text  harmless.Pane
	log   []string

	rows   []string
	width  int
	top    int
	bottom bool // stay at the end, as a log does
}

// open shows a card.
func (m *model) open(id string) []ask {
	if id == "" {
		return nil
	}
	if m.view != viewCard {
		m.from = m.view
	}
	m.view = viewCard
	m.card = cardView{id: id}
	return m.read("card/"+id, askCard{id})
}

func (m *model) gotCard(x cardMsg) []ask {
	c := &m.card
	if x.id != c.id {
		return nil
	}
	if x.err != nil {
		c.wrong = words(x.err)
		m.shapeCard()
		return nil
	}
	c.detail, c.why, c.wrong = &x.detail, x.why, ""
	m.shapeCard()
	asks := m.followLog()
	// The board that is followed becomes that of the card, or nothing of it would be told.
	if x.detail.Board != m.slug && (m.board == nil || m.board.You.Board == "") {
		m.slug = x.detail.Board
		asks = append(asks, askBoard{m.slug})
	}
	return asks
}

// followLog follows the newest run's log while it is looked at.
func (m *model) followLog() []ask {
	c := &m.card
	if m.view != viewCard || c.tab != tabLog || c.detail == nil || len(c.detail.Runs) == 0 {
		return nil
	}
	run := c.detail.Runs[len(c.detail.Runs)-1].ID
	if run == c.run && c.ended {
		return nil
	}
	if run != c.run {
		c.run, c.next, c.ended, c.log, c.text, c.bottom = run, 0, false, nil, harmless.Pane{}, true
		m.shapeCard()
	}
	return m.read("log/"+run, askLog{run, c.next})
}

func (m *model) gotLog(x logMsg) []ask {
	delete(m.asking, "log/"+x.run)
	c := &m.card
	if x.run != c.run || m.view != viewCard || c.tab != tabLog {
		return nil
	}
	if x.err != nil {
		c.wrong = words(x.err)
		m.shapeCard()
		return nil
	}
	c.wrong = ""
	c.next, c.ended = x.chunk.Next, x.chunk.EOF
	text := c.text.Write(x.chunk.Chunk)
	if c.ended {
		text += c.text.Rest()
	}
	for l := range strings.Lines(text) {
		c.log = append(c.log, strings.ReplaceAll(strings.TrimSuffix(l, "\n"), "\t", "    "))
		if c.width > 0 {
			c.rows = append(c.rows, wrap(c.log[len(c.log)-1], c.width)...)
		}
	}
	if len(c.log) > keepLines+keepLines/10 {
		c.log = slices.Clone(c.log[len(c.log)-keepLines:])
		m.shapeCard()
	}
	if c.ended {
		return nil
	}
	return m.read("log/"+c.run, askLog{c.run, c.next})
}

func (m *model) gotEvents(x eventsMsg) {
	if x.id != m.card.id {
		return
	}
	if m.card.events = x.list; x.err != nil {
		m.card.wrong = words(x.err)
	}
	m.shapeCard()
}

func (m *model) gotDiff(x diffMsg) {
	delete(m.asking, "diff/"+x.id)
	if x.id != m.card.id {
		return
	}
	if m.card.diff = &x.diff; x.err != nil {
		m.card.wrong, m.card.diff = words(x.err), nil
	}
	m.shapeCard()
}

// turn shows another side of the card.
func (m *model) turn(t tabID) []ask {
	c := &m.card
	c.tab, c.top, c.bottom, c.wrong = t, 0, t == tabLog, ""
	m.shapeCard()
	switch t {
	case tabLog:
		return m.followLog()
	case tabTimeline:
		return m.read("events/"+c.id, askEvents{c.id})
	case tabDiff:
		c.diff = nil
		return m.read("diff/"+c.id, askDiff{c.id})
	}
	return nil
}

func (m *model) textWidth() int { return max(m.w-1, 1) }

func (m *model) shapeCard() {
	m.card.width = 0
	m.card.shape(m.textWidth())
}

// shape makes the rows for a width.
func (c *cardView) shape(w int) {
	if c.id == "" || c.width == w {
		return
	}
	c.width = w
	var text []string
	switch {
	case c.tab == tabLog:
		text = c.log
	case c.tab == tabTimeline:
		text = c.timeline()
	case c.tab == tabDiff:
		text = c.diffText()
	case c.detail != nil:
		text = c.cardText()
	}
	c.rows = c.rows[:0]
	for _, t := range text {
		c.rows = append(c.rows, wrap(t, w)...)
	}
}

// cardText is the card as text, each line harmless.
func (c *cardView) cardText() (list []string) {
	d := c.detail
	add := func(name, text string) {
		if text != "" {
			list = append(list, paint(dim, fit(name, 10))+" "+line(text))
		}
	}
	add("status", d.Status)
	if c.why.Text != "" {
		add("why", c.why.Text)
		add("do", c.why.Fix)
	}
	if d.Attention != nil {
		add("needs you", d.Attention.Kind+": "+d.Attention.Text)
	}
	add("profile", d.Assignee)
	add("machine", d.Machine)
	if d.Priority != 0 {
		add("priority", fmt.Sprint(d.Priority))
	}
	add("after", strings.Join(d.WaitsFor, ", "))
	add("before", strings.Join(d.WaitedBy, ", "))
	add("part of", d.SubtaskOf)
	var labels []string
	for k, v := range d.Labels {
		labels = append(labels, k+"="+v)
	}
	slices.Sort(labels)
	add("labels", strings.Join(labels, " "))
	add("filed", d.CreatedAt.Local().Format("2006-01-02 15:04:05")+" by "+d.Creator)
	add("workspace", d.Workspace)
	add("error", d.LastError)
	list = append(list, "")
	list = append(list, strings.Split(lines(d.Body), "\n")...)
	if len(d.Comments) > 0 {
		list = append(list, "", paint(bold, "thread"))
		for _, x := range d.Comments {
			list = append(list, paint(cyan, line(x.Author))+" "+paint(dim, x.At.Local().Format("01-02 15:04")))
			for _, t := range strings.Split(lines(x.Text), "\n") {
				list = append(list, "  "+t)
			}
		}
	}
	if len(d.Runs) > 0 {
		list = append(list, "", paint(bold, "runs"))
		list = append(list, c.runRows()...)
	}
	return list
}

func (c *cardView) runRows() []string {
	cells := [][]string{{"RUN", "STATE", "OUTCOME", "MACHINE", "PROFILE", "STARTED", "TOOK"}}
	for _, r := range c.detail.Runs {
		took := "-"
		if r.EndedAt != nil {
			took = age(r.EndedAt.Sub(r.StartedAt))
		}
		cells = append(cells, []string{line(r.ID), line(r.State), orDash(line(r.Outcome)), orDash(line(r.Node)), orDash(line(r.Profile)), r.StartedAt.Local().Format("01-02 15:04:05"), took})
	}
	return table(cells)
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func (c *cardView) timeline() (list []string) {
	for _, e := range slices.Backward(c.events) {
		text := paint(dim, e.At.Local().Format("01-02 15:04:05")) + " " + paint(bold, line(e.Kind))
		if e.From != "" || e.To != "" {
			text += " " + line(e.From) + " -> " + line(e.To)
		}
		list = append(list, text+" "+line(e.Actor))
		if len(e.Payload) > 0 && string(e.Payload) != "{}" {
			list = append(list, "    "+cut(line(string(e.Payload)), 400))
		}
	}
	return list
}

func (c *cardView) diffText() (list []string) {
	if c.diff == nil {
		return nil
	}
	list = []string{paint(dim, line(c.diff.Branch)+" on "+line(c.diff.Machine)+" "+line(c.diff.Path))}
	for _, l := range strings.Split(lines(c.diff.Text), "\n") {
		look := plain
		switch {
		case strings.HasPrefix(l, "+"):
			look = green
		case strings.HasPrefix(l, "-"):
			look = red
		case strings.HasPrefix(l, "@@"):
			look = cyan
		}
		list = append(list, paint(look, l))
	}
	return list
}

// cardBody is a window of the card's rows.
func (m *model) cardBody(room int) []string {
	c := &m.card
	title := c.id
	if c.detail != nil {
		title += "  " + c.detail.Title
	}
	tabs := ""
	for i, name := range []string{"card", "log", "timeline", "diff"} {
		text := fmt.Sprintf(" %d %s ", i+1, name)
		if tabID(i) == c.tab {
			text = paint(chosen, fmt.Sprintf("[%d %s]", i+1, name))
		}
		tabs += text
	}
	note := c.note()
	rows := []string{paint(bold, cut(line(title), m.w)), tabs + "  " + paint(dim, cut(line(note), m.w-ansi.StringWidth(tabs)-2))}
	fits := max(room-len(rows), 1)
	end := max(len(c.rows)-fits, 0)
	if c.bottom {
		c.top = end
	}
	c.top = min(max(c.top, 0), end)
	c.bottom = c.tab == tabLog && c.top == end
	rows = append(rows, c.rows[c.top:min(c.top+fits, len(c.rows))]...)
	if len(c.rows) == 0 && note != "" {
		for _, r := range wrap(line(note), m.w-2) {
			rows = append(rows, "  "+r)
		}
	}
	return rows
}

// note is what there is to say of what is shown.
func (c *cardView) note() string {
	switch {
	case c.wrong != "":
		return c.wrong
	case c.detail == nil:
		return "reading ..."
	case c.tab == tabLog && len(c.detail.Runs) == 0:
		return "it has not been started yet"
	case c.tab == tabLog && c.ended && len(c.log) == 0:
		return c.run + " has written nothing"
	case c.tab == tabLog && c.ended:
		return c.run + " has ended"
	case c.tab == tabLog:
		return c.run + " goes on"
	case c.tab == tabDiff && c.diff == nil:
		return "asking the machine that has its workspace ..."
	case c.tab == tabDiff && c.diff.Text == "":
		return "nothing has changed"
	}
	return ""
}

// scroll moves the window.
func (c *cardView) scroll(by int) {
	c.top, c.bottom = min(max(c.top+by, 0), len(c.rows)), false
}

package chart

import (
	"cmp"
	"encoding/xml"
	"fmt"
	"math"
	"slices"
	"strings"
)

// SVG is the graph as a picture. It has no script and loads nothing.
func (g *Graph) SVG() string {
	l := arrange(g)
	p := &painter{l: l, width: l.width}
	if len(g.Anywhere) > 0 && l.width+panel <= maxWidth {
		p.aside, p.width = true, l.width+panel
	}
	p.width = max(p.width, minWidth)
	shift := max(0, (p.width-l.width)/2)
	if p.aside {
		shift = 0
	}
	for _, r := range l.rows {
		for _, it := range r.items {
			it.x += shift
		}
	}
	for i := range l.lines {
		p.line(&l.lines[i])
	}
	for _, ln := range l.lines {
		p.labels(&ln)
	}
	for _, n := range l.nodes {
		p.box(n)
	}
	height := p.anywhere()
	var b strings.Builder
	title := "Workflow " + g.Name
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" width="%s" height="%s" viewBox="0 0 %s %s" role="img" aria-label="%s">`+"\n",
		num(p.width), num(height), num(p.width), num(height), escape(title))
	fmt.Fprintf(&b, "  <title>%s</title>\n  <style>\n%s  </style>\n", escape(title), style())
	fmt.Fprintf(&b, `  <rect class="page" width="%s" height="%s"/>`+"\n", num(p.width), num(height))
	fmt.Fprintf(&b, `  <text class="title" x="%s" y="36">%s</text>`+"\n", num(margin), escape(g.Name))
	fmt.Fprintf(&b, `  <text class="note" x="%s" y="56">blue: started by the fleet; dashed: seen by the fleet; grey: said by people and sessions</text>`+"\n", num(margin))
	b.WriteString(p.b.String())
	b.WriteString("</svg>\n")
	return b.String()
}

type painter struct {
	l     *layout
	b     strings.Builder
	width float64
	aside bool // the list of what holds anywhere stands beside the picture, not under it
}

func (p *painter) printf(format string, args ...any) { fmt.Fprintf(&p.b, "  "+format+"\n", args...) }

// num writes a coordinate: one decimal is enough, and the same everywhere.
func num(f float64) string {
	return strings.TrimSuffix(fmt.Sprintf("%.1f", math.Round(f*10)/10), ".0")
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // a Builder never fails
	return b.String()
}

func class(e Edge) string {
	switch {
	case e.Start:
		return " start"
	case e.Fleet:
		return " fleet"
	}
	return ""
}

// port is where a line touches a box: lines are spread over its side in the order of where they come from.
func (p *painter) port(n *item, ln *line, below bool) float64 {
	type end struct {
		edge int
		x    float64
	}
	var ends []end
	for i := range p.l.lines {
		x := &p.l.lines[i]
		switch {
		case below && x.items[0] == n:
			ends = append(ends, end{x.edge, x.items[1].x})
		case !below && x.items[len(x.items)-1] == n:
			ends = append(ends, end{x.edge, x.items[len(x.items)-2].x})
		}
	}
	slices.SortStableFunc(ends, func(a, b end) int { return cmp.Compare(a.x, b.x) })
	i := slices.IndexFunc(ends, func(e end) bool { return e.edge == ln.edge })
	w := p.boxWidth(n) - 28
	return n.x - w/2 + w*(float64(i)+0.5)/float64(len(ends))
}

// boxWidth is the box's own width, without the room for its mark.
func (p *painter) boxWidth(n *item) float64 {
	if p.l.g.Statuses[n.node].First {
		return n.w - 2*entry
	}
	return n.w
}

// line draws an edge: straight where it passes a row, curved between rows.
func (p *painter) line(ln *line) {
	e := p.l.g.Edges[ln.edge]
	first, last := ln.items[0], ln.items[len(ln.items)-1]
	x, y := p.port(first, ln, true), p.l.rows[first.row].y+p.top(first)+nodeHeight
	var d strings.Builder
	startX, startY := x, y
	const head = 8.0
	if ln.reversed {
		y += head
	}
	fmt.Fprintf(&d, "M%s %s", num(x), num(y))
	curve := func(nx, ny float64) {
		mid := (y + ny) / 2
		if math.Abs(nx-x) < 0.05 {
			fmt.Fprintf(&d, " L%s %s", num(nx), num(ny))
		} else {
			fmt.Fprintf(&d, " C%s %s %s %s %s %s", num(x), num(mid), num(nx), num(mid), num(nx), num(ny))
		}
		x, y = nx, ny
	}
	if bottom := p.l.rows[first.row].y + p.l.rows[first.row].h; bottom > y {
		curve(x, bottom)
	}
	for _, it := range ln.items[1 : len(ln.items)-1] {
		r := p.l.rows[it.row]
		curve(it.x, r.y)
		curve(it.x, r.y+r.h)
	}
	endX, endY := p.port(last, ln, false), p.l.rows[last.row].y+p.top(last)
	stop := endY
	if !ln.reversed {
		stop -= head
	}
	curve(endX, min(stop, p.l.rows[last.row].y))
	if stop > y {
		curve(endX, stop)
	}
	back := ""
	if ln.reversed {
		back = " back"
	}
	p.printf(`<path class="edge%s%s" d="%s"/>`, class(e), back, d.String())
	if ln.reversed {
		p.printf(`<path class="head%s" d="M%s %s l-4.5 %s h9 z"/>`, class(e), num(startX), num(startY), num(head+1))
		return
	}
	p.printf(`<path class="head%s" d="M%s %s l-4.5 %s h9 z"/>`, class(e), num(endX), num(endY), num(-head-1))
}

// top is how far below its row's top an item begins: it stands in the middle.
func (p *painter) top(it *item) float64 { return (p.l.rows[it.row].h - it.h) / 2 }

func (p *painter) labels(ln *line) {
	for _, it := range ln.items {
		if it.label == nil {
			continue
		}
		y := p.l.rows[it.row].y + p.top(it)
		p.printf(`<rect class="paper" data-label="%d" x="%s" y="%s" width="%s" height="%s" rx="4"/>`, ln.edge, num(it.x-it.w/2), num(y), num(it.w), num(it.h))
		for i, s := range it.label {
			p.printf(`<text class="label%s" x="%s" y="%s">%s</text>`, class(p.l.g.Edges[ln.edge]), num(it.x), num(y+labelPad+float64(i)*labelLine+11.5), escape(s))
		}
	}
}

func (p *painter) box(n *item) {
	s := p.l.g.Statuses[n.node]
	w := p.boxWidth(n)
	x, y := n.x-w/2, p.l.rows[n.row].y+p.top(n)
	if s.First {
		p.printf(`<circle class="dot" cx="%s" cy="%s" r="5"/>`, num(x-24), num(y+nodeHeight/2))
		p.printf(`<path class="entry" d="M%s %s H%s"/>`, num(x-19), num(y+nodeHeight/2), num(x-8))
		p.printf(`<path class="dot" d="M%s %s l-8 -4.5 v9 z"/>`, num(x-1), num(y+nodeHeight/2))
	}
	if s.Last {
		p.printf(`<rect class="ring" x="%s" y="%s" width="%s" height="%s" rx="12"/>`, num(x-3.5), num(y-3.5), num(w+7), num(nodeHeight+7))
	}
	p.printf(`<rect class="box" data-status="%s" x="%s" y="%s" width="%s" height="%s" rx="9"/>`, escape(s.Name), num(x), num(y), num(w), num(nodeHeight))
	p.printf(`<rect class="%s" x="%s" y="%s" width="4" height="%s" rx="2"/>`, escape(s.Stored), num(x+6), num(y+9), num(nodeHeight-18))
	sub := subtitle(s)
	if sub == "" {
		p.printf(`<text class="name" x="%s" y="%s">%s</text>`, num(n.x+2), num(y+28), escape(s.Name))
		return
	}
	p.printf(`<text class="name" x="%s" y="%s">%s</text>`, num(n.x+2), num(y+21), escape(s.Name))
	p.printf(`<text class="sub" x="%s" y="%s">%s</text>`, num(n.x+2), num(y+36), escape(sub))
}

const (
	rowHeight = 20.0
	eventAt   = 130.0
	panel     = 530.0  // width of the list beside the picture
	maxWidth  = 1200.0 // what a page shows without scrolling
	minWidth  = 600.0
)

// anywhere lists what holds in many statuses, beside the picture where there is room, else under it; and gives the height.
func (p *painter) anywhere() float64 {
	rows, height := p.l.g.Anywhere, p.l.height
	if len(rows) == 0 {
		return height
	}
	x, y, right := margin, height, p.width-margin
	if p.aside {
		x, y = p.l.width+margin/2, titleSpace+margin-24
		p.printf(`<path class="rule" d="M%s %s V%s"/>`, num(x-margin/2), num(y+10), num(y+48+float64(len(rows))*rowHeight))
	} else {
		p.printf(`<path class="rule" d="M%s %s H%s"/>`, num(margin), num(y), num(right))
	}
	p.printf(`<text class="note" x="%s" y="%s">In many statuses, and so not drawn:</text>`, num(x), num(y+24))
	for i, r := range rows {
		at := y + 48 + float64(i)*rowHeight
		to := r.By
		if r.To != "" {
			to += " \u2192 " + r.To
		}
		p.printf(`<text class="event" x="%s" y="%s">%s</text>`, num(x), num(at), escape(fit(r.Event, 12*1.06, eventAt-8)))
		p.printf(`<text class="to" x="%s" y="%s">%s</text>`, num(x+eventAt), num(at), escape(fit(to, 12, right-x-eventAt)))
	}
	return max(height, y+48+float64(len(rows))*rowHeight+margin/2)
}

// fit shortens a text to a width.
func fit(s string, size, width float64) string {
	if textWidth(s, size) <= width {
		return s
	}
	runes := []rune(s)
	for len(runes) > 0 && textWidth(string(runes)+"...", size) > width {
		runes = runes[:len(runes)-1]
	}
	return string(runes) + "..."
}

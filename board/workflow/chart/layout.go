package chart

import (
	"cmp"
	"slices"
)

// Measures of the picture, in pixels.
const (
	margin     = 28.0
	titleSpace = 46.0
	nodeHeight = 46.0
	nodePad    = 16.0
	entry      = 30.0 // room left of a box for the mark of a first status
	labelLine  = 15.0
	labelPad   = 5.0
	between    = 22.0 // of boxes side by side
	beside     = 12.0 // of a line and what stands beside it
	gap        = 24.0 // of rows
	lineWidth  = 2.0
	maxLabel   = 6 // lines of a label
	wrapAt     = 24
	sweeps     = 24      // over the rows for few crossings
	settlings  = 400     // over the rows for straight lines
	maxWork    = 4 << 20 // pairs of lines that are compared at most: a large workflow is drawn less carefully, not slowly
)

// item is what stands in a row: a status, a label, or a line that passes.
type item struct {
	node  int // in Statuses, or -1
	edge  int // in Edges, or -1
	label []string
	w, h  float64
	x     float64 // centre
	row   int
	pos   int // in its row
	up    []*item
	down  []*item
}

// row is a layer of the picture: statuses on even rows, labels on odd ones.
type row struct {
	items []*item
	y, h  float64 // top and height
}

// line is an edge's way through the rows, from the upper box to the lower.
type line struct {
	edge     int
	reversed bool // the edge leads upwards
	items    []*item
}

// layout is the picture's geometry.
type layout struct {
	g             *Graph
	nodes         []*item
	rows          []row
	lines         []line
	width, height float64
}

// arrange places a graph: rows by the longest way in the order of the file (an edge that leads back in it is turned
// round), a label in the middle of each line, few crossings, and as little sideways movement as possible.
func arrange(g *Graph) *layout {
	l := &layout{g: g}
	rank := l.ranks()
	most := 0
	for _, r := range rank {
		most = max(most, r)
	}
	l.rows = make([]row, 2*most+1)
	for i, s := range g.Statuses {
		it := &item{node: i, edge: -1, row: 2 * rank[i], w: boxWidth(s), h: nodeHeight}
		l.nodes = append(l.nodes, it)
		l.put(it)
	}
	for i := range g.Edges {
		l.thread(i)
	}
	l.order()
	l.rise()
	l.place()
	return l
}

// ranks are the rows of statuses: each below all that lead to it.
func (l *layout) ranks() []int {
	rank := make([]int, len(l.g.Statuses))
	for i := range rank { // the order of the file is a topological one of the turned edges
		for _, e := range l.g.Edges {
			from, to := min(e.From, e.To), max(e.From, e.To)
			if to == i {
				rank[i] = max(rank[i], rank[from]+1)
			}
		}
	}
	return rank
}

func (l *layout) put(it *item) { l.rows[it.row].items = append(l.rows[it.row].items, it) }

// thread leads an edge through the rows between its ends, with its label half way.
func (l *layout) thread(i int) {
	e := l.g.Edges[i]
	from, to := l.nodes[min(e.From, e.To)], l.nodes[max(e.From, e.To)]
	ln := line{edge: i, reversed: e.From > e.To, items: []*item{from}}
	middle := (from.row + to.row) / 2
	if middle%2 == 0 {
		middle++
	}
	last := from
	for r := from.row + 1; r < to.row; r++ {
		it := &item{node: -1, edge: i, row: r, w: lineWidth}
		if r == middle {
			it.label = wrapLabel(e.Events)
			it.h = float64(len(it.label))*labelLine + 2*labelPad
			for _, s := range it.label {
				it.w = max(it.w, textWidth(s, 12)+2*labelPad)
			}
		}
		l.put(it)
		join(last, it)
		ln.items = append(ln.items, it)
		last = it
	}
	join(last, to)
	ln.items = append(ln.items, to)
	l.lines = append(l.lines, ln)
}

func join(a, b *item) {
	a.down = append(a.down, b)
	b.up = append(b.up, a)
}

// wrapLabel breaks events into lines.
func wrapLabel(events []string) []string {
	var lines []string
	for _, e := range events {
		if len(e) > wrapAt+8 {
			e = e[:wrapAt+5] + "..."
		}
		if n := len(lines) - 1; n >= 0 && len(lines[n])+len(e)+2 <= wrapAt {
			lines[n] += ", " + e
			continue
		}
		if n := len(lines) - 1; n >= 0 {
			lines[n] += ","
		}
		lines = append(lines, e)
	}
	if len(lines) > maxLabel {
		lines = append(lines[:maxLabel-1], "...")
	}
	return lines
}

func boxWidth(s Status) float64 {
	w := max(textWidth(s.Name, 14)*1.06, textWidth(subtitle(s), 11), 74) + 2*nodePad
	if s.First {
		w += 2 * entry // on both sides, so that the box stands in the middle
	}
	return w
}

// subtitle is the second line of a box: who works there, or how it counts.
func subtitle(s Status) string {
	switch {
	case s.Role != "":
		return "run: " + s.Role
	case s.Stored != s.Name:
		return "counts as " + s.Stored
	}
	return ""
}

// order puts each row's items by the middle of their neighbours, up and down, and keeps the best.
func (l *layout) order() {
	l.number()
	pairs := 1
	for _, r := range l.rows {
		pairs += len(r.items) * len(r.items)
	}
	times := min(sweeps, maxWork/pairs)
	if times == 0 {
		return
	}
	best := l.crossings()
	keep := l.snapshot()
	for s := range times {
		for i := range l.rows {
			r := i
			if s%2 == 1 {
				r = len(l.rows) - 1 - i
			}
			l.sortRow(r, s%2 == 0)
		}
		if c := l.crossings(); c < best {
			best, keep = c, l.snapshot()
		}
	}
	for i := range l.rows {
		l.rows[i].items = keep[i]
	}
	l.number()
}

func (l *layout) snapshot() [][]*item {
	var all [][]*item
	for _, r := range l.rows {
		all = append(all, slices.Clone(r.items))
	}
	return all
}

func (l *layout) number() {
	for _, r := range l.rows {
		for i, it := range r.items {
			it.pos = i
		}
	}
}

// share is where in its row an item stands, from 0 to 1.
func (l *layout) share(it *item) float64 {
	return (float64(it.pos) + 0.5) / float64(len(l.rows[it.row].items))
}

func (l *layout) sortRow(r int, down bool) {
	want := map[*item]float64{}
	for _, it := range l.rows[r].items {
		near := it.up
		if !down {
			near = it.down
		}
		want[it] = l.share(it)
		if len(near) > 0 {
			sum := 0.0
			for _, n := range near {
				sum += l.share(n)
			}
			want[it] = sum / float64(len(near))
		}
	}
	slices.SortStableFunc(l.rows[r].items, func(a, b *item) int { return cmp.Compare(want[a], want[b]) })
	for i, it := range l.rows[r].items {
		it.pos = i
	}
}

// crossings counts lines that cross between rows.
func (l *layout) crossings() (n int) {
	type pair struct{ a, b int }
	for _, r := range l.rows {
		var ps []pair
		for _, it := range r.items {
			for _, d := range it.down {
				ps = append(ps, pair{it.pos, d.pos})
			}
		}
		for i := range ps {
			for j := range i {
				if (ps[i].a-ps[j].a)*(ps[i].b-ps[j].b) < 0 {
					n++
				}
			}
		}
	}
	return n
}

// rise gives the rows their heights.
func (l *layout) rise() {
	y := titleSpace + margin
	for i := range l.rows {
		r := &l.rows[i]
		for _, it := range r.items {
			r.h = max(r.h, it.h)
		}
		r.y = y
		y += r.h + gap
	}
	l.height = y - gap + margin
}

package chart

import (
	"slices"
	"strings"
)

// space is what must lie between the middles of two neighbours of a row.
func space(a, b *item) float64 {
	apart := between
	if plainLine(a) || plainLine(b) {
		apart = beside
	}
	return (a.w+b.w)/2 + apart
}

func plainLine(it *item) bool { return it.node < 0 && it.label == nil }

// place gives the items their middles: each row as near as it can to the middle of its neighbours, again and again;
// a line that only passes is drawn to its neighbours more strongly, so that it runs straight.
func (l *layout) place() {
	for i := range l.rows {
		x := 0.0
		for j, it := range l.rows[i].items {
			if j > 0 {
				x += space(l.rows[i].items[j-1], it)
			}
			it.x = x
		}
		for _, it := range l.rows[i].items {
			it.x -= x / 2
		}
	}
	items := 1
	for _, r := range l.rows {
		items += len(r.items)
	}
	for s := range min(settlings, max(maxWork/items, 2)) {
		for i := range l.rows {
			r := i
			if s%2 == 1 {
				r = len(l.rows) - 1 - i
			}
			l.settle(r)
		}
	}
	left, right := 0.0, 0.0
	for _, r := range l.rows {
		for _, it := range r.items {
			left, right = min(left, it.x-it.w/2), max(right, it.x+it.w/2)
		}
	}
	for _, r := range l.rows {
		for _, it := range r.items {
			it.x += margin - left
		}
	}
	l.width = right - left + 2*margin
}

// settle moves one row to where its neighbours want it, in least squares under the order and the spaces: pools of
// neighbours that would overlap move as one.
func (l *layout) settle(r int) {
	items := l.rows[r].items
	type pool struct {
		sum, weight float64
		n           int
	}
	var pools []pool
	offset := make([]float64, len(items))
	for i, it := range items {
		if i > 0 {
			offset[i] = offset[i-1] + space(items[i-1], it)
		}
		want, weight := wanted(it)
		pools = append(pools, pool{sum: (want - offset[i]) * weight, weight: weight, n: 1})
		for len(pools) > 1 {
			a, b := pools[len(pools)-2], pools[len(pools)-1]
			if a.sum/a.weight <= b.sum/b.weight {
				break
			}
			pools = append(pools[:len(pools)-2], pool{a.sum + b.sum, a.weight + b.weight, a.n + b.n})
		}
	}
	i := 0
	for _, p := range pools {
		for range p.n {
			items[i].x = p.sum/p.weight + offset[i]
			i++
		}
	}
}

// wanted is where an item would stand, and how strongly.
func wanted(it *item) (x, weight float64) {
	near := append(slices.Clone(it.up), it.down...)
	if len(near) == 0 {
		return it.x, 1
	}
	total := 0.0
	for _, n := range near {
		w := 1.0
		if n.node < 0 && it.node < 0 {
			w = 4
		}
		x += n.x * w
		total += w
	}
	if it.node < 0 {
		return x / total, 3
	}
	return x / total, 1
}

// textWidth is about the width of a text in a common sans-serif face, rather too wide than too narrow.
func textWidth(s string, size float64) float64 {
	em := 0.0
	for _, r := range s {
		switch {
		case strings.ContainsRune("iljtfr.,:;'|()[] -_", r):
			em += 0.38
		case strings.ContainsRune("mwMW@", r):
			em += 0.92
		case r >= 'A' && r <= 'Z':
			em += 0.72
		case r > 0x2e80:
			em += 1.05
		default:
			em += 0.6
		}
	}
	return em * size
}

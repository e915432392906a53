package foreign

import (
	"slices"
	"strings"

	"muster/board"
)

// statuses are those of the default workflow in which a card can lie, by their
// names in the source. What ran there does not run here: it waits to be started.
var statuses = map[string]string{
	"triage": "triage", "todo": "todo", "scheduled": "todo", "ready": "ready", "running": "ready", "review": "review",
	"blocked": "blocked", "done": "done", "cancelled": "cancelled", "canceled": "cancelled", "archived": "archived",
}

// settle resolves what cards say of each other, and gives each its status.
func (b *Board) settle() error {
	for _, c := range b.cards {
		c.after = slices.DeleteFunc(dedup(c.after), func(key string) bool {
			if b.byKey[key] == nil || key == c.key {
				b.leave("a card that it waits for and that is not there", c.key+" after "+key)
				return true
			}
			return false
		})
		b.links += len(c.after)
		if c.of != "" && b.byKey[c.of] == nil {
			b.leave("a card that it is a part of and that is not there", c.key+" of "+c.of)
			c.of = ""
		}
	}
	if ring := b.circle(); ring != nil {
		return bad("cards wait for each other in a circle: %s", strings.Join(ring, ", "))
	}
	for _, c := range b.cards {
		b.status(c)
	}
	for _, c := range b.cards { // only when all have one: a card without open parents would wait in todo for ever
		if c.out.Status == "todo" && c.out.StartAfter == 0 && !slices.ContainsFunc(c.after, b.open) {
			c.out.Status = "ready"
		}
	}
	return nil
}

func dedup(list []string) []string {
	list = slices.Clone(list)
	slices.Sort(list)
	return slices.Compact(list)
}

func (b *Board) status(c *card) {
	to, known := statuses[c.status]
	if !known {
		to = "todo"
		if c.status != "" {
			b.leave("status "+c.status+": such cards are todo here", c.key)
		}
	}
	if c.status == "running" {
		b.leave("a claim: the card was running, and waits to be started here", c.key)
	}
	if c.out.Status = to; to == "archived" && c.out.Previous == "" {
		c.out.Previous = "done"
	}
}

// open says that a card is not done.
func (b *Board) open(key string) bool {
	c := b.byKey[key].out
	return c.Status != "done" && (c.Status != "archived" || c.Previous != "done")
}

// circle finds cards that wait for each other.
func (b *Board) circle() []string {
	const under, past = 1, 2
	state := map[string]int{}
	for _, first := range b.cards {
		type at struct {
			key  string
			next int
		}
		path := []at{{key: first.key}} // a stack of its own: a long chain is no deep recursion
		for len(path) > 0 {
			p := &path[len(path)-1]
			after := b.byKey[p.key].after
			if p.next == 0 {
				if state[p.key] == past {
					path = path[:len(path)-1]
					continue
				}
				state[p.key] = under
			}
			if p.next == len(after) {
				state[p.key] = past
				path = path[:len(path)-1]
				continue
			}
			key := after[p.next]
			if p.next++; state[key] == under {
				var ring []string
				for _, x := range path {
					ring = append(ring, x.key)
				}
				return ring[slices.Index(ring, key):]
			}
			path = append(path, at{key: key})
		}
	}
	return nil
}

// sortEvents puts what happened to each card in order, oldest first.
func (c *card) sortEvents() {
	slices.SortStableFunc(c.events, func(x, y board.ExportEvent) int {
		switch {
		case x.At < y.At:
			return -1
		case x.At > y.At:
			return 1
		}
		return 0
	})
}

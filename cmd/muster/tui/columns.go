package tui

import (
	"cmp"
	"slices"
	"strings"

	"muster/cmd/muster/api"
)

// column is a status with the cards in it that the filter lets through, in their order.
type column struct {
	api.LiveStatus
	list []*api.LiveCard
	all  int // cards in it, filter or not
	top  int // the first card that is drawn
}

// columns is a board: each card once, and in its column. One card's change costs one search in its column.
type columns struct {
	by    map[string]*api.LiveCard
	list  []*column
	where map[string]*column
	match func(*api.LiveCard) bool
	sel   string // the chosen card
	col   int    // its column, and its row: where the choice stays when the card goes
	row   int
}

func newColumns() columns {
	return columns{by: map[string]*api.LiveCard{}, where: map[string]*column{}, match: func(*api.LiveCard) bool { return true }}
}

// reset takes a board whole. The choice stays.
func (c *columns) reset(statuses []api.LiveStatus, list []api.LiveCard) {
	clear(c.by)
	clear(c.where)
	tops := map[string]int{}
	for _, x := range c.list {
		tops[x.Name] = x.top
	}
	c.list = c.list[:0]
	for _, s := range statuses {
		x := &column{LiveStatus: s, top: tops[s.Name]}
		c.list = append(c.list, x)
		c.where[s.Name] = x
	}
	for i := range list {
		c.by[list[i].ID] = &list[i]
	}
	c.fill()
}

// fill sorts all cards into the columns anew.
func (c *columns) fill() {
	for _, x := range c.list {
		x.list, x.all = x.list[:0], 0
	}
	for _, card := range c.by {
		x := c.column(card.Status)
		if x.all++; c.match(card) {
			x.list = append(x.list, card)
		}
	}
	for _, x := range c.list {
		slices.SortFunc(x.list, x.order())
	}
	c.settle()
}

// column is that of a status; one that the workflow does not name any more comes last.
func (c *columns) column(status string) *column {
	x := c.where[status]
	if x == nil {
		x = &column{LiveStatus: api.LiveStatus{Name: status}}
		c.list = append(c.list, x)
		c.where[status] = x
	}
	return x
}

// order: what is worked on first comes first; of what has ended, the newest.
func (x *column) order() func(a, b *api.LiveCard) int {
	switch x.Stored {
	case "done", "cancelled", "archived":
		return func(a, b *api.LiveCard) int { return cmp.Or(b.UpdatedAt.Compare(a.UpdatedAt), byID(b, a)) }
	}
	return func(a, b *api.LiveCard) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), a.CreatedAt.Compare(b.CreatedAt), byID(a, b))
	}
}

func byID(a, b *api.LiveCard) int {
	return cmp.Or(cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
}

func (c *columns) put(card *api.LiveCard) {
	c.remove(card.ID)
	c.by[card.ID] = card
	x := c.column(card.Status)
	if x.all++; c.match(card) {
		i, _ := slices.BinarySearchFunc(x.list, card, x.order())
		x.list = slices.Insert(x.list, i, card)
	}
	c.settle()
}

func (c *columns) drop(id string) {
	c.remove(id)
	c.settle()
}

func (c *columns) remove(id string) {
	old := c.by[id]
	if old == nil {
		return
	}
	delete(c.by, id)
	x := c.column(old.Status)
	x.all--
	if i, ok := slices.BinarySearchFunc(x.list, old, x.order()); ok && x.list[i] == old {
		x.list = slices.Delete(x.list, i, i+1)
	}
}

// settle finds the choice again: its card wherever it is, else what stands in its place.
func (c *columns) settle() {
	if card := c.by[c.sel]; card != nil && c.match(card) {
		x := c.column(card.Status)
		if i, ok := slices.BinarySearchFunc(x.list, card, x.order()); ok {
			c.col, c.row = slices.Index(c.list, x), i
			return
		}
	}
	c.sel = ""
	if c.col >= len(c.list) {
		c.col = 0
	}
	for i := range c.list { // the column itself, then the ones to the right, then from the left
		if k := (c.col + i) % len(c.list); len(c.list[k].list) > 0 {
			if i > 0 {
				c.row = 0
			}
			c.choose(k, c.row)
			return
		}
	}
}

func (c *columns) choose(col, row int) {
	if col < 0 || col >= len(c.list) || len(c.list[col].list) == 0 {
		return
	}
	row = min(max(row, 0), len(c.list[col].list)-1)
	c.col, c.row, c.sel = col, row, c.list[col].list[row].ID
}

// walk chooses another card; columns without one are passed over.
func (c *columns) walk(cols, rows int) {
	if cols == 0 {
		c.choose(c.col, c.row+rows)
		return
	}
	for k := c.col + cols; k >= 0 && k < len(c.list); k += cols {
		if len(c.list[k].list) > 0 {
			c.choose(k, c.row)
			return
		}
	}
}

// setFilter takes words that all must be found: `@x` is an assignee or a machine, `k=v` a label, `status:x` a status,
// `!` what needs a person.
func (c *columns) setFilter(text string) {
	c.match = matcher(text)
	c.fill()
}

func matcher(text string) func(*api.LiveCard) bool {
	words := strings.Fields(strings.ToLower(text))
	return func(c *api.LiveCard) bool {
		for _, w := range words {
			if !found(c, w) {
				return false
			}
		}
		return true
	}
}

func found(c *api.LiveCard, w string) bool {
	who := c.Assignee + " " + c.Machine
	if c.Session != nil {
		who += " " + c.Session.Node
	}
	if w == "!" {
		return c.Attention != nil
	}
	if x, ok := strings.CutPrefix(w, "@"); ok {
		return strings.Contains(strings.ToLower(who), x)
	}
	if x, ok := strings.CutPrefix(w, "status:"); ok {
		return strings.HasPrefix(c.Status, x)
	}
	for k, v := range c.Labels {
		if text := strings.ToLower(k + "=" + v); strings.HasPrefix(text, w) || !strings.Contains(w, "=") && strings.Contains(text, w) {
			return true
		}
	}
	return strings.Contains(strings.ToLower(c.Title), w) || strings.Contains(strings.ToLower(c.ID), w)
}

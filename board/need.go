package board

import "strings"

// Need is one thing that only a person can let go on. The table of needs is an index:
// a row stands as long as the card, the session or the delivery that it is made of
// says so, is written by the transaction that changes that, and is the same on every node.
type Need struct {
	Card, Board, Run string
	Kind             string // a card's Attention.Check; Turn...; or one of Need...
	Text             string
	Since            int64 // board time, ms
	Until            int64 // of a limit: its end; 0: not known
	unknown
}

func (n *Need) fields(w *wire) {
	str(w, 1, &n.Card)
	str(w, 2, &n.Board)
	str(w, 3, &n.Run)
	str(w, 4, &n.Kind)
	str(w, 5, &n.Text)
	w.int(6, &n.Since)
	w.int(7, &n.Until)
}

// Kinds of needs besides those of cards and turns.
const (
	NeedReview      = "review"      // a card waits for a person's review
	NeedDeaf        = "deaf"        // a pane does not take what it is to be told
	NeedUndelivered = "undelivered" // nobody knows whether words reached their session
)

// EachNeed reads what needs a person on a board (on all boards when b is nil), by card. On a board that was put aside
// nobody is needed: whatever a person would do there is refused (BRD-11).
func EachNeed(v View, b *Board, fn func(*Need) bool) {
	prefix := ""
	if b != nil {
		prefix = b.Prefix + "-"
	}
	there := map[string]bool{}
	scan(v, TNeed, prefix, "", func(_ string, n *Need) bool {
		ok, known := there[n.Board]
		if !known {
			x := GetBoard(v, n.Board) // one that is being imported is not there yet
			ok = x != nil && !x.Archived
			there[n.Board] = ok
		}
		return !ok || fn(n)
	})
}

// NeedsOf reads what of a card needs a person.
func NeedsOf(v View, card string) (list []*Need) {
	if n := read[Need](v, TNeed, card); n != nil {
		list = append(list, n)
	}
	for _, prefix := range []string{card + ".", card + "/"} { // its runs, its deliveries
		scan(v, TNeed, prefix, "", func(_ string, n *Need) bool { list = append(list, n); return true })
	}
	return list
}

// need keeps the index: r is the record that was written under a key, nil when it was removed.
func (t *tx) need(tab Table, key string, r record) {
	var n *Need
	switch tab {
	case TCard:
		if c, ok := r.(*Card); ok {
			n = c.need()
		}
	case TRun:
		if x, ok := r.(*Run); ok {
			n = x.need()
		}
	case TDelivery:
		if d, ok := r.(*Delivery); ok {
			n = d.need(t)
		}
	default:
		return
	}
	if n == nil {
		t.del(TNeed, key)
		return
	}
	val := marshal(n)
	if string(t.Get(TNeed, key)) != string(val) {
		t.write(Op{Table: TNeed, Key: key, Val: val})
	}
}

// NeedOfCard is why a card itself, not a session of it, needs a person; nil when it does not.
func NeedOfCard(c *Card) *Need { return c.need() }

func (c *Card) need() *Need {
	if w := c.Waits; c.Attention.Check == "" && c.Run == "" && !Finished(c.Stored) && (w.Check == "unassigned" || w.Check == "profile") {
		return &Need{Card: c.ID, Board: c.Board, Kind: w.Check, Text: clip(w.Text, 300) + ": muster card edit " + c.ID + " --assignee PROFILE", Since: w.Since}
	}
	if c.Attention.Check == "" {
		return nil
	}
	return &Need{Card: c.ID, Board: c.Board, Run: c.Run, Kind: c.Attention.Check, Text: c.Attention.Text, Since: c.Attention.Since}
}

func (r *Run) need() *Need {
	if r.Gone != "" {
		return nil
	}
	n := &Need{Card: r.Card, Board: r.Board, Run: r.ID}
	switch s := &r.Session; {
	case s.asks():
		n.Kind, n.Text, n.Since, n.Until = s.Turn, s.Says, s.TurnAt, s.Until
	case s.Deaf != 0:
		n.Kind, n.Text, n.Since = NeedDeaf, s.DeafWhy, s.Deaf
	default:
		return nil
	}
	return n
}

// need: words that may or may not have been read. What waits for its session is told
// by it later, or by the next one, and needs nobody.
func (d *Delivery) need(v View) *Need {
	if d.State != DeliveryUnknown || d.Kind == DeliverNotice {
		return nil
	}
	n := &Need{Card: d.Card, Run: d.Run, Kind: NeedUndelivered, Since: d.At}
	if b := BoardOfCard(v, d.Card); b != nil {
		n.Board = b.Slug
	}
	first, _, _ := strings.Cut(d.Text, "\n")
	n.Text = clip(d.Error, 120) + ": " + clip(first, 120)
	return n
}

// awaitReview says that a card needs a person who reviews it: it rests in a status that
// is stored as review, and the workflow lets nothing start there.
func (t *tx) awaitReview(b *Board, fl *flow, c *Card) {
	if c.Stored != "review" || c.Run != "" || c.Hook != "" || c.Attention.Check != "" && c.Attention.Check != NeedReview {
		return
	}
	s := newScope(t, t.env.Workflows, fl, b, c, t.env.Now, t.env.Nodes).From(Platform(), nil)
	tr, err := s.pick(fl.wf.Dispatch.Start, []string{"platform"})
	switch {
	case err != nil || tr != nil:
		c.Attention = Reason{}
	case c.Attention.Check == "":
		c.Attention = Reason{Check: NeedReview, Since: t.env.Now,
			Text: "it waits for a person's review: muster complete " + c.ID + ", or muster request-changes " + c.ID}
	}
}

// reviewed looks at a card again whose reason to wait changed: another workflow, or other
// parameters, may name a reviewer now, or none any more.
func (t *tx) reviewed(c *Card) {
	if b := GetBoard(t, c.Board); b != nil && c.Stored == "review" {
		if fl, err := t.flow(b); err == nil {
			t.awaitReview(b, fl, c)
		}
	}
}

// NeedOfRun reads why a run's session needs a person, nil when it does not.
func NeedOfRun(v View, run string) *Need { return read[Need](v, TNeed, RunKey(run)) }

package board

import "fmt"

// A new workflow meets more cards than one transaction holds: it is in force at
// once, and the cards are carried over in slices. Between them no card is worse
// off: whoever says something of one that was not reached yet carries it over
// first, in the same transaction (see [tx.fire]), and until then it only waits
// under its old name. Whoever leads goes on; a crash loses nothing.

// DueCarry is the next slice of a board whose cards are being carried over.
const DueCarry = "carry"

// Bounds of carrying over.
const (
	carryPerStep = 500  // records after which a slice ends
	carryLooks   = 2000 // cards a slice looks at
	tellAtOnce   = 100  // sessions that one transaction tells of a change
)

// flowNow is the workflow and parameters of a board as they are before a change.
func (t *tx) flowNow(b *Board) *flow {
	if fl, err := t.flow(b); err == nil {
		return fl
	}
	return nil // it cannot be used: nobody has doors by it
}

// flowBefore is what a board's sessions were told by: the version in force, or where that cannot be used and its cards
// were still being carried over to it, the one from before.
func (t *tx) flowBefore(b *Board) *flow {
	if fl := t.flowNow(b); fl != nil || b.Carry == "" {
		return fl
	}
	if fl := t.env.Workflows.flow(t, b.Slug, b.CarryFrom, b.CarryParams); fl.err == nil {
		return fl
	}
	return nil
}

// carryAll begins to carry the cards of a board over from a version and its parameters.
func (t *tx) carryAll(b *Board, version uint64, params []byte) {
	b.Carry, b.CarryFrom, b.CarryParams, b.CarrySeq = b.Prefix+"-", version, params, t.env.Seq
	t.putDue(t.env.Now+1, DueCarry, b.Slug)
}

// carried: no card is left to carry over.
func (b *Board) carried() { b.Carry, b.CarryFrom, b.CarryParams, b.CarrySeq = "", 0, nil, 0 }

// much tells that a slice has written enough: one more card fits beside it.
func (t *tx) much() bool {
	if len(t.out) > carryPerStep {
		return true
	}
	x := t.txn()
	return x.Size() > maxBytes/2
}

// carrying is the migration that is under way on a board.
func (t *tx) carrying(b *Board) (*migration, *Error) {
	was := t.env.Workflows.flow(t, b.Slug, b.CarryFrom, b.CarryParams)
	if was.err != nil {
		was = nil
	}
	return t.migration(b, was)
}

// carry carries one card over that somebody speaks of before its slice came.
func (t *tx) carry(b *Board, c *Card, r *Run) *Error {
	if b.Carry == "" || c.ID < b.Carry {
		return nil
	}
	m, err := t.carrying(b)
	if err == nil {
		m.card(c, r)
	}
	return err
}

// dueCarry is the next slice.
func (t *tx) dueCarry(slug string) {
	b := GetBoard(t, slug)
	if b == nil || b.Carry == "" {
		return
	}
	m, err := t.carrying(b)
	if err != nil { // the workflow cannot be used now: the cards are carried over when it can
		t.putDue(t.env.Now+offerAgain, DueCarry, slug)
		return
	}
	var cards []*Card // gathered first: what is written moves under a scan
	scan(t, TCard, b.Prefix+"-", b.Carry, func(_ string, c *Card) bool { cards = append(cards, c); return len(cards) < carryLooks })
	more := len(cards) == carryLooks
	for _, c := range cards {
		if m.card(c, nil); t.much() {
			b.Carry, more = c.ID+"\x00", true
			break
		}
		b.Carry = c.ID + "\x00"
	}
	if more {
		t.putDue(t.env.Now+1, DueCarry, slug)
	} else {
		b.carried()
		t.event(nil, Event{Kind: "board_migrated", Board: b.Slug, Payload: object("version", b.Workflow)})
	}
	t.putBoard(b)
}

// doors is what a card's session was told that it may say, by a version; "" where no terminal can be told otherwise:
// a headless session is told with its next prompt, as always.
func (m *migration) doors(fl *flow, c *Card, r *Run) string {
	if fl == nil || r == nil {
		return ""
	}
	if h := GetHeld(m.t, r.ID); h == nil || h.Surface != "pane" {
		return ""
	}
	s := newScope(m.t, m.t.env.Workflows, fl, m.b, c, m.t.env.Now, m.t.env.Nodes)
	s.run = r
	return s.Doors(r.Role)
}

// tell tells a live session that it may say other things now, once (M-22). It says whether the card was changed by that.
func (m *migration) tell(c *Card, r *Run, before, status string) bool {
	if before == "" || m.look || m.b.Carry != "" && max(r.Epoch, r.Told) > m.b.CarrySeq { // claimed or told since that began
		return false
	}
	x := *c
	x.Status, x.Stored = status, m.w.StoredAs(status)
	now := m.doors(m.fl, &x, r)
	if now == before {
		return false
	}
	ev := m.t.event(c, Event{Kind: "doors_changed", Actor: Platform(), Run: r.ID, Payload: object("version", m.b.Workflow)})
	m.t.deliver(GetHeld(m.t, r.ID), m.b, &Delivery{Key: noticeID(DeliverNotice, c.ID, ev.ID), Kind: DeliverNotice, About: c.ID, Event: ev.ID,
		Text: clip(fmt.Sprintf("[automated notice of board %s; nobody reads a reply]\nThe workflow of this board has changed while you work. %s", m.b.Slug, now), maxMessage)})
	r.Told = m.t.env.Seq
	m.t.putRun(r)
	return true
}

// retell tells the live sessions of a board after its parameters changed: at once, or in slices.
func (t *tx) retell(b *Board, was *flow, params []byte) *Error {
	f := t.fork()
	m, err := f.migration(b, was)
	if err != nil {
		return err
	}
	var ids []string
	EachHeld(t, "", func(h *Held) bool {
		if h.Board == b.Slug && h.Surface == "pane" {
			ids = append(ids, h.Run)
		}
		return true
	})
	if len(ids) > tellAtOnce {
		t.carryAll(b, b.Workflow, params)
		return nil
	}
	for _, id := range ids {
		r := GetRun(f, id)
		if c := GetCard(f, r.Card); c != nil && c.Run == r.ID && m.tell(c, r, m.doors(was, c, r), c.Status) {
			f.putCard(c)
		}
		if f.much() { // nobody was told yet
			t.carryAll(b, b.Workflow, params)
			return nil
		}
	}
	t.join(f)
	return nil
}

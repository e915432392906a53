package board

// tx collects what one request changes, over the view it is decided on: reads
// see its own writes. Nothing of it is kept when the request is refused.
type tx struct {
	*Overlay
	env  *Env
	req  *Request
	out  []Op
	pos  map[tk]int // index in out of a key, so that a key is written once
	late *Event     // its place in out is taken, its bytes are written when they are final, or read
	n    int        // events so far
	ords int        // orders so far

	token *Token // that the request came with
}

func newTx(v View, req *Request, env *Env) *tx {
	return &tx{Overlay: NewOverlay(v), env: env, req: req, out: make([]Op, 0, 8), pos: make(map[tk]int, 8)}
}

// Get, Has, Scan and Last implement View: what is read is final first.
func (t *tx) Get(tab Table, key string) []byte {
	t.settled(tab)
	return t.Overlay.Get(tab, key)
}

// Has implements View.
func (t *tx) Has(tab Table, key string) bool {
	t.settled(tab)
	return t.Overlay.Has(tab, key)
}

// Scan implements View.
func (t *tx) Scan(tab Table, prefix, from string, fn func(key string, val []byte) bool) {
	t.settled(tab)
	t.Overlay.Scan(tab, prefix, from, fn)
}

// Last implements View.
func (t *tx) Last(tab Table, prefix string) (string, []byte) {
	t.settled(tab)
	return t.Overlay.Last(tab, prefix)
}

// settled writes the event that is still being made, when its table is read.
func (t *tx) settled(tab Table) {
	if e := t.late; e != nil && tab == TEvent {
		t.late = nil
		t.put(TEvent, e.ID, e)
	}
}

func (t *tx) write(op Op) {
	if e := t.late; e != nil && op.Table == TEvent && op.Key == e.ID {
		t.late = nil
	}
	t.Put(op)
	k := tk{op.Table, op.Key}
	if i, ok := t.pos[k]; ok {
		t.out[i] = op
		return
	}
	t.pos[k] = len(t.out)
	t.out = append(t.out, op)
}

func (t *tx) put(tab Table, key string, r record) {
	t.write(Op{Table: tab, Key: key, Val: marshal(r)})
	t.need(tab, key, r)
}

func (t *tx) del(tab Table, key string) {
	if t.Has(tab, key) {
		t.write(Op{Table: tab, Key: key, Delete: true})
		t.need(tab, key, nil)
	}
}

func (t *tx) putFleet(f *Fleet)   { t.put(TFleet, FleetKey, f) }
func (t *tx) putBoard(b *Board)   { t.put(TBoard, b.Slug, b) }
func (t *tx) putRun(r *Run)       { t.put(TRun, RunKey(r.ID), r) }
func (t *tx) putHeld(h *Held)     { t.put(THeld, h.Run, h) }
func (t *tx) putNode(n *Node)     { t.put(TNode, n.ID, n) }
func (t *tx) putToken(k *Token)   { t.put(TToken, k.ID, k) }
func (t *tx) putOrder(o *Order)   { t.put(TOrder, OrderKey(o.Node, o.ID), o) }
func (t *tx) putSlot(s *SlotRec)  { t.put(TSlot, SlotKey(s.Card, s.Slot), s) }
func (t *tx) putOutbox(o *Outbox) { t.put(TOutbox, o.Journal, o) }
func (t *tx) putAgent(a *Agent)   { t.put(TAgent, a.ID, a) }
func (t *tx) delOrder(o *Order)   { t.del(TOrder, OrderKey(o.Node, o.ID)) }
func (t *tx) delDue(at int64, kind, key string) {
	if at > 0 {
		t.del(TDue, DueKey(at, kind, key))
	}
}

// putCard stores a card and stamps its change.
func (t *tx) putCard(c *Card) {
	c.Updated = t.env.Now
	if Finished(c.Stored) && c.KeepAt == 0 { // closed by whatever way (AGT-17)
		t.endAgents(c, c.Stored)
	}
	t.keepTime(c)
	t.put(TCard, c.ID, c)
}

// putBody stores a card's text; "" removes it.
func (t *tx) putBody(card, body string) {
	if body == "" {
		t.del(TText, card)
		return
	}
	t.write(Op{Table: TText, Key: card, Val: []byte(body)})
}

func (t *tx) putDue(at int64, kind, key string) {
	if at > 0 {
		t.put(TDue, DueKey(at, kind, key), &Due{At: at, Kind: kind, Key: key})
	}
}

// event records a board-visible change (BRD-08) and chains it to its card,
// which the caller stores afterwards (c may be nil for events of a board or the fleet).
func (t *tx) event(c *Card, e Event) *Event {
	x := t.eventLater(c, e)
	t.put(TEvent, x.ID, x)
	return x
}

// eventLater is [tx.event] for an event that is not final yet: it takes its
// place in the transaction, and the caller puts it when it is.
func (t *tx) eventLater(c *Card, e Event) *Event {
	e.ID = EventKey(t.env.Seq, t.n)
	t.n++
	e.At = t.env.Now
	if e.Actor.Kind == "" {
		e.Actor = t.req.Actor
	}
	if e.ID == EventKey(t.env.Seq, 0) && t.req.ID != "" {
		e.Req = t.req.ID
	}
	if c != nil {
		e.Card, e.Board, e.Prev = c.ID, c.Board, c.LastEvent
		c.LastEvent = e.ID
	}
	t.settled(TEvent)
	t.late = &e
	t.pos[tk{TEvent, e.ID}] = len(t.out)
	t.out = append(t.out, Op{Table: TEvent, Key: e.ID})
	return &e
}

// orderID is unique and rising: Seq of the transaction and a count in it.
func (t *tx) orderID() string {
	t.ords++
	return EventKey(t.env.Seq, t.ords)
}

// fork starts an attempt that may be given up: it sees what t wrote, and
// nothing of it counts until [tx.join].
func (t *tx) fork() *tx {
	f := newTx(t, t.req, t.env)
	f.n, f.ords = t.n, t.ords
	return f
}

// join takes over what a fork wrote.
func (t *tx) join(f *tx) {
	f.settled(TEvent)
	for _, op := range f.out {
		t.write(op)
	}
	t.n, t.ords = f.n, f.ords
}

func (t *tx) txn() Txn {
	t.settled(TEvent)
	return Txn{Time: t.env.Now, Ops: t.out}
}

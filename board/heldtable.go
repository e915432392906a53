package board

// HeldTable is the executor's memory of what is held and what waits
// (architecture.md §8): a [Room] that is read once in a term and then follows
// the executor's own transactions. It decides nothing that the state does not
// say: a view that it cannot have followed is read anew.
//
// Give one in [Env.Held] with every request of an executor, in order, with the
// term; it is not safe for concurrent use.
type HeldTable struct {
	room  *Room
	term  uint64
	seq   uint64   // of the state it has followed to
	view  View     // of the request at hand, without what it writes
	batch *Overlay // of the requests before, whose changes were followed up to pos
	pos   int
}

// follow brings the table to the view of a request: the state with the requests
// before it in its batch. A batch is followed by its changes, and the state after
// it needs no reading when it is that batch, committed: nobody else writes in
// the term.
func (h *HeldTable) follow(v View, env *Env) {
	h.view = v
	batch, base := asBatch(v)
	if h.room != nil && h.term == env.Term {
		if batch != h.batch || batch == nil {
			h.drain(v)
			if h.batch != nil {
				h.seq = h.batch.seq
			}
			h.batch, h.pos = batch, 0
		}
		if base.Seq() == h.seq {
			h.drain(v)
			return
		}
	}
	h.room, h.term, h.seq, h.batch, h.pos = NewRoom(v, env.Workflows), env.Term, base.Seq(), batch, 0
	if batch != nil {
		h.pos = len(batch.order)
	}
}

func asBatch(v View) (batch *Overlay, base View) {
	if o, ok := v.(*Overlay); ok {
		return o, o.base
	}
	return nil, v
}

// drain follows what was added to the batch.
func (h *HeldTable) drain(v View) {
	if h.batch == nil {
		return
	}
	for ; h.pos < len(h.batch.order); h.pos++ {
		k := h.batch.order[h.pos]
		h.room.Change(v, k.t, k.k)
	}
}

// room is what is held, with what this request has changed; done gives it back.
func (t *tx) room() (r *Room, done func()) {
	if t.env.Held == nil || t.env.Held.room == nil {
		return NewRoom(t, t.env.Workflows), func() {}
	}
	r = t.env.Held.room
	if !r.waits.loaded { // by the first claim of a term: no other request waits until every card is read
		r.Index(t.env.Held.view)
	}
	r.Try()
	var own func(x *tx)
	own = func(x *tx) {
		if outer, ok := x.base.(*tx); ok {
			own(outer)
		}
		for i := range x.out {
			r.Change(t, x.out[i].Table, x.out[i].Key)
		}
	}
	own(t)
	return r, r.Undo
}

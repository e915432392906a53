package board

import "slices"

// Typed readers of a view. Each returns a copy, and nil when the record is not
// there. A record that cannot be decoded is a defect of the state, found by its
// checksum before it gets here; it reads as absent.

func read[T any, P interface {
	*T
	record
}](v View, t Table, key string) *T {
	b := v.Get(t, key)
	if b == nil {
		return nil
	}
	r := new(T)
	if unmarshal(b, P(r)) != nil {
		return nil
	}
	return r
}

func scan[T any, P interface {
	*T
	record
}](v View, t Table, prefix, from string, fn func(key string, r *T) bool) {
	v.Scan(t, prefix, from, func(key string, val []byte) bool {
		r := new(T)
		if unmarshal(val, P(r)) != nil {
			return true
		}
		return fn(key, r)
	})
}

// GetFleet reads the fleet's record.
func GetFleet(v View) *Fleet { return read[Fleet](v, TFleet, FleetKey) }

// GetIDs reads the state of the table of request ids.
func GetIDs(v View) *IDTable {
	if t := read[IDTable](v, TFleet, IDsKey); t != nil {
		return t
	}
	return &IDTable{}
}

// GetBoard reads a board by its slug.
func GetBoard(v View, slug string) *Board { return read[Board](v, TBoard, slug) }

// BoardOfCard reads the board a card id belongs to, by its prefix.
func BoardOfCard(v View, card string) *Board {
	slug := v.Get(TPrefix, PrefixOfCard(card))
	if slug == nil {
		return nil
	}
	return GetBoard(v, string(slug))
}

// EachBoard reads all boards in order of their slugs.
func EachBoard(v View, fn func(*Board) bool) {
	scan(v, TBoard, "", "", func(_ string, b *Board) bool { return fn(b) })
}

// GetWorkflowDoc reads a saved version of a board's workflow.
func GetWorkflowDoc(v View, slug string, version uint64) *WorkflowDoc {
	return read[WorkflowDoc](v, TWorkflow, WorkflowKey(slug, version))
}

// GetCard reads a card.
func GetCard(v View, id string) *Card { return read[Card](v, TCard, id) }

// GetBody reads a card's body.
func GetBody(v View, id string) string { return string(v.Get(TText, id)) }

// EachCard reads the cards of a board (all boards when b is nil).
func EachCard(v View, b *Board, fn func(*Card) bool) {
	prefix := ""
	if b != nil {
		prefix = b.Prefix + "-"
	}
	boards := map[string]bool{}
	scan(v, TCard, prefix, "", func(_ string, c *Card) bool {
		there, known := boards[c.Board]
		if !known && b == nil { // a board that is being imported is not there yet
			there = v.Has(TBoard, c.Board)
			boards[c.Board] = there
		}
		return !there && b == nil || fn(c)
	})
}

// GetRun reads a run by its public id.
func GetRun(v View, id string) *Run { return read[Run](v, TRun, RunKey(id)) }

// EachRun reads a card's runs, oldest first.
func EachRun(v View, card string, fn func(*Run) bool) {
	scan(v, TRun, card+".", "", func(_ string, r *Run) bool { return fn(r) })
}

// LastRun is the newest run of a card, current or not.
func LastRun(v View, c *Card) *Run {
	if c.Runs == 0 {
		return nil
	}
	r := GetRun(v, RunID(c.ID, c.Runs))
	if r == nil && c.Skipped > 0 { // a recovery came between
		k, _ := v.Last(TRun, c.ID+".")
		r = read[Run](v, TRun, k)
	}
	return r
}

// lastN is the number of a card's newest run, 0 without one.
func lastN(v View, c *Card) uint64 {
	if c.Skipped == 0 {
		return c.Runs
	}
	if r := LastRun(v, c); r != nil {
		return r.N
	}
	return 0
}

// GetHeld reads the row of a session that is not gone, by its run id.
func GetHeld(v View, run string) *Held { return read[Held](v, THeld, run) }

// EachHeld reads the sessions not gone, of one card (or of all when card is "").
func EachHeld(v View, card string, fn func(*Held) bool) {
	prefix := ""
	if card != "" {
		prefix = card + "."
	}
	scan(v, THeld, prefix, "", func(_ string, h *Held) bool { return fn(h) })
}

// GetSlot reads the lineage of a card's slot.
func GetSlot(v View, card, slot string) *SlotRec { return read[SlotRec](v, TSlot, SlotKey(card, slot)) }

// GetEvent reads an event by its stored key.
func GetEvent(v View, key string) *Event { return read[Event](v, TEvent, key) }

// EachEvent reads events from a stored key on, oldest first.
func EachEvent(v View, from string, fn func(key string, e *Event) bool) {
	scan(v, TEvent, "", from, fn)
}

// CardEvents walks a card's events, newest first.
func CardEvents(v View, c *Card, fn func(*Event) bool) {
	for key := c.LastEvent; key != ""; {
		e := GetEvent(v, key)
		if e == nil || !fn(e) {
			return
		}
		key = e.Prev
	}
}

// EachComment reads a card's comments, oldest first.
func EachComment(v View, c *Card, fn func(*Comment) bool) {
	var list []*Comment
	for key := c.LastSaid; key != ""; {
		e := GetEvent(v, key)
		if e == nil {
			break
		}
		list = append(list, e.comment())
		key = e.SaidBefore
	}
	for _, m := range slices.Backward(list) {
		if !fn(m) {
			return
		}
	}
}

// Parents are the ids of the cards that a card waits for, in order.
func Parents(v View, card string) []string { return tails(v, TLink, card+"/") }

// Children are the ids of the cards that wait for a card, in order.
func Children(v View, card string) []string { return tails(v, TChild, card+"/") }

func tails(v View, t Table, prefix string) (ids []string) {
	v.Scan(t, prefix, "", func(key string, _ []byte) bool {
		ids = append(ids, key[len(prefix):])
		return true
	})
	return ids
}

// GetOrder reads an order.
func GetOrder(v View, node, id string) *Order { return read[Order](v, TOrder, OrderKey(node, id)) }

// EachOrder reads a node's orders, oldest first (of all nodes when node is "").
func EachOrder(v View, node string, fn func(*Order) bool) {
	prefix := ""
	if node != "" {
		prefix = node + "/"
	}
	scan(v, TOrder, prefix, "", func(_ string, o *Order) bool { return fn(o) })
}

// GetNode reads a node by id.
func GetNode(v View, id string) *Node { return read[Node](v, TNode, id) }

// EachNode reads the node list in order of ids.
func EachNode(v View, fn func(*Node) bool) {
	scan(v, TNode, "", "", func(_ string, n *Node) bool { return fn(n) })
}

// FindNode finds a node by id, unambiguous id prefix, or name.
func FindNode(v View, ref string) (*Node, *Error) {
	if n := GetNode(v, ref); n != nil {
		return n, nil
	}
	var found []*Node
	EachNode(v, func(n *Node) bool {
		if n.Name == ref || len(ref) >= 4 && len(n.ID) > len(ref) && n.ID[:len(ref)] == ref {
			found = append(found, n)
		}
		return true
	})
	switch len(found) {
	case 1:
		return found[0], nil
	case 0:
		return nil, Errorf(NotFound, "no node %q in this fleet", ref).WithHint("see: muster node list")
	}
	return nil, Errorf(Invalid, "%q means %d nodes", ref, len(found)).WithHint("give more of the id; see: muster node list")
}

// GetToken reads a token by the hash of its secret.
func GetToken(v View, id string) *Token { return read[Token](v, TToken, id) }

// EachToken reads all tokens.
func EachToken(v View, fn func(*Token) bool) {
	scan(v, TToken, "", "", func(_ string, t *Token) bool { return fn(t) })
}

// GetDone reads the stored outcome of a request id.
func GetDone(v View, id string) *Done { return read[Done](v, TRequest, id) }

// GetOutbox reads the last number taken of a journal.
func GetOutbox(v View, journal string) *Outbox { return read[Outbox](v, TOutbox, journal) }

// EachDue reads the due times up to a moment (ms), earliest first.
func EachDue(v View, until int64, fn func(key string, d *Due) bool) {
	scan(v, TDue, "", "", func(key string, d *Due) bool { return d.At <= until && fn(key, d) })
}

// NextDue is the earliest due time, or 0.
func NextDue(v View) (at int64) {
	scan(v, TDue, "", "", func(_ string, d *Due) bool { at = d.At; return false })
	return at
}

// DecodeOrder reads an order as it is stored, nil when it is broken: what is
// pushed to a node is the stored form.
func DecodeOrder(b []byte) *Order {
	o := new(Order)
	if unmarshal(b, o) != nil {
		return nil
	}
	return o
}

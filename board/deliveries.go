package board

import (
	"encoding/json"
	"strings"
)

// OrderDeliver asks a node to type a text into a session that it has (M-17).
const OrderDeliver = "deliver"

// Bounds of deliveries (M-37).
const (
	maxDeliveries = 100      // of one slot; older ones leave and are counted
	maxMessage    = 16 << 10 // bytes of a person's words
	maxPromptMail = 8 << 10  // bytes that a prompt tells of them
	maxPromptEach = 2 << 10
	maxPromptList = 30
	maxAnswer     = 20 // addresses that an answer names
)

// EachDelivery reads what is to be told to the sessions of a card (of all cards
// when card is ""), oldest first within a slot. Requests not answered are among
// them: see [OpenAsks].
func EachDelivery(v View, card string, fn func(*Delivery) bool) {
	prefix := ""
	if card != "" {
		prefix = card + "/"
	}
	scan(v, TDelivery, prefix, "", func(_ string, d *Delivery) bool { return fn(d) })
}

// OpenAsks are the requests made of a card's sessions and not yet answered
// (NOT-10): they are no notices, and reading does not end them.
func OpenAsks(v View, card string) (list []*Delivery) {
	EachDelivery(v, card, func(d *Delivery) bool {
		if d.Kind == DeliverAsk {
			list = append(list, d)
		}
		return true
	})
	return list
}

// deliver hands a text to a session: every send goes through here (NOT-06). It
// says why it cannot be told now: then it comes with the next run's prompt.
func (t *tx) deliver(h *Held, b *Board, d *Delivery) (why string) {
	d.Card, d.Slot, d.Run, d.Node = h.Card, h.Slot, h.Run, h.Node
	switch {
	case h.Stopping:
		why = "its session is being stopped"
	case h.Surface != "pane":
		why = "a headless session cannot be typed at"
	}
	t.putDelivery(b, d, why)
	return why
}

// putDelivery stores a delivery, with an order for its node when why is "".
func (t *tx) putDelivery(b *Board, d *Delivery, why string) {
	key := DeliveryKey(d.Card, d.Slot, d.Event, d.Kind)
	if was := read[Delivery](t, TDelivery, key); was != nil {
		if d.Kind != DeliverNotice && !strings.HasSuffix(was.Text, d.Text) {
			d.Text = clip(was.Text+"\n\n"+d.Text, maxMessage)
		}
		t.dropDelivery(key, was)
	}
	d.From, d.FromName, d.At = b.Address(), orElse(b.Label, b.Slug)+" board", t.env.Now
	d.Queue = d.Kind != DeliverNotice
	d.State, d.Error = DeliveryWaiting, why
	box := GetMailbox(t, SlotKey(d.Card, d.Slot))
	if box.Count >= maxDeliveries {
		t.dropOldest(d)
		box = GetMailbox(t, SlotKey(d.Card, d.Slot))
		box.Lost++
	}
	box.Count++
	t.put(TMailbox, box.Who, box)
	if why == "" {
		o := &Order{ID: t.orderID(), Node: d.Node, Kind: OrderDeliver, State: OrderPending, Run: d.Run, Card: d.Card, Slot: d.Slot, Seq: t.env.Seq, At: t.env.Now,
			Spec: jsonOf(DeliverSpec{Key: d.Key, From: d.From, FromName: d.FromName, Text: d.Text, Queue: d.Queue})}
		t.putOrder(o)
		d.Order, d.State = o.ID, DeliveryOrdered
	}
	t.put(TDelivery, key, d)
}

// DeliverSpec is what a node needs to type a text into a session (Order.Spec).
type DeliverSpec struct {
	Key      string `json:"key"` // a receiver tells a repeat by it
	From     string `json:"from"`
	FromName string `json:"from_name"`
	Text     string `json:"text"`
	Queue    bool   `json:"queue,omitempty"`
}

func (t *tx) dropOldest(d *Delivery) {
	first, old := "", (*Delivery)(nil)
	scan(t, TDelivery, SlotKey(d.Card, d.Slot)+"/", "", func(k string, x *Delivery) bool { first, old = k, x; return false })
	if old != nil {
		t.dropDelivery(first, old)
	}
}

// dropDelivery takes a delivery away, with its order.
func (t *tx) dropDelivery(key string, d *Delivery) {
	t.del(TDelivery, key)
	if d.Order != "" {
		t.del(TOrder, OrderKey(d.Node, d.Order))
	}
	box := GetMailbox(t, SlotKey(d.Card, d.Slot))
	if box.Count--; box.Count > 0 || box.Lost > 0 {
		t.put(TMailbox, box.Who, box)
	} else {
		t.del(TMailbox, box.Who)
	}
}

// delivered is a node's word about a delivery order. What cannot be proved to
// have been typed is shown as unknown, and not typed again (M-17).
func delivered(t *tx) (any, *Error) {
	a, err := args[Delivered](t)
	if err != nil {
		return nil, err
	}
	o := GetOrder(t, t.req.Actor.Node, a.Order)
	if o == nil || o.Kind != OrderDeliver {
		return nil, nil // it left the state: said before, or nobody waits for it any more
	}
	key, d := t.deliveryOf(o)
	if d == nil {
		t.delOrder(o)
		return nil, nil
	}
	switch a.State {
	case "delivered":
		if d.Kind != DeliverAsk {
			t.dropDelivery(key, d)
			return nil, nil
		}
		d.State, d.Error = DeliveryAsked, ""
	case "undelivered":
		d.State, d.Error = DeliveryWaiting, clip(orElse(a.Error, "its node could not tell it"), 300)
	case "unknown":
		d.State, d.Error = DeliveryUnknown, clip(orElse(a.Error, "its node stopped while it was typed"), 300)
	default:
		return nil, Errorf(Invalid, "a delivery is delivered, undelivered or unknown, not %q", clip(a.State, 40))
	}
	t.delOrder(o)
	d.Order = ""
	t.put(TDelivery, key, d)
	return nil, nil
}

func (t *tx) deliveryOf(o *Order) (key string, found *Delivery) {
	scan(t, TDelivery, SlotKey(o.Card, o.Slot)+"/", "", func(k string, d *Delivery) bool {
		if d.Order == o.ID {
			key, found = k, d
		}
		return found == nil
	})
	return key, found
}

// send is a person's words for a session, or for the next one of its card.
func send(t *tx) (any, *Error) {
	a, err := args[Send](t)
	if err != nil {
		return nil, err
	}
	switch text := strings.TrimSpace(a.Text); {
	case t.req.Actor.Kind != ActorPerson:
		return nil, Errorf(Refused, "people send words to sessions; a session comments on its card")
	case text == "":
		return nil, Errorf(Invalid, "send what? give a text")
	case len(text) > maxMessage:
		return nil, Errorf(Exhausted, "a message of %d bytes; the bound is %d", len(text), maxMessage).WithHint("keep large text in files")
	}
	b, c, h, err := t.addressee(a.To)
	if err != nil {
		return nil, err
	}
	if Finished(c.Stored) {
		return nil, Errorf(Refused, "card %s is %s: no session of it will read that", c.ID, c.Status).WithHint("comment on it, or: muster reopen %s", c.ID)
	}
	ev := t.event(c, Event{Kind: "message", Run: heldRun(h), Payload: object("text", a.Text)})
	t.putCard(c)
	d := &Delivery{Key: noticeID(DeliverMessage, c.ID, ev.ID), Kind: DeliverMessage, About: c.ID, Event: ev.ID, Text: t.req.Actor.Name + ": " + strings.TrimSpace(a.Text)}
	why := "no session of it lives"
	if h != nil {
		why = t.deliver(h, b, d)
	} else {
		d.Card, d.Slot = c.ID, t.lastSlot(c)
		t.putDelivery(b, d, why)
	}
	out := map[string]any{"id": c.ID, "run": heldRun(h), "key": d.Key, "state": d.State}
	setIf(out, "error", why)
	return out, nil
}

func heldRun(h *Held) string {
	if h == nil {
		return ""
	}
	return h.Run
}

// addressee finds the session that a run id or a card id means; of a card the
// one of its current run, else the newest that is not gone, else none.
func (t *tx) addressee(to string) (*Board, *Card, *Held, *Error) {
	if r := GetRun(t, to); r != nil {
		b, c, err := t.card(r.Card)
		if err != nil {
			return nil, nil, nil, err
		}
		h := GetHeld(t, r.ID)
		if h == nil {
			return nil, nil, nil, Errorf(Refused, "the session of run %s is gone", r.ID).WithHint("for the card's next session: muster send %s TEXT", c.ID)
		}
		return b, c, h, nil
	}
	b, c, err := t.card(to)
	if err != nil {
		return nil, nil, nil, err
	}
	h := GetHeld(t, c.Run)
	if h == nil {
		EachHeld(t, c.ID, func(x *Held) bool { h = x; return true })
	}
	return b, c, h, nil
}

// lastSlot is the slot whose next session is meant when none lives.
func (t *tx) lastSlot(c *Card) string {
	if r := LastRun(t, c); r != nil {
		return r.Slot
	}
	return "worker"
}

// toActor is send_to_actor: words of the workflow for the session of the card's
// run; without one they are nobody's (NOT-05).
func (st *step) toActor(kind, text string) {
	if st.run == nil || strings.TrimSpace(text) == "" {
		return
	}
	h := GetHeld(st.t, st.run.ID)
	if h == nil && st.claim != nil && st.claim.run == st.run {
		h = st.t.holdRow(st.run)
	}
	if h == nil {
		return
	}
	st.touched = true
	d := &Delivery{Key: noticeID(kind, st.c.ID, st.ev.ID), Kind: kind, About: st.c.ID, Event: st.ev.ID, Text: clip(text, maxMessage)}
	why := st.t.deliver(h, st.b, d)
	st.told = append(st.told, Told{Card: st.c.ID, Kind: kind, Address: h.Run, Error: why})
}

// mailGone is what becomes of deliveries whose session is gone: nobody types
// them any more, the next run's prompt tells them.
func (t *tx) mailGone(r *Run) {
	t.eachMail(r.Card, r.Slot, func(key string, d *Delivery) {
		if d.Run != r.ID || d.State != DeliveryOrdered && d.State != DeliveryAsked {
			return
		}
		if d.Order != "" {
			t.del(TOrder, OrderKey(d.Node, d.Order))
		}
		d.Order, d.State, d.Error = "", DeliveryWaiting, "its session ended before"
		t.put(TDelivery, key, d)
	})
}

// mailTaken takes away what the prompt of a launched run has told: all that was
// there when it was claimed.
func (t *tx) mailTaken(r *Run) {
	last := EventKey(r.Epoch, 0xffff)
	box := GetMailbox(t, SlotKey(r.Card, r.Slot))
	if box.Count == 0 && box.Lost == 0 {
		return
	}
	if box.Lost = 0; box.Count > 0 {
		t.put(TMailbox, box.Who, box)
	} else {
		t.del(TMailbox, box.Who)
	}
	t.eachMail(r.Card, r.Slot, func(key string, d *Delivery) {
		if d.Event <= last {
			t.dropDelivery(key, d)
		}
	})
}

// eachMail walks a slot's deliveries, which fn may change.
func (t *tx) eachMail(card, slot string, fn func(key string, d *Delivery)) {
	type row struct {
		key string
		d   *Delivery
	}
	var rows []row
	scan(t, TDelivery, SlotKey(card, slot)+"/", "", func(k string, d *Delivery) bool {
		rows = append(rows, row{k, d})
		return true
	})
	for _, r := range rows {
		fn(r.key, r.d)
	}
}

// answered ends the requests made of a session: it has said something on its card.
func (st *step) answered() {
	a := st.f.Actor
	if a.Kind != ActorRun || st.run == nil || st.run.ID != a.Run {
		return
	}
	st.t.eachMail(st.c.ID, st.run.Slot, func(key string, d *Delivery) {
		if d.Kind == DeliverAsk && d.Event < st.ev.ID {
			st.t.dropDelivery(key, d)
		}
	})
}

// mailEnds lets go of what was to be told to the sessions of a card that is
// finished (M-37). People's words that nobody read stand in an event.
func (st *step) mailEnds() {
	if !Finished(st.c.Stored) {
		return
	}
	n := 0
	var slots []string
	EachDelivery(st.t, st.c.ID, func(d *Delivery) bool {
		if !contains(slots, d.Slot) {
			slots = append(slots, d.Slot)
		}
		return true
	})
	for _, slot := range slots {
		st.t.eachMail(st.c.ID, slot, func(key string, d *Delivery) {
			if d.Kind == DeliverMessage {
				n++
			}
			st.t.dropDelivery(key, d)
		})
		st.t.del(TMailbox, SlotKey(st.c.ID, slot))
	}
	if n > 0 {
		st.t.event(st.c, Event{Kind: "undelivered", Actor: Platform(), Payload: object("messages", n)})
	}
}

// fired is the answer to an event: where the card went, and whom it was told to, as far as these are few.
type fired struct {
	From           string `json:"from"`
	ID             string `json:"id"`
	Notified       []Told `json:"notified,omitempty"`
	NotifiedCount  int    `json:"notified_count,omitempty"` // when the list is not whole
	To             string `json:"to"`
	Undelivered    []Told `json:"undelivered,omitempty"`
	UndeliverCount int    `json:"undelivered_count,omitempty"`
}

func (m *move) answer(card string) *fired {
	var notified, undelivered []Told
	for _, x := range m.Told {
		if x.Error == "" {
			notified = append(notified, x)
		} else {
			undelivered = append(undelivered, x)
		}
	}
	out := &fired{From: m.From, ID: card, To: m.To}
	out.Notified, out.NotifiedCount = few(notified)
	out.Undelivered, out.UndeliverCount = few(undelivered)
	return out
}

// few is the first of a list, and how long it is when that is not all.
func few(list []Told) ([]Told, int) {
	if len(list) > maxAnswer {
		return list[:maxAnswer], len(list)
	}
	return list, 0
}

// DeliverSpecOf reads what a delivery order asks for, nil when it is none.
func DeliverSpecOf(o *Order) *DeliverSpec {
	s := new(DeliverSpec)
	if o.Kind != OrderDeliver || json.Unmarshal(o.Spec, s) != nil {
		return nil
	}
	return s
}

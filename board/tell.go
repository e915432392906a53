package board

import (
	"encoding/json"
	"fmt"
)

// telling gathers whom one event is told to.
type telling struct {
	t       *tx
	b       *Board
	c       *Card
	ev      *Event
	said    Actor           // who did it is not told
	own     []*Sub          // what people said about this card
	muted   map[string]bool // of them, who said --off
	people  []Subscription
	runs    []*Held
	roles   []string // of runs
	seen    map[string]bool
	leftOut int
}

// tookPart subscribes a person who commented on a card, or reviewed it.
func (st *step) tookPart() {
	switch {
	case st.ev.Said:
		st.t.subscribed(st.c, st.f.Actor, "comment")
	case st.stored == "review":
		st.t.subscribed(st.c, st.f.Actor, "review")
	}
}

// notify tells an event to whom the workflow names: after everything else the
// firing does, so that what is told is what the card has become (NOT-09).
func (st *step) notify() {
	if len(st.whom) == 0 {
		return
	}
	x := &telling{t: st.t, b: st.b, c: st.c, ev: st.ev, said: st.f.Actor, seen: map[string]bool{}}
	if st.claim != nil {
		x.seen[st.claim.run.ID] = true // its prompt tells it
	}
	eachSub(x.t, x.c.ID, func(s *Sub) bool {
		if x.own = append(x.own, s); s.Off {
			if x.muted == nil {
				x.muted = map[string]bool{}
			}
			x.muted[s.Who] = true
		}
		return true
	})
	for _, whom := range st.whom {
		switch whom {
		case "subscribers":
			x.subscribers()
		case "creator":
			x.creator(x.c, RoleCreator)
		case "dependants":
			x.dependants()
		case "managers":
			x.person(Managers, RoleManagers)
		}
	}
	st.told = append(st.told, x.tell()...)
}

func (x *telling) subscribers() {
	for _, s := range x.own {
		x.sub(s, RoleSubscriber)
	}
	x.creator(x.c, RoleCreator)
	x.subs(BoardSub(x.b.Slug), RoleBoard)
	EachHeld(x.t, x.c.ID, func(h *Held) bool { x.session(h, RoleWorker); return true })
	for _, child := range firstOf(Children(x.t, x.c.ID), maxTell) {
		EachHeld(x.t, child, func(h *Held) bool { x.session(h, RoleDependency); return true })
	}
}

// dependants are the people and sessions of the cards that wait for this one.
func (x *telling) dependants() {
	for _, id := range firstOf(Children(x.t, x.c.ID), maxTell) {
		child := GetCard(x.t, id)
		if child == nil {
			continue
		}
		off := GetSub(x.t, id, child.Creator.Address())
		if off == nil || !off.Off {
			x.creator(child, RoleDependant)
		}
		x.subs(id, RoleDependant)
		EachHeld(x.t, id, func(h *Held) bool { x.session(h, RoleDependency); return true })
	}
}

func (x *telling) subs(on, role string) {
	eachSub(x.t, on, func(s *Sub) bool { x.sub(s, role); return true })
}

func (x *telling) sub(s *Sub, role string) {
	if !s.Off && (len(s.Kinds) == 0 || contains(s.Kinds, x.ev.Kind)) {
		x.person(s.Who, role)
	}
}

// creator tells who filed a card: a person, or the session of a run.
func (x *telling) creator(c *Card, role string) {
	switch c.Creator.Kind {
	case ActorPerson:
		x.person(c.Creator.Address(), role)
	case ActorRun:
		if h := GetHeld(x.t, c.Creator.Run); h != nil {
			x.session(h, role)
		}
	}
}

func (x *telling) person(who, role string) {
	switch {
	case who == "" || x.seen[who] || x.muted[who] || who == x.said.Address():
	case len(x.seen) >= maxTold:
		x.leftOut++
	default:
		x.seen[who] = true
		x.people = append(x.people, Subscription{Card: x.c.ID, Address: who, Role: role})
	}
}

func (x *telling) session(h *Held, role string) {
	switch {
	case x.seen[h.Run] || x.said.Run == h.Run:
	case h.Card == x.c.ID && Finished(x.c.Stored): // its own card is done: nobody reads on
	case len(x.seen) >= maxTold:
		x.leftOut++
	default:
		x.seen[h.Run] = true
		x.runs, x.roles = append(x.runs, h), append(x.roles, role)
	}
}

func (x *telling) tell() (told []Told) {
	text := ""
	if len(x.people)+len(x.runs) > 0 { // an event is most often told to nobody
		text = x.text()
	}
	for _, p := range x.people {
		x.t.putNotice(&Notice{To: p.Address, Role: p.Role, Kind: x.ev.Kind, Card: x.c.ID, Event: x.ev.ID, Board: x.b.Slug,
			By: x.ev.Actor.Name, Title: x.c.Title, Text: clip(text, maxNotice), At: x.t.env.Now})
		told = append(told, Told{Card: x.c.ID, Kind: x.ev.Kind, Address: p.Address})
	}
	for _, h := range x.runs {
		d := &Delivery{Key: noticeID(DeliverNotice, x.c.ID, x.ev.ID), Kind: DeliverNotice, About: x.c.ID, Event: x.ev.ID, Text: x.automated(text)}
		why := x.t.deliver(h, x.b, d)
		told = append(told, Told{Card: x.c.ID, Kind: x.ev.Kind, Address: h.Run, Error: why})
	}
	if x.leftOut > 0 {
		told = append(told, Told{Card: x.c.ID, Kind: x.ev.Kind, Error: fmt.Sprintf("%d more are not told: the bound is %d", x.leftOut, maxTold)})
	}
	return told
}

// text is what happened, in a sentence or two.
func (x *telling) text() string {
	what := x.ev.Kind
	if x.ev.From != x.ev.To && x.ev.To != "" {
		what = fmt.Sprintf("%s: %s -> %s", x.ev.Kind, x.ev.From, x.ev.To)
	}
	words := payloadWords(x.ev.Payload)
	if x.c.Stored == "blocked" && x.ev.From != x.ev.To { // why it is: not only the last failure
		words = orElse(x.c.BlockReason, words)
	}
	if words != "" {
		what += "\n" + words
	}
	return what
}

// payloadWords is what was said with an event.
func payloadWords(raw []byte) string {
	var p map[string]any
	if len(raw) == 0 || json.Unmarshal(raw, &p) != nil {
		return ""
	}
	for _, key := range []string{"text", "summary", "reason", "why", "error", "assignee", "title"} {
		if s := payloadText(p, key); s != "" {
			return s
		}
	}
	return ""
}

// automated marks a notice as what it is, so that no session answers it (NOT-03).
func (x *telling) automated(text string) string {
	return fmt.Sprintf("[automated notice of board %s; nobody reads a reply]\nCard %s (%s), by %s: %s\nSee: muster card show %s",
		x.b.Slug, x.c.ID, x.c.Title, x.ev.Actor.Name, clip(text, maxContextComment), x.c.ID)
}

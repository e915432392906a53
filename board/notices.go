package board

import (
	"slices"
	"strings"
)

// Bounds of notices.
const (
	maxSubs      = 200  // people a card has
	maxBoardSubs = 100  // people a board has
	maxMailbox   = 1000 // notices that lie unread; older ones are dropped and counted
	maxTold      = 300  // addresses one event is told to
	maxTell      = 100  // waiting cards whose people and sessions one event is told to
	maxNotice    = 500  // bytes of text
	ackPerStep   = 400  // notices taken away by one acknowledgement
)

// Managers is the mailbox of everybody who is a manager; no person has that name.
const Managers = "@managers"

// Roles in which somebody is told of a change.
const (
	RoleSubscriber = "subscriber"
	RoleCreator    = "creator"
	RoleDependant  = "dependant"
	RoleManagers   = "manager"
	RoleBoard      = "board"
	RoleWorker     = "worker"     // a session, of its own card
	RoleDependency = "dependency" // a session, of a card that its own waits for
)

// Subscription is one address that is told of a card's changes (NOT-01).
type Subscription struct {
	Card    string `json:"card"`
	Address string `json:"address"` // name of a person, run id of a session
	Role    string `json:"role"`
}

// Told is one address that an event was told to, or that it could not be told to (NOT-11).
type Told struct {
	Card    string `json:"card"`
	Kind    string `json:"kind"`
	Address string `json:"address"`
	Error   string `json:"error,omitempty"`
}

// Address is the address of a person; "" of everybody else. It is the name alone, without the machine that the person
// spoke at: who types on two machines of a fleet is one person, with one inbox. What an event says of its sender, and what
// that may do, goes by name@node.
func (a Actor) Address() string {
	if a.Kind != ActorPerson {
		return ""
	}
	name := a.Name
	if i := strings.LastIndexByte(name, '@'); i > 0 {
		name = name[:i]
	}
	return strings.ReplaceAll(name, "/", "_")
}

// BoardSub is what a subscription to a whole board is on.
func BoardSub(slug string) string { return "board:" + slug }

// SubKey, NoticeKey, DeliveryKey and WebhookKey are stored keys.
func SubKey(on, who string) string { return on + "/" + who }

// NoticeKey is the key of a person's notice: one an event.
func NoticeKey(who, event string) string { return who + "/" + event }

// DeliveryKey is the key of a delivery to a slot: one a kind and event.
func DeliveryKey(card, slot, event, kind string) string {
	return SlotKey(card, slot) + "/" + event + "/" + kind
}

// WebhookKey is the key of a board's webhook.
func WebhookKey(slug, id string) string { return slug + "/" + id }

// GetSub reads a person's word about a card or a board.
func GetSub(v View, on, who string) *Sub { return read[Sub](v, TSub, SubKey(on, who)) }

func eachSub(v View, on string, fn func(*Sub) bool) {
	scan(v, TSub, on+"/", "", func(_ string, s *Sub) bool { return fn(s) })
}

// GetMailbox reads how far somebody has read.
func GetMailbox(v View, who string) *Mailbox {
	if m := read[Mailbox](v, TMailbox, who); m != nil {
		return m
	}
	return &Mailbox{Who: who}
}

// Inbox reads the notices of a person that it has not acknowledged, oldest
// first, with those for all managers when it is one.
func Inbox(v View, who string, manager bool) (list []*Notice) {
	box := GetMailbox(v, who)
	add := func(of, read string) {
		scan(v, TNotice, of+"/", NoticeKey(of, read), func(key string, n *Notice) bool {
			if n.Event > read {
				list = append(list, n)
			}
			return len(list) < 2*maxMailbox
		})
	}
	add(who, box.Read)
	if manager {
		add(Managers, box.ReadManagers)
		slices.SortStableFunc(list, func(a, b *Notice) int { return strings.Compare(a.Event, b.Event) })
		list = slices.CompactFunc(list, func(a, b *Notice) bool { return a.Event == b.Event }) // told twice: as subscriber and as manager
	}
	return list
}

// ID is the identity of a notice (NOT-10).
func (n *Notice) ID() string { return noticeID(n.Kind, n.Card, n.Event) }

func noticeID(kind, card, event string) string { return kind + "-" + card + "-" + EventID(event) }

// Subscribers are the addresses that are told of a card's changes: who filed it,
// people who subscribed or commented or reviewed, its own sessions, and those of
// the cards that wait for it (NOT-01). A session is subscribed from its claim
// until it is gone, without a row of its own: it can be neither late nor stale.
func Subscribers(v View, c *Card) []Subscription {
	var list []Subscription
	muted := map[string]bool{}
	seen := map[string]bool{}
	add := func(address, role string) {
		if address != "" && !muted[address] && !seen[address] {
			seen[address] = true
			list = append(list, Subscription{Card: c.ID, Address: address, Role: role})
		}
	}
	eachSub(v, c.ID, func(s *Sub) bool {
		if s.Off {
			muted[s.Who] = true
		} else {
			add(s.Who, RoleSubscriber)
		}
		return true
	})
	add(c.Creator.Address(), RoleCreator)
	EachHeld(v, c.ID, func(h *Held) bool { add(h.Run, RoleWorker); return true })
	for _, child := range firstOf(Children(v, c.ID), maxTell) {
		EachHeld(v, child, func(h *Held) bool { add(h.Run, RoleDependency); return true })
	}
	return list
}

func firstOf[T any](list []T, n int) []T { return list[:min(len(list), n)] }

// subscribe notes a person's word about a card or a board.
func subscribe(t *tx) (any, *Error) {
	a, err := args[Subscribe](t)
	if err != nil {
		return nil, err
	}
	who := t.req.Actor.Address()
	if who == "" {
		return nil, Errorf(Refused, "people subscribe; a session is told of its own card as long as it runs")
	}
	if len(a.Kinds) > 32 || slices.ContainsFunc(a.Kinds, func(k string) bool { return k == "" || len(k) > 64 }) {
		return nil, Errorf(Invalid, "at most 32 kinds of events, each a name")
	}
	on, bound := "", maxSubs
	if a.Card != "" {
		_, c, err := t.card(a.Card)
		if err != nil {
			return nil, err
		}
		on = c.ID
	} else {
		b, err := t.board(a.Board)
		if err != nil {
			return nil, err
		}
		on, bound = BoardSub(b.Slug), maxBoardSubs
	}
	if GetSub(t, on, who) == nil && t.countSubs(on) >= bound {
		return nil, Errorf(Exhausted, "%s has %d subscribers already", strings.TrimPrefix(on, "board:"), bound)
	}
	t.put(TSub, SubKey(on, who), &Sub{On: on, Who: who, Kinds: a.Kinds, Off: a.Off, How: "said", At: t.env.Now})
	return map[string]any{"on": on, "who": who, "off": a.Off}, nil
}

func (t *tx) countSubs(on string) (n int) {
	t.Scan(TSub, on+"/", "", func(string, []byte) bool { n++; return true })
	return n
}

// subscribed notes that somebody has a part in a card by what it did; its own
// earlier word, on or off, stands.
func (t *tx) subscribed(c *Card, a Actor, how string) {
	who := a.Address()
	if who == "" || who == c.Creator.Address() || t.Has(TSub, SubKey(c.ID, who)) || t.countSubs(c.ID) >= maxSubs {
		return
	}
	t.put(TSub, SubKey(c.ID, who), &Sub{On: c.ID, Who: who, How: how, At: t.env.Now})
}

// inboxAck moves the sender's cursor, and takes away what it has read.
func inboxAck(t *tx) (any, *Error) {
	a, err := args[InboxAck](t)
	if err != nil {
		return nil, err
	}
	who := t.req.Actor.Address()
	if who == "" {
		return nil, Errorf(Refused, "an inbox is a person's")
	}
	key, perr := ParseEventID(a.UpTo)
	if perr != nil {
		return nil, perr.(*Error)
	}
	if key > EventKey(t.env.Seq, 0) {
		return nil, Errorf(Invalid, "event %s has not happened yet", a.UpTo)
	}
	box := GetMailbox(t, who)
	box.Read, box.ReadManagers, box.Lost = max(box.Read, key), max(box.ReadManagers, key), 0
	var old []string
	t.Scan(TNotice, who+"/", "", func(k string, _ []byte) bool {
		if k <= NoticeKey(who, box.Read) {
			old = append(old, k)
		}
		return k <= NoticeKey(who, box.Read) && len(old) < ackPerStep
	})
	for _, k := range old {
		t.del(TNotice, k)
	}
	box.Count = max(box.Count-int64(len(old)), 0)
	t.put(TMailbox, who, box)
	return map[string]any{"who": who, "read": a.UpTo, "taken": len(old)}, nil
}

// putNotice puts a notice into a mailbox; the oldest one leaves a full one.
func (t *tx) putNotice(n *Notice) {
	key := NoticeKey(n.To, n.Event)
	if t.Has(TNotice, key) {
		return
	}
	box := GetMailbox(t, n.To)
	if box.Count >= maxMailbox {
		first := ""
		t.Scan(TNotice, n.To+"/", "", func(k string, _ []byte) bool { first = k; return false })
		if t.del(TNotice, first); n.To == Managers || first > NoticeKey(n.To, box.Read) {
			box.Lost++
		}
		box.Count--
	}
	box.Count++
	t.put(TNotice, key, n)
	t.put(TMailbox, n.To, box)
}

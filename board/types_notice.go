package board

// Sub is a person's word about whether changes of a card, or of a whole board,
// are told to it (NOT-01). Who files a card is subscribed without a row, and a
// session as long as it is not gone: see [Subscribers].
type Sub struct {
	On    string   // card id, or "board:" and a slug
	Who   string   // address of a person
	Kinds []string // of events; empty: all that are told at all
	Off   bool     // said with --off: nothing subscribes this person again but its own word
	How   string   // said, comment, review
	At    int64
	unknown
}

func (s *Sub) fields(w *wire) {
	str(w, 1, &s.On)
	str(w, 2, &s.Who)
	w.strs(3, &s.Kinds)
	w.bool(4, &s.Off)
	str(w, 5, &s.How)
	w.int(6, &s.At)
}

// Notice is one change told to one person. Its identity is (kind, card, event):
// a receiver tells a repeat by it (NOT-10).
type Notice struct {
	To, Role    string // address; why it is told: subscriber, creator, dependant, manager, board
	Kind, Card  string
	Event       string // stored key
	Board, By   string
	Title, Text string
	At          int64
	unknown
}

func (n *Notice) fields(w *wire) {
	str(w, 1, &n.To)
	str(w, 2, &n.Role)
	str(w, 3, &n.Kind)
	str(w, 4, &n.Card)
	str(w, 5, &n.Event)
	str(w, 6, &n.Board)
	str(w, 7, &n.By)
	str(w, 8, &n.Title)
	str(w, 9, &n.Text)
	w.int(10, &n.At)
}

// Mailbox is how far somebody has read, and how much lies there: of a person by
// its address, of a slot's sessions by [SlotKey].
type Mailbox struct {
	Who          string
	Read         string // key of the last event that was acknowledged (M-21)
	ReadManagers string // the same for what is told to all managers
	Count, Lost  int64  // notices that lie there; that were dropped unread because there were too many
	unknown
}

func (m *Mailbox) fields(w *wire) {
	str(w, 1, &m.Who)
	str(w, 2, &m.Read)
	str(w, 3, &m.ReadManagers)
	w.int(4, &m.Count)
	w.int(5, &m.Lost)
}

// Kinds of deliveries.
const (
	DeliverNotice  = "notice"  // a change of a card
	DeliverMessage = "message" // somebody's words: send_to_actor, or `muster send`
	DeliverAsk     = "ask"     // a request; it is answered by the next word of the session
)

// States of deliveries.
const (
	DeliveryWaiting = "waiting" // for the next run's prompt
	DeliveryOrdered = "ordered" // its node is asked to type it
	DeliveryUnknown = "unknown" // it may have been typed: never again (M-17)
	DeliveryAsked   = "asked"   // a request that was typed and is not answered
)

// Delivery is one text for the sessions of a card's slot. While its session has
// a pane it is an order of that node as well; what a session cannot be told
// stands in the next run's prompt.
type Delivery struct {
	Key                string // dedupe key, without a time: kind, card, event (NOT-04/M-17)
	Card, Slot         string // whose session it is for
	Run, Node, Order   string // of the session; Order while one stands
	Kind, State, Error string
	About, Event       string // card and stored key of the event it tells of
	From, FromName     string // the board, as the sender of its notices (NOT-03)
	Text               string
	Queue              bool // it may wait for the end of a turn; a notice does not (NOT-06)
	At                 int64
	unknown
}

func (d *Delivery) fields(w *wire) {
	str(w, 1, &d.Key)
	str(w, 2, &d.Card)
	str(w, 3, &d.Slot)
	str(w, 4, &d.Run)
	str(w, 5, &d.Node)
	str(w, 6, &d.Order)
	str(w, 7, &d.Kind)
	str(w, 8, &d.State)
	str(w, 9, &d.Error)
	str(w, 10, &d.About)
	str(w, 11, &d.Event)
	str(w, 12, &d.From)
	str(w, 13, &d.FromName)
	str(w, 14, &d.Text)
	w.bool(15, &d.Queue)
	w.int(16, &d.At)
}

// Webhook is an address outside that a board's events are sent to (M-21). The
// secret it is signed with is a file on the nodes; the state has its name only.
type Webhook struct {
	Board, ID string // ID is made of the address
	URL       string
	Secret    string   // absolute path, or a name in the folder `secrets` of a node's data
	Kinds     []string // of events; empty: all
	Cursor    string   // key of the last event that was taken there
	By        Actor
	At        int64
	Since     int64 // it fails since then; 0: it does not
	Failures  int64 // in a row
	Error     string
	unknown
}

func (h *Webhook) fields(w *wire) {
	str(w, 1, &h.Board)
	str(w, 2, &h.ID)
	str(w, 3, &h.URL)
	str(w, 4, &h.Secret)
	w.strs(5, &h.Kinds)
	str(w, 6, &h.Cursor)
	w.nest(7, &h.By)
	w.int(8, &h.At)
	w.int(9, &h.Since)
	w.int(10, &h.Failures)
	str(w, 11, &h.Error)
}

// Verbs about notices, with the type of their args.
const (
	VSubscribe = "subscribe"   // Subscribe
	VInboxAck  = "inbox.ack"   // InboxAck
	VSend      = "send"        // Send
	VDelivered = "delivered"   // Delivered: what came of a delivery order, by its node
	VWebhook   = "webhook.set" // WebhookSet
	VHookState = "hook.state"  // HookState: how far the leader came with a webhook
)

// Subscribe tells whether changes of a card or a board are told to the sender.
type Subscribe struct {
	Card  string   `json:"card,omitempty"`
	Board string   `json:"board,omitempty"`
	Kinds []string `json:"kinds,omitempty"`
	Off   bool     `json:"off,omitempty"`
}

// InboxAck says that the sender has read its notices up to an event (public id).
type InboxAck struct {
	UpTo string `json:"up_to"`
}

// Send is a person's words for a session: of a run, or of a card's current or next one.
type Send struct {
	To   string `json:"to"`
	Text string `json:"text"`
}

// Delivered is a node's answer to a delivery order.
type Delivered struct {
	Order string `json:"order"`
	State string `json:"state"` // delivered, undelivered, unknown
	Error string `json:"error,omitempty"`
}

// WebhookSet sends a board's events to an address, or no longer.
type WebhookSet struct {
	Board  string   `json:"board"`
	URL    string   `json:"url"`
	Secret string   `json:"secret,omitempty"`
	Kinds  []string `json:"kinds,omitempty"`
	Off    bool     `json:"off,omitempty"`
}

// HookState is how far the leader came with a webhook. Failures counts those in a row.
type HookState struct {
	Board    string `json:"board"`
	ID       string `json:"id"`
	Cursor   string `json:"cursor,omitempty"`
	Failures int64  `json:"failures"`
	Error    string `json:"error,omitempty"`
}

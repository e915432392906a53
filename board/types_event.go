package board

import "encoding/json"

// Event is one board-visible change (BRD-08). Its key is its id (Seq.n).
type Event struct {
	ID, Board, Card, Run, Kind string
	At                         int64
	Actor                      Actor
	Payload                    []byte // JSON object
	Req                        string // request id of the transaction, on its first event
	Prev                       string // key of the card's event before
	From, To                   string // statuses, when it moved the card
	Said                       bool   // it is a comment of the card's thread (BRD-09)
	Text                       string // what it says, unless that is the payload's "text"
	SaidBefore                 string // key of the comment before
	Origin                     string // its id in the fleet it was imported from
	unknown
}

func (e *Event) fields(w *wire) {
	str(w, 1, &e.ID)
	str(w, 2, &e.Board)
	str(w, 3, &e.Card)
	str(w, 4, &e.Run)
	str(w, 5, &e.Kind)
	w.int(6, &e.At)
	w.nest(7, &e.Actor)
	w.bytes(8, &e.Payload)
	str(w, 9, &e.Req)
	str(w, 10, &e.Prev)
	str(w, 11, &e.From)
	str(w, 12, &e.To)
	w.bool(13, &e.Said)
	str(w, 14, &e.Text)
	str(w, 15, &e.SaidBefore)
	str(w, 16, &e.Origin)
}

// Comment is one word of a card's thread (BRD-09), made of the event that is it.
type Comment struct {
	Author Actor
	Body   string
	At     int64
}

// comment is what an event says.
func (e *Event) comment() *Comment {
	return &Comment{Author: e.Actor, Body: orElse(e.Text, saidText(e.Payload)), At: e.At}
}

func saidText(payload []byte) string {
	var p struct {
		Text string `json:"text"`
	}
	_ = json.Unmarshal(payload, &p) // an event's payload is JSON, or there is none; its text may be no text
	return p.Text
}

// Link is a dependency: Child waits for Parent (BRD-10).
type Link struct {
	Child, Parent string
	At            int64
	unknown
}

func (l *Link) fields(w *wire) {
	str(w, 1, &l.Child)
	str(w, 2, &l.Parent)
	w.int(3, &l.At)
}

// Order kinds and states (architecture.md §3).
const (
	OrderStart = "start"
	OrderStop  = "stop" // a stop beats its start: the node voids what it has not started (M-35)

	OrderPending  = "pending"
	OrderTaken    = "taken"
	OrderLaunched = "launched"
)

// Order is what a node is asked to do, written by the transaction that decided
// it (M-17). It leaves the state when its node has answered it (M-37).
type Order struct {
	ID, Node, Kind, State string
	Run, Card, Slot       string
	Era, Seq              uint64 // fencing: Era and the Seq of the claim for a start; the Seq of this order for a stop
	At, Expires           int64
	Why                   string
	Spec                  []byte // JSON of StartSpec, for a start
	unknown
}

func (o *Order) fields(w *wire) {
	str(w, 1, &o.ID)
	str(w, 2, &o.Node)
	str(w, 3, &o.Kind)
	str(w, 4, &o.State)
	str(w, 5, &o.Run)
	str(w, 6, &o.Card)
	str(w, 7, &o.Slot)
	w.uint(8, &o.Era)
	w.uint(9, &o.Seq)
	w.int(10, &o.At)
	w.int(11, &o.Expires)
	str(w, 12, &o.Why)
	w.bytes(13, &o.Spec)
}

// StartSpec is all a node needs to start a session, resolved when the claim was
// made: an order pushed ahead of the state is complete in itself.
type StartSpec struct {
	Run       string            `json:"run"`
	Card      string            `json:"card"`
	Board     string            `json:"board"`
	Title     string            `json:"title"`
	Slot      string            `json:"slot"`
	Role      string            `json:"role"`
	Profile   string            `json:"profile"`
	Harness   string            `json:"harness"`
	Surface   string            `json:"surface"`
	Model     string            `json:"model,omitempty"`
	Argv      []string          `json:"argv"`               // rendered
	Env       map[string]string `json:"env,omitempty"`      // rendered literals
	EnvFrom   map[string]string `json:"env_from,omitempty"` // resolved on the executing node (M-24)
	Prompt    string            `json:"prompt,omitempty"`   // goes to MUSTER_BRIEF
	Body      string            `json:"body,omitempty"`     // goes to MUSTER_BODY
	Workspace string            `json:"workspace,omitempty"`
	Work      *WorkSpec         `json:"work,omitempty"` // how the workspace is made; nil: nothing but its kind
	LaunchKey string            `json:"launch_key"`
	Message   string            `json:"message,omitempty"` // key of the prompt's delivery to a kept session (SES-08)
	SessionID string            `json:"session_id,omitempty"`
	Mode      string            `json:"mode,omitempty"`
	Keep      string            `json:"keep,omitempty"` // run whose session goes on
	Lease     int64             `json:"lease,omitempty"`
	Kill      int64             `json:"kill"`
	Leave     int64             `json:"leave"`
	Grace     int64             `json:"grace"`
	Stale     int64             `json:"stale,omitempty"`  // its workflow asks when it was heard of last
	Attach    int64             `json:"attach,omitempty"` // pid of a session that is there already: nothing is started
	Lock      string            `json:"lock"`             // fencing token as text: fleet/era/seq/run
	Agent     *SpecAgent        `json:"agent,omitempty"`  // whose session it is; nil: no agent's
	Extra     json.RawMessage   `json:"extra,omitempty"`
}

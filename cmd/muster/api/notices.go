package api

import (
	"cmp"
	"fmt"
	"net/http"
	"time"

	"muster/board"
)

// Inbox is what a person was told and has not acknowledged, oldest first.
type Inbox struct {
	Who     string   `json:"who"`
	Read    string   `json:"read,omitempty"` // id of the last event acknowledged
	Lost    int64    `json:"lost,omitempty"` // dropped unread, because there were too many
	Notices []Notice `json:"notices"`
}

// Notice is one event told to a person; id is its identity: kind, card, event.
type Notice struct {
	ID    string    `json:"id"`
	Event string    `json:"event"`
	At    time.Time `json:"at"`
	Board string    `json:"board"`
	Card  string    `json:"card"`
	Title string    `json:"title"`
	Kind  string    `json:"kind"`
	Role  string    `json:"role"` // why it is told: subscriber, creator, dependant, manager, board
	By    string    `json:"by"`
	Text  string    `json:"text"`
}

// Delivery is a text for a session that was not told yet, or not answered.
type Delivery struct {
	Key   string    `json:"key"`
	Kind  string    `json:"kind"` // notice, message, ask
	State string    `json:"state"`
	Slot  string    `json:"slot"`
	Run   string    `json:"run,omitempty"`
	Text  string    `json:"text"`
	Error string    `json:"error,omitempty"`
	At    time.Time `json:"at"`
}

// Webhook is an address outside that a board's events are sent to. Its path is not shown: it may hold a secret.
type Webhook struct {
	ID       string     `json:"id"`
	Board    string     `json:"board"`
	To       string     `json:"to"`
	Kinds    []string   `json:"kinds,omitempty"`
	Secret   string     `json:"secret_file"`
	Cursor   string     `json:"cursor"` // id of the last event taken there
	Since    *time.Time `json:"failing_since,omitempty"`
	Failures int64      `json:"failures,omitempty"`
	Error    string     `json:"error,omitempty"`
}

// inbox reads the caller's notices, or somebody's whom it names.
func (h *handler) inbox(r *http.Request, who caller) (any, Fresh, error) {
	role := "manager"
	name := who.actor.Address()
	switch {
	case who.run != "":
		return nil, unread, who.outside()
	case h.door == DoorToken:
		role = who.role
	}
	x := Inbox{Who: name, Notices: []Notice{}}
	fresh, err := h.read(r, func(v board.View) error {
		if n := board.GetNode(v, who.actor.Node); h.door == DoorUser && n != nil {
			role = n.SocketRole()
		}
		box := board.GetMailbox(v, name)
		x.Lost, x.Notices = box.Lost, x.Notices[:0]
		if box.Read != "" {
			x.Read = board.EventID(box.Read)
		}
		for _, n := range board.Inbox(v, name, role == "manager") {
			if who.sees(n.Board) != nil {
				continue
			}
			x.Notices = append(x.Notices, Notice{ID: n.ID(), Event: board.EventID(n.Event), At: at(n.At), Board: n.Board, Card: n.Card, Title: n.Title,
				Kind: n.Kind, Role: n.Role, By: n.By, Text: n.Text})
		}
		return nil
	})
	return x, fresh, err
}

func deliveriesOf(v board.View, card string) (list []Delivery) {
	board.EachDelivery(v, card, func(d *board.Delivery) bool {
		list = append(list, Delivery{Key: d.Key, Kind: d.Kind, State: d.State, Slot: d.Slot, Run: d.Run, Text: d.Text, Error: d.Error, At: at(d.At)})
		return true
	})
	return list
}

// subscribersOf are the people who said that they want to be told of a card, or had a part in it.
func subscribersOf(v board.View, c *board.Card) (list []string) {
	for _, s := range board.Subscribers(v, c) {
		if s.Role == board.RoleSubscriber {
			list = append(list, s.Address)
		}
	}
	return list
}

// told adds to a status what could not be told: webhooks that fail, words that wait for a session.
func (s *Status) told(v board.View) {
	board.EachWebhook(v, func(h *board.Webhook) bool {
		x := Webhook{ID: h.ID, Board: h.Board, To: h.Where(), Kinds: h.Kinds, Secret: h.Secret, Cursor: board.EventID(h.Cursor), Since: optAt(h.Since), Failures: h.Failures, Error: h.Error}
		s.Webhooks = append(s.Webhooks, x)
		if h.Failures > 0 {
			s.Alarms = append(s.Alarms, fmt.Sprintf("webhook of board %s to %s fails since %s (%d times): %s", h.Board, x.To, at(h.Since).Format(time.RFC3339), h.Failures, h.Error))
		}
		return true
	})
	board.EachCooldown(v, func(c *board.Cooldown) bool {
		s.Notes = append(s.Notes, fmt.Sprintf("%s is rate limited until %s: nothing starts there by itself (run %s met the limit)", c.What, at(c.Until).Format(time.RFC3339), c.Run))
		return true
	})
	words, unknown, first := 0, 0, ""
	board.EachDelivery(v, "", func(d *board.Delivery) bool {
		switch {
		case d.State == board.DeliveryUnknown:
			unknown++
		case d.State == board.DeliveryWaiting && d.Kind == board.DeliverMessage:
			words++
		default:
			return true
		}
		first = cmp.Or(first, d.Card)
		return true
	})
	if words > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d message(s) wait for the next session of their card: muster card show %s", words, first))
	}
	if unknown > 0 {
		s.Notes = append(s.Notes, fmt.Sprintf("%d message(s) may or may not have been told to a session (delivery unknown): muster card show %s", unknown, first))
	}
}

package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"time"

	"muster/board"
)

// Need is one thing that only a person can let go on.
type Need struct {
	Attention
	Card   string     `json:"card"`
	Board  string     `json:"board"`
	Title  string     `json:"title"`
	Status string     `json:"status"`
	Node   string     `json:"node,omitempty"`  // of the session
	Until  *time.Time `json:"until,omitempty"` // of a limit: its end
}

// Needs is all that needs a person now, by card. Tag names what the list says: who
// knows one asks for the next with ?tag=...&wait=true, which is answered when it changes.
type Needs struct {
	Tag  string `json:"tag"`
	List []Need `json:"list"`
}

func needOf(v board.View, n *board.Need) Need {
	x := Need{Attention: Attention{Kind: n.Kind, Text: n.Text, Since: optAt(n.Since), Session: n.Run}, Card: n.Card, Board: n.Board, Until: optAt(n.Until)}
	if c := board.GetCard(v, n.Card); c != nil {
		x.Title, x.Status = c.Title, c.Status
	}
	if h := board.GetHeld(v, n.Run); h != nil {
		x.Node = nodeName(v, h.Node)
	}
	return x
}

func nodeName(v board.View, id string) string {
	if n := board.GetNode(v, id); n != nil {
		return n.Name
	}
	return id
}

// attention lists what needs a person; with wait, when it is not what the tag names any more.
func (h *handler) attention(r *http.Request, _ caller) (any, Fresh, error) {
	q := r.URL.Query()
	sub := h.b.Subscribe(func(t board.Table, _ string) bool { return t == board.TNeed || t == board.TBoard }) // before the first reading: nothing falls between
	defer sub.Close()
	for {
		x := Needs{List: []Need{}}
		fresh, err := h.read(r, func(v board.View) error {
			var b *board.Board
			if slug := q.Get("board"); slug != "" {
				var err error
				if b, err = findBoard(v, slug); err != nil {
					return err
				}
			}
			x.List = x.List[:0]
			board.EachNeed(v, b, func(n *board.Need) bool { x.List = append(x.List, needOf(v, n)); return true })
			return nil
		})
		if err != nil {
			return nil, unread, err
		}
		raw, err := json.Marshal(x.List)
		if err != nil {
			return nil, unread, err
		}
		sum := sha256.Sum256(raw)
		x.Tag = hex.EncodeToString(sum[:8])
		if q.Get("wait") != "true" || x.Tag != q.Get("tag") {
			return x, fresh, nil
		}
		select {
		case <-sub.C():
		case <-r.Context().Done():
			return x, fresh, nil // its time is up: the same list, to be asked for again
		}
	}
}

// needy are the cards of a board (of all boards when b is nil) that need a person.
func needy(v board.View, b *board.Board) (ids []string) {
	board.EachNeed(v, b, func(n *board.Need) bool {
		if len(ids) == 0 || ids[len(ids)-1] != n.Card { // by card: its own row, its runs', its deliveries'
			ids = append(ids, n.Card)
		}
		return true
	})
	return ids
}

// attentionOf is why a card, or the session that works on it, needs a person; nil when it does not.
func attentionOf(v board.View, c *board.Card) *Attention {
	if n := board.NeedOfCard(c); n != nil {
		x := needOf(v, n)
		return &x.Attention
	}
	if c.Run == "" {
		return nil
	}
	if n := board.NeedOfRun(v, c.Run); n != nil {
		x := needOf(v, n)
		return &x.Attention
	}
	return nil
}

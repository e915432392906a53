package api

import (
	"cmp"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"muster/board"
)

// reader lets a read through for who may read.
func (h *handler) reader(takes asks, fn answerFunc) answerFunc {
	return func(r *http.Request, c caller) (any, Fresh, error) {
		if err := takes.check(r); err != nil {
			return nil, unread, err
		}
		if err := h.mayRead(r, &c); err != nil {
			return nil, unread, err
		}
		return fn(r, c)
	}
}

// read runs fn on the state, consistent when the caller asks for it.
func (h *handler) read(r *http.Request, fn func(board.View) error) (Fresh, error) {
	return h.b.Read(r.Context(), consistent(r), fn)
}

func consistent(r *http.Request) bool { return r.URL.Query().Get("consistent") == "true" }

// unread is how fresh an answer is that did not come from the state.
var unread = Fresh{Age: -1}

func (h *handler) status(r *http.Request, _ caller) (any, Fresh, error) {
	s, f, err := status(r.Context(), h.b, r.URL.Query().Get("consistent") == "true")
	return s, f, err
}

func (h *handler) nodes(r *http.Request, _ caller) (any, Fresh, error) {
	known := h.b.Readings(r.Context())
	list := []Node{}
	i, err := h.read(r, func(v board.View) error {
		board.EachNode(v, func(n *board.Node) bool {
			list = append(list, NodeOf(v, n, known.Nodes[n.ID], known.Leader))
			return true
		})
		return nil
	})
	return list, i, err
}

func (h *handler) node(r *http.Request, _ caller) (any, Fresh, error) {
	known := h.b.Readings(r.Context())
	var x Node
	i, err := h.read(r, func(v board.View) error {
		n, err := board.FindNode(v, r.PathValue("id"))
		if err != nil {
			return err
		}
		x = NodeOf(v, n, known.Nodes[n.ID], known.Leader)
		return nil
	})
	return x, i, err
}

func (h *handler) boards(r *http.Request, who caller) (any, Fresh, error) {
	if who.run != "" {
		return nil, unread, who.outside()
	}
	list, all := []Board{}, r.URL.Query().Get("all") == "true"
	i, err := h.read(r, func(v board.View) error {
		board.EachBoard(v, func(b *board.Board) bool {
			if (all || !b.Archived) && who.sees(b.Slug) == nil {
				list = append(list, BoardOf(v, b, true))
			}
			return true
		})
		return nil
	})
	return list, i, err
}

func findBoard(v board.View, slug string) (*board.Board, error) {
	b := board.GetBoard(v, orElse(slug, "default"))
	if b == nil {
		return nil, board.Errorf(board.NotFound, "no board %q", clip(slug)).WithHint("see: muster board list")
	}
	return b, nil
}

func (h *handler) board(r *http.Request, who caller) (any, Fresh, error) {
	var x BoardDetail
	i, err := h.read(r, func(v board.View) error {
		b, err := findBoard(v, r.PathValue("slug"))
		if err != nil {
			return err
		}
		if err := who.sees(b.Slug); err != nil {
			return err
		}
		x.Board, x.List, x.Statuses = BoardOf(v, b, true), []Card{}, []string{}
		if w, err := h.flows.Of(v, b); err == nil {
			x.Statuses, x.InForce = append(x.Statuses, w.Order...), w.Params(x.Params)
			x.Profiles = slices.Sorted(maps.Keys(w.Profiles))
		}
		board.EachCard(v, b, func(c *board.Card) bool {
			if c.Stored != "archived" {
				x.List = append(x.List, CardOf(v, c))
			}
			return true
		})
		byAge(x.List)
		return nil
	})
	return x, i, err
}

func byAge(list []Card) {
	slices.SortFunc(list, func(a, b Card) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Board, b.Board), cmp.Compare(len(a.ID), len(b.ID)), cmp.Compare(a.ID, b.ID))
	})
}

// workflow is the source of a board's workflow in force.
func (h *handler) workflow(r *http.Request, who caller) (any, Fresh, error) {
	x := Workflow{}
	i, err := h.read(r, func(v board.View) error {
		b, err := findBoard(v, r.PathValue("slug"))
		if err != nil {
			return err
		}
		if err := who.sees(b.Slug); err != nil {
			return err
		}
		x.Version = b.Workflow
		if d := board.GetWorkflowDoc(v, b.Slug, b.Workflow); d != nil {
			x.YAML = string(d.Source)
		}
		return nil
	})
	return x, i, err
}

func (h *handler) cards(r *http.Request, who caller) (any, Fresh, error) {
	q := r.URL.Query()
	if who.bound() && q.Get("board") == "" {
		q.Set("board", who.board)
	}
	list := []Card{}
	i, err := h.read(r, func(v board.View) error {
		var b *board.Board
		if slug := q.Get("board"); slug != "" {
			var err error
			if b, err = findBoard(v, slug); err != nil {
				return err
			}
			if err = who.sees(b.Slug); err != nil {
				return err
			}
		}
		if err := h.knownFilters(v, b, q); err != nil {
			return err
		}
		add := func(c *board.Card) bool {
			if c != nil && wanted(c, q) {
				list = append(list, CardOf(v, c))
			}
			return true
		}
		if q.Get("attention") != "true" {
			board.EachCard(v, b, add)
			return nil
		}
		for _, id := range needy(v, b) {
			add(board.GetCard(v, id))
		}
		for i := range list {
			if n := board.NeedsOf(v, list[i].ID); list[i].Attention == nil && len(n) > 0 {
				x := needOf(v, n[0])
				list[i].Attention = &x.Attention
			}
		}
		return nil
	})
	byAge(list)
	return list, i, err
}

// wanted holds a card against the filters of a list.
func wanted(c *board.Card, q url.Values) bool {
	one := func(key, val string) bool {
		list := q[key]
		return len(list) == 0 || slices.Contains(list, val)
	}
	if len(q["status"]) == 0 && q.Get("all") != "true" && c.Stored == "archived" {
		return false
	}
	for _, l := range q["label"] {
		k, val, has := cut(l)
		if got, ok := c.Labels[k]; !ok || has && got != val {
			return false
		}
	}
	return one("status", c.Status) && one("assignee", c.Assignee) && one("machine", c.Machine)
}

func cut(s string) (k, v string, has bool) {
	for i := range s {
		if s[i] == '=' {
			return s[:i], s[i+1:], true
		}
	}
	return s, "", false
}

// findCard finds a card that the caller may see. An id is given whole: ids are
// short numbers, and a beginning of one is the whole of another.
func findCard(v board.View, id string, who caller) (*board.Card, error) {
	c := board.GetCard(v, id)
	if c == nil || board.GetBoard(v, c.Board) == nil { // its board may still be imported
		return nil, board.Errorf(board.NotFound, "no card %q", clip(id)).WithHint("see: muster card list")
	}
	return c, who.sees(c.Board)
}

func (h *handler) card(r *http.Request, who caller) (any, Fresh, error) {
	var x CardDetail
	i, err := h.read(r, func(v board.View) error {
		c, err := findCard(v, r.PathValue("id"), who)
		if err != nil {
			return err
		}
		x = DetailOf(v, c)
		return nil
	})
	return x, i, err
}

func (h *handler) runs(r *http.Request, who caller) (any, Fresh, error) {
	list := []Run{}
	i, err := h.read(r, func(v board.View) error {
		c, err := findCard(v, r.PathValue("id"), who)
		if err != nil {
			return err
		}
		board.EachRun(v, c.ID, func(x *board.Run) bool { list = append(list, RunOf(v, x)); return true })
		return nil
	})
	return list, i, err
}

// context is what a session is told of a card (BRD-20).
func (h *handler) context(r *http.Request, who caller) (any, Fresh, error) {
	var x CardContext
	i, err := h.read(r, func(v board.View) error {
		c, err := findCard(v, r.PathValue("id"), who)
		if err != nil {
			return err
		}
		b, err := findBoard(v, c.Board)
		if err != nil {
			return err
		}
		s, err := board.NewScope(v, h.flows, b, c, v.Time(), nil)
		if err != nil {
			return err
		}
		x = CardContext{Card: c.ID, Text: s.Context()}
		return nil
	})
	return x, i, err
}

func (h *handler) why(r *http.Request, who caller) (any, Fresh, error) {
	err := h.look(r.Context(), func(v board.View) error {
		_, err := findCard(v, r.PathValue("id"), who)
		return err
	})
	if err != nil {
		return nil, unread, err
	}
	x, err := h.b.Why(r.Context(), r.PathValue("id"))
	if err != nil {
		return nil, unread, err
	}
	w, err := whyOf(x)
	return w, unread, err
}

func (h *handler) tokens(r *http.Request, _ caller) (any, Fresh, error) {
	list := []Token{}
	i, err := h.read(r, func(v board.View) error {
		board.EachToken(v, func(t *board.Token) bool {
			list = append(list, Token{ID: t.ID[:min(8, len(t.ID))], Role: t.Role, Name: t.Name, Board: t.Board, Local: t.Local, Uses: t.Uses, Expires: optAt(t.Expires), Made: at(t.Made), By: ActorText(t.By)})
			return true
		})
		return nil
	})
	return list, i, err
}

func (h *handler) rounds(r *http.Request, _ caller) (any, Fresh, error) {
	n, _ := strconv.Atoi(r.URL.Query().Get("n"))
	x, err := h.b.Rounds(r.Context(), min(max(n, 1), 50))
	return x, unread, err
}

// dryRun is what would start now; nothing is written for it (MEM-05).
func (h *handler) dryRun(r *http.Request, _ caller) (any, Fresh, error) {
	slug := r.URL.Query().Get("board")
	if slug != "" {
		err := h.look(r.Context(), func(v board.View) error {
			_, err := findBoard(v, slug)
			return err
		})
		if err != nil {
			return nil, unread, err
		}
	}
	x, err := h.b.DryRun(r.Context(), slug)
	return x, unread, err
}

func (h *handler) logs(r *http.Request, who caller) (any, Fresh, error) {
	run, q := r.PathValue("id"), r.URL.Query()
	if who.bound() {
		err := h.look(r.Context(), func(v board.View) error {
			_, err := findCard(v, board.CardOfRun(run), who)
			return err
		})
		if err != nil {
			return nil, unread, err
		}
	}
	from, _ := strconv.ParseInt(q.Get("from"), 10, 64)
	x, err := h.b.ReadLog(r.Context(), run, max(from, 0), 256<<10, q.Get("wait") == "true")
	if x.Chunk == nil {
		x.Chunk = []byte{}
	}
	return x, unread, err
}

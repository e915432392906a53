package api

import (
	"net/http"
	"slices"
	"strconv"

	"muster/board"
)

func (h *handler) reads(mux *http.ServeMux) {
	for path, fn := range map[string]answerFunc{
		"GET /v1/status":                 h.status,
		"GET /v1/info":                   func(*http.Request, caller) (any, uint64, error) { return h.b.Info(), 0, nil },
		"GET /v1/nodes":                  h.nodes,
		"GET /v1/nodes/{id}":             h.node,
		"GET /v1/boards":                 h.boards,
		"GET /v1/boards/{slug}":          h.board,
		"GET /v1/cards":                  h.cards,
		"GET /v1/cards/{id}":             h.card,
		"GET /v1/cards/{id}/runs":        h.runs,
		"GET /v1/cards/{id}/why":         h.why,
		"GET /v1/tokens":                 h.tokens,
		"GET /v1/rounds":                 h.rounds,
		"GET /v1/runs/{id}/log":          h.logs,
		"GET /v1/boards/{slug}/workflow": h.workflow,
	} {
		mux.HandleFunc(path, h.wrap(fn))
	}
	mux.HandleFunc("GET /v1/events", h.events)
}

// read runs fn on the state, consistent when the caller asks for it.
func (h *handler) read(r *http.Request, fn func(board.View) error) (uint64, error) {
	f, err := h.b.Read(r.Context(), r.URL.Query().Get("consistent") == "true", fn)
	return f.Index, err
}

func (h *handler) status(r *http.Request, _ caller) (any, uint64, error) {
	s, f, err := status(r.Context(), h.b, r.URL.Query().Get("consistent") == "true")
	return s, f.Index, err
}

func (h *handler) nodes(r *http.Request, _ caller) (any, uint64, error) {
	known := h.b.Readings(r.Context())
	list := []Node{}
	i, err := h.read(r, func(v board.View) error {
		board.EachNode(v, func(n *board.Node) bool {
			list = append(list, NodeOf(v, n, known.Nodes[n.ID], known.Leader, known.Live))
			return true
		})
		return nil
	})
	return list, i, err
}

func (h *handler) node(r *http.Request, _ caller) (any, uint64, error) {
	known := h.b.Readings(r.Context())
	var x Node
	i, err := h.read(r, func(v board.View) error {
		n, err := board.FindNode(v, r.PathValue("id"))
		if err != nil {
			return err
		}
		x = NodeOf(v, n, known.Nodes[n.ID], known.Leader, known.Live)
		return nil
	})
	return x, i, err
}

func (h *handler) boards(r *http.Request, _ caller) (any, uint64, error) {
	list := []Board{}
	i, err := h.read(r, func(v board.View) error {
		board.EachBoard(v, func(b *board.Board) bool { list = append(list, BoardOf(v, b, true)); return true })
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

func (h *handler) board(r *http.Request, _ caller) (any, uint64, error) {
	var x struct {
		Board
		List []Card `json:"list"`
	}
	i, err := h.read(r, func(v board.View) error {
		b, err := findBoard(v, r.PathValue("slug"))
		if err != nil {
			return err
		}
		x.Board, x.List = BoardOf(v, b, true), []Card{}
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
	slices.SortFunc(list, func(a, b Card) int { return a.CreatedAt.Compare(b.CreatedAt) })
}

// workflow is the source of a board's workflow in force.
func (h *handler) workflow(r *http.Request, _ caller) (any, uint64, error) {
	x := map[string]any{}
	i, err := h.read(r, func(v board.View) error {
		b, err := findBoard(v, r.PathValue("slug"))
		if err != nil {
			return err
		}
		x["version"], x["yaml"] = b.Workflow, ""
		if d := board.GetWorkflowDoc(v, b.Slug, b.Workflow); d != nil {
			x["yaml"] = string(d.Source)
		}
		return nil
	})
	return x, i, err
}

func (h *handler) cards(r *http.Request, _ caller) (any, uint64, error) {
	q := r.URL.Query()
	list := []Card{}
	i, err := h.read(r, func(v board.View) error {
		var b *board.Board
		if slug := q.Get("board"); slug != "" {
			var err error
			if b, err = findBoard(v, slug); err != nil {
				return err
			}
		}
		board.EachCard(v, b, func(c *board.Card) bool {
			if wanted(c, q) {
				list = append(list, CardOf(v, c))
			}
			return true
		})
		return nil
	})
	byAge(list)
	return list, i, err
}

// wanted holds a card against the filters of a list.
func wanted(c *board.Card, q map[string][]string) bool {
	one := func(key, val string) bool {
		list := q[key]
		return len(list) == 0 || slices.Contains(list, val)
	}
	if len(q["status"]) == 0 && len(q["all"]) == 0 && c.Stored == "archived" {
		return false
	}
	if len(q["attention"]) > 0 && c.Attention.Check == "" {
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

// FindCard finds a card by its id or an unambiguous beginning of it.
func FindCard(v board.View, ref string) (*board.Card, error) {
	if c := board.GetCard(v, ref); c != nil {
		return c, nil
	}
	return nil, board.Errorf(board.NotFound, "no card %q", clip(ref)).WithHint("see: muster card list")
}

func (h *handler) card(r *http.Request, _ caller) (any, uint64, error) {
	var x CardDetail
	i, err := h.read(r, func(v board.View) error {
		c, err := FindCard(v, r.PathValue("id"))
		if err != nil {
			return err
		}
		x = DetailOf(v, c)
		return nil
	})
	return x, i, err
}

func (h *handler) runs(r *http.Request, _ caller) (any, uint64, error) {
	list := []Run{}
	i, err := h.read(r, func(v board.View) error {
		c, err := FindCard(v, r.PathValue("id"))
		if err != nil {
			return err
		}
		board.EachRun(v, c.ID, func(x *board.Run) bool { list = append(list, RunOf(v, x)); return true })
		return nil
	})
	return list, i, err
}

func (h *handler) why(r *http.Request, _ caller) (any, uint64, error) {
	x, err := h.b.Why(r.Context(), r.PathValue("id"))
	return x, 0, err
}

func (h *handler) tokens(r *http.Request, _ caller) (any, uint64, error) {
	list := []map[string]any{}
	i, err := h.read(r, func(v board.View) error {
		board.EachToken(v, func(t *board.Token) bool {
			list = append(list, map[string]any{"id": t.ID[:min(8, len(t.ID))], "role": t.Role, "local": t.Local, "uses": t.Uses, "expires_at": optAt(t.Expires), "made_at": at(t.Made), "by": ActorText(t.By)})
			return true
		})
		return nil
	})
	return list, i, err
}

func (h *handler) rounds(r *http.Request, _ caller) (any, uint64, error) {
	n, _ := strconv.Atoi(r.URL.Query().Get("n"))
	x, err := h.b.Rounds(r.Context(), min(max(n, 1), 50))
	return x, 0, err
}

func (h *handler) logs(r *http.Request, _ caller) (any, uint64, error) {
	q := r.URL.Query()
	from, _ := strconv.ParseInt(q.Get("from"), 10, 64)
	x, err := h.b.ReadLog(r.Context(), r.PathValue("id"), max(from, 0), 256<<10, q.Get("wait") == "true")
	return x, 0, err
}

package api

import (
	"net/http"

	"muster/board"
)

// Diff is what a card has changed against what its branch began at.
type Diff struct {
	Card    string `json:"card"`
	Machine string `json:"machine"`
	Path    string `json:"path"`
	Branch  string `json:"branch"`
	Base    string `json:"base"` // commit
	Text    string `json:"text"`
	Cut     bool   `json:"cut"` // there is more than a diff may hold
}

// GcOptions is what `gc` may do.
type GcOptions struct {
	DryRun  bool `json:"dry_run"`
	Scratch bool `json:"scratch"` // the files of scratch folders may go, too
}

// GcItem is a workspace as `gc` finds it.
type GcItem struct {
	Card string `json:"card,omitempty"`
	Kind string `json:"kind"`
	Path string `json:"path"`
	Size int64  `json:"size"` // bytes on the disk
	Gone bool   `json:"gone"` // it went; of a dry run: it would go
	Why  string `json:"why,omitempty"`
}

// diff is asked of the machine that has the card's workspace; a session may look
// at the cards of its board.
func (h *handler) diff(r *http.Request, who caller) (any, Fresh, error) {
	err := h.look(r.Context(), func(v board.View) error {
		_, err := findCard(v, r.PathValue("id"), who)
		return err
	})
	if err != nil {
		return nil, unread, err
	}
	d, err := h.b.Diff(r.Context(), r.PathValue("id"), r.URL.Query().Get("stat") == "true")
	return d, unread, err
}

// gc deletes on this machine, so it is for who manages it.
func (h *handler) gc(r *http.Request, c caller) (any, Fresh, error) {
	var o GcOptions
	err := h.look(r.Context(), func(v board.View) error {
		if n := board.GetNode(v, c.actor.Node); n != nil && n.SocketRole() != "manager" {
			return board.Errorf(board.Refused, "gc: users of this node's socket are %s, and it is for managers", n.SocketRole()).WithCheck(board.CheckRole)
		}
		return nil
	})
	if err != nil {
		return nil, unread, err
	}
	if err := decode(r, &o); err != nil {
		return nil, unread, err
	}
	items, err := h.b.Gc(r.Context(), o)
	if items == nil {
		items = []GcItem{}
	}
	return items, unread, err
}

// mirror waits until what was acknowledged of a board is in the repository that this machine mirrors it to.
func (h *handler) mirror(r *http.Request, c caller) (any, Fresh, error) {
	var o Mirror
	if err := decode(r, &o); err != nil {
		return nil, unread, err
	}
	slug := orElse(o.Board, "default")
	err := h.look(r.Context(), func(v board.View) error {
		if n := board.GetNode(v, c.actor.Node); n != nil && board.RoleRank(n.SocketRole()) < board.RoleRank("member") {
			return board.Errorf(board.Refused, "mirror: users of this node's socket are %s, and it is for members", n.SocketRole()).WithCheck(board.CheckRole)
		}
		_, err := findBoard(v, slug)
		return err
	})
	if err != nil {
		return nil, unread, err
	}
	fresh, err := h.b.Read(r.Context(), true, func(board.View) error { return nil }) // what was acknowledged is here now
	if err != nil {
		return nil, unread, err
	}
	x, err := h.b.Mirror(r.Context(), slug)
	return x, fresh, err
}

package api

import (
	"net/http"
	"slices"
	"strings"

	"muster/board"
	"muster/board/workflow"
)

// knownFilters refuses a status or a machine that is not there: a typing mistake would be an empty list.
func (h *handler) knownFilters(v board.View, b *board.Board, q map[string][]string) error {
	slug := ""
	if b != nil {
		slug = b.Slug
	}
	if len(q["status"]) > 0 {
		var known []string
		for _, w := range h.workflows(v, slug) {
			for _, s := range w.Order {
				if !slices.Contains(known, s) {
					known = append(known, s)
				}
			}
		}
		for _, s := range q["status"] {
			if len(known) > 0 && !slices.Contains(known, s) {
				return board.Errorf(board.Invalid, "there is no status %q", clip(s)).WithHint("there are: %s", strings.Join(known, ", "))
			}
		}
	}
	for _, m := range q["machine"] {
		if _, err := board.FindNode(v, m); err != nil {
			return err
		}
	}
	return nil
}

// kinds are those that events may have, on a board or on all.
func (h *handler) kinds(r *http.Request, who caller) (any, Fresh, error) {
	slug := r.URL.Query().Get("board")
	if who.bound() {
		slug = who.board
	}
	var list []string
	i, err := h.read(r, func(v board.View) error {
		list = board.EventKinds(h.workflows(v, slug)...)
		return nil
	})
	return list, i, err
}

// workflows are those in force: of a board, or of all. One that does not load is left out.
func (h *handler) workflows(v board.View, slug string) (list []*workflow.Workflow) {
	board.EachBoard(v, func(b *board.Board) bool {
		if slug == "" || b.Slug == slug {
			if w, err := h.flows.Of(v, b); err == nil {
				list = append(list, w)
			}
		}
		return true
	})
	return list
}

package board

// boardArchive puts a board aside, or takes it back: its cards stay and can be
// read, nothing of it is planned or counted (BRD-11), and nobody changes it. A
// board on which sessions live is not put aside: they would speak to nobody.
func boardArchive(t *tx) (any, *Error) {
	a, err := args[BoardArchive](t)
	if err != nil {
		return nil, err
	}
	b := GetBoard(t, a.Board)
	switch {
	case b == nil:
		return nil, Errorf(NotFound, "no board %q", clip(a.Board, 40)).WithHint("see: muster board list")
	case b.Archived != a.Undo:
		return map[string]any{"board": b.Slug}, nil // it is as asked for
	case b.Slug == "default":
		return nil, Errorf(Refused, "board default stays: cards that name no board go there").WithCheck("archived")
	}
	kind := "board_unarchived"
	if !a.Undo {
		kind = "board_archived"
		if err := b.settled(t); err != nil {
			return nil, err
		}
		if err := t.atRest(b); err != nil {
			return nil, err
		}
	}
	b.Archived = !a.Undo
	t.putBoard(b)
	t.event(nil, Event{Kind: kind, Board: b.Slug})
	return map[string]any{"board": b.Slug}, nil
}

// atRest refuses while sessions of a board's cards live.
func (t *tx) atRest(b *Board) *Error {
	var cards []string
	EachHeld(t, "", func(h *Held) bool {
		if h.Board == b.Slug {
			cards = append(cards, h.Card)
		}
		return true
	})
	if len(cards) == 0 {
		return nil
	}
	return Errorf(Refused, "board %s: sessions of %s are not over", b.Slug, someOf(cards, 5)).WithCheck("running").
		WithHint("end them: muster stop-run %s; a pane that stays open: muster forget %s", cards[0], cards[0])
}

// archived refuses what would change a board that was put aside.
func archived(b *Board) *Error {
	return Errorf(Refused, "board %s is archived", b.Slug).WithCheck("archived").WithHint("take it back: muster board archive %s --undo", b.Slug)
}

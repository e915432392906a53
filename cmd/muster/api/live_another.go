package api

import (
	"context"
	"encoding/json"

	"muster/board"
)

// another tells whether the board is another one than was told, cards aside.
func (l *liveView) another(ctx context.Context) (is bool, err error) {
	_, err = l.h.b.Read(ctx, false, func(v board.View) error {
		b, err := findBoard(v, l.slug)
		if err != nil {
			return err
		}
		is = identity(BoardOf(v, b, false)) != l.lastBoard
		return nil
	})
	return is, err
}

// identity is a board without what its cards change.
func identity(x Board) string {
	x.Cards, x.Needs = nil, 0
	raw, _ := json.Marshal(x) // a Board always can be
	return string(raw)
}

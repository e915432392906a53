package apitest

import (
	"context"
	"net"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/tty"
)

// Terminal has none to show.
func (f *Fleet) Terminal(_ context.Context, q api.TermAsk) (tty.Opened, net.Conn, error) {
	return tty.Opened{}, nil, board.Errorf(board.Refused, "card %s has no open pane", q.Card)
}

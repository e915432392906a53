package api

import (
	"net/http"

	"muster/board"
)

// sessions are those that are not gone, on all machines.
func (h *handler) sessions(r *http.Request, _ caller) (any, Fresh, error) {
	list := []Session{}
	f, err := h.read(r, func(v board.View) error {
		board.EachHeld(v, "", func(x *board.Held) bool {
			list = append(list, sessionOf(v, x))
			return true
		})
		return nil
	})
	return list, f, err
}

func sessionOf(v board.View, x *board.Held) Session {
	s := Session{Run: x.Run, Card: x.Card, Board: x.Board, Slot: x.Slot, Node: nodeName(v, x.Node), Profile: x.Profile, Status: x.Status,
		Since: at(x.Since), LeaseS: x.Lease / 1000, Ended: x.Ended, Stopping: x.Stopping}
	if r := board.GetRun(v, x.Run); r != nil {
		s.Turn, s.TurnSince = r.Session.Turn, optAt(r.Session.TurnAt)
	}
	return s
}

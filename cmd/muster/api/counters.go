package api

import "net/http"

// A Counted backend tells what it has counted since its start: log writes and
// syncs, entries, transactions. They stand beside every figure of a benchmark,
// because they do not depend on the mood of the machine.
type Counted interface {
	Counters() map[string]uint64
}

func (h *handler) counters(*http.Request, caller) (any, Fresh, error) {
	all := map[string]uint64{}
	if c, ok := h.b.(Counted); ok {
		all = c.Counters()
	}
	return all, unread, nil
}

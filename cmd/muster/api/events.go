package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"muster/board"
)

const (
	eventPage   = 500              // events of one reading of the state
	streamWrite = 30 * time.Second // a reader that takes longer is cut off; it comes back with its cursor
	keepAlive   = 20 * time.Second
)

// events lists events after a cursor, or follows them: first from the state,
// then as they come. A reader is given what the state holds, never a queue: one
// that is slow reads on from its own cursor (architecture.md, feed).
func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	if _, err := h.caller(r); err != nil {
		send(w, nil, unread, err, "")
		return
	}
	q := r.URL.Query()
	cursor := ""
	if s := q.Get("since"); s != "" && s != "now" {
		key, err := board.ParseEventID(s)
		if err != nil {
			send(w, nil, unread, err, "")
			return
		}
		cursor = key
	}
	f := filter{card: q.Get("card"), kind: q.Get("kind"), board: q.Get("board")}
	sub := h.b.Subscribe(func(t board.Table, _ string) bool { return t == board.TEvent })
	defer sub.Close()
	if q.Get("since") == "now" {
		cursor = h.newest(r)
	}
	if q.Get("follow") != "true" {
		var list []Event
		var fresh Fresh
		var err error
		if last, _ := strconv.Atoi(q.Get("last")); last > 0 {
			list, fresh, err = h.newestOf(r, min(last, eventPage), f)
		} else {
			list, _, fresh, err = h.page(r, cursor, f)
		}
		send(w, list, fresh, err, "")
		return
	}
	sse := strings.Contains(r.Header.Get("Accept"), "text/event-stream")
	h.follow(w, r, sub, cursor, f, sse)
}

type filter struct{ card, kind, board string }

func (f filter) wants(e *board.Event) bool {
	return (f.card == "" || e.Card == f.card) && (f.kind == "" || e.Kind == f.kind) && (f.board == "" || e.Board == f.board)
}

func (h *handler) newest(r *http.Request) (key string) {
	_, _ = h.b.Read(r.Context(), false, func(v board.View) error {
		key, _ = v.Last(board.TEvent, "")
		return nil
	})
	return key
}

// page reads a bounded number of events after the cursor; more says that the
// state holds others behind them.
func (h *handler) page(r *http.Request, cursor string, f filter) (list []Event, next string, fresh Fresh, err error) {
	list, next = []Event{}, cursor
	fresh, err = h.b.Read(r.Context(), false, func(v board.View) error {
		read := 0
		board.EachEvent(v, cursor, func(key string, e *board.Event) bool {
			if key <= cursor {
				return true
			}
			read++
			next = key
			if f.wants(e) {
				list = append(list, EventOf(e))
			}
			return read < 20*eventPage && len(list) < eventPage
		})
		return nil
	})
	return list, next, fresh, err
}

// newestOf reads the last n events that are wanted, oldest first. Those of a card
// are a chain; of all others the state is walked backwards by Seq, piece by piece.
func (h *handler) newestOf(r *http.Request, n int, f filter) (list []Event, fresh Fresh, err error) {
	list = []Event{}
	fresh, err = h.b.Read(r.Context(), false, func(v board.View) error {
		if f.card != "" {
			c, err := FindCard(v, f.card)
			if err != nil {
				return err
			}
			board.CardEvents(v, c, func(e *board.Event) bool {
				if f.wants(e) {
					list = append(list, EventOf(e))
				}
				return len(list) < n
			})
			slices.Reverse(list)
			return nil
		}
		high := v.Seq() + 1
		for span := uint64(2 * n); high > 0 && len(list) < n; span *= 4 {
			low := high - min(high, span)
			var piece []Event
			board.EachEvent(v, board.EventKey(low, 0), func(key string, e *board.Event) bool {
				if key >= board.EventKey(high, 0) {
					return false
				}
				if f.wants(e) {
					piece = append(piece, EventOf(e))
				}
				return true
			})
			list, high = append(piece, list...), low
		}
		list = list[max(0, len(list)-n):]
		return nil
	})
	return list, fresh, err
}

func (h *handler) follow(w http.ResponseWriter, r *http.Request, sub Sub, cursor string, f filter, sse bool) {
	rc := http.NewResponseController(w)
	_ = rc.SetWriteDeadline(time.Time{})
	w.Header().Set("Content-Type", "application/x-ndjson")
	if sse {
		w.Header().Set("Content-Type", "text/event-stream")
	}
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	_ = rc.Flush()
	for {
		list, next, fresh, err := h.page(r, cursor, f)
		if err != nil {
			return
		}
		_ = rc.SetWriteDeadline(time.Now().Add(streamWrite))
		for _, e := range list {
			if writeEvent(w, e, fresh.Index, sse) != nil {
				return
			}
		}
		if len(list) > 0 && rc.Flush() != nil {
			return
		}
		if next != cursor {
			cursor = next
			continue
		}
		select {
		case <-r.Context().Done():
			return
		case <-sub.C():
		case <-alive.C:
			if sse {
				fmt.Fprint(w, ": alive\n\n")
				_ = rc.Flush()
			}
		}
	}
}

func writeEvent(w http.ResponseWriter, e Event, index uint64, sse bool) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	line, err := json.Marshal(Envelope{V: Version, Index: index, Data: data})
	if err != nil {
		return err
	}
	if sse {
		_, err = fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, line)
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", line)
	return err
}

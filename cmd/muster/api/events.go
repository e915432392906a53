package api

import (
	"encoding/json"
	"fmt"
	"net/http"
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
		send(w, nil, 0, err, "")
		return
	}
	q := r.URL.Query()
	cursor := ""
	if s := q.Get("since"); s != "" && s != "now" {
		key, err := board.ParseEventID(s)
		if err != nil {
			send(w, nil, 0, err, "")
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
		list, _, index, err := h.page(r, cursor, f)
		send(w, list, index, err, "")
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
func (h *handler) page(r *http.Request, cursor string, f filter) (list []Event, next string, index uint64, err error) {
	list, next = []Event{}, cursor
	fresh, err := h.b.Read(r.Context(), false, func(v board.View) error {
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
	return list, next, fresh.Index, err
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
		list, next, index, err := h.page(r, cursor, f)
		if err != nil {
			return
		}
		_ = rc.SetWriteDeadline(time.Now().Add(streamWrite))
		for _, e := range list {
			if writeEvent(w, e, index, sse) != nil {
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

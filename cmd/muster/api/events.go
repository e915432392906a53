package api

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"runtime/debug"
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

// eventAsks are what a reader of events may say.
var eventAsks = asks{"follow": truth, "since": anyText, "last": number(1), "card": anyText, "kind": anyText, "board": anyText}

// events lists events after a cursor, or follows them: first from the state,
// then as they come. A reader is given what the state holds, never a queue: one
// that is slow reads on from its own cursor (architecture.md, feed).
func (h *handler) events(w http.ResponseWriter, r *http.Request) {
	if r.URL.Query().Get("follow") != "true" {
		h.wrap(h.reader(eventAsks, h.list))(w, r)
		return
	}
	started := false
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("panic in a stream", "panic", p, "stack", string(debug.Stack()))
			if !started {
				send(w, nil, unread, board.Errorf(board.Internal, "%v", p), "")
			}
		}
	}()
	c, err := h.caller(r)
	if err == nil {
		err = h.mayRead(r, &c)
	}
	var s *stream
	if err == nil {
		err = eventAsks.check(r)
	}
	if err == nil {
		s, err = h.open(r, c)
	}
	if err != nil {
		h.denied(c, err)
		send(w, nil, unread, err, "")
		return
	}
	defer s.sub.Close()
	started = true
	s.follow(w, r)
}

// filter are the events that a reader wants.
type filter struct{ card, kind, board string }

func (f filter) wants(e *board.Event) bool {
	if e.Origin != "" && f.card == "" { // what an import brought along happened elsewhere: it is its card's history
		return false
	}
	return (f.card == "" || e.Card == f.card) && (f.kind == "" || e.Kind == f.kind) && (f.board == "" || e.Board == f.board)
}

// filterOf reads what a reader wants. A kind or a board that is not there is a
// typing mistake, which would be listed, or followed, as if nothing happened.
func (h *handler) filterOf(r *http.Request, who caller) (filter, error) {
	q := r.URL.Query()
	f := filter{card: q.Get("card"), kind: q.Get("kind"), board: q.Get("board")}
	if who.bound() {
		f.board = orElse(f.board, who.board)
	}
	if err := who.sees(f.board); err != nil || f.kind == "" && f.board == "" {
		return f, err
	}
	return f, h.look(r.Context(), func(v board.View) error {
		if f.board != "" {
			if _, err := findBoard(v, f.board); err != nil {
				return err
			}
		}
		if f.kind == "" {
			return nil
		}
		kinds := board.EventKinds(h.workflows(v, f.board)...)
		if !slices.Contains(kinds, f.kind) {
			return board.Errorf(board.Invalid, "there are no events of the kind %q", clip(f.kind)).WithHint("there are: %s", strings.Join(kinds, ", "))
		}
		return nil
	})
}

// cursorOf is the stored key of the event that a reader has seen last.
func (h *handler) cursorOf(r *http.Request) (string, error) {
	s := orElse(r.URL.Query().Get("since"), r.Header.Get("Last-Event-ID"))
	switch s {
	case "", "0":
		return "", nil
	case "now":
		key := ""
		err := h.look(r.Context(), func(v board.View) error {
			key, _ = v.Last(board.TEvent, "")
			return nil
		})
		return key, err
	}
	return board.ParseEventID(s)
}

// list is one page of events, or the newest.
func (h *handler) list(r *http.Request, who caller) (any, Fresh, error) {
	f, err := h.filterOf(r, who)
	if err != nil {
		return nil, unread, err
	}
	if last, _ := strconv.Atoi(r.URL.Query().Get("last")); last > 0 {
		return h.newest(r, min(last, eventPage), f, who)
	}
	cursor, err := h.cursorOf(r)
	if err != nil {
		return nil, unread, err
	}
	list, _, fresh, err := h.page(r.Context(), consistent(r), cursor, f)
	return list, fresh, err
}

// page reads a bounded number of events after the cursor; next is where to read on.
func (h *handler) page(ctx context.Context, consistent bool, cursor string, f filter) (list []Event, next string, fresh Fresh, err error) {
	fresh, err = h.b.Read(ctx, consistent, func(v board.View) error {
		read := 0
		list, next = []Event{}, cursor
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

// pieceSeqs bounds how many transactions one reading of the state walks.
const pieceSeqs = 4096

// newest reads the last n events that are wanted, oldest first. Those of a card
// are a chain; for all others the state is walked backwards by Seq, piece by
// piece, each a reading of its own: a state that grows waits for its readers.
func (h *handler) newest(r *http.Request, n int, f filter, who caller) (any, Fresh, error) {
	list := []Event{}
	high := uint64(0)
	fresh, err := h.read(r, func(v board.View) error {
		list = list[:0]
		if f.card != "" {
			c, err := findCard(v, f.card, who)
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
		high = v.Seq() + 1
		return nil
	})
	for span := uint64(2 * n); err == nil && high > 0 && len(list) < n; span = min(span*4, pieceSeqs) {
		low := high - min(high, span)
		err = h.look(r.Context(), func(v board.View) error {
			list = append(between(v, low, high, f), list...)
			return nil
		})
		if high = low; r.Context().Err() != nil {
			return nil, unread, r.Context().Err()
		}
	}
	return list[max(0, len(list)-n):], fresh, err
}

// between are the wanted events of the transactions from low up to before high.
func between(v board.View, low, high uint64, f filter) (list []Event) {
	end := board.EventKey(high, 0)
	board.EachEvent(v, board.EventKey(low, 0), func(key string, e *board.Event) bool {
		if key >= end {
			return false
		}
		if f.wants(e) {
			list = append(list, EventOf(e))
		}
		return true
	})
	return list
}

// stream is one reader that follows.
type stream struct {
	h      *handler
	sub    Sub
	cursor string
	f      filter
	sse    bool
}

func (h *handler) open(r *http.Request, who caller) (*stream, error) {
	f, err := h.filterOf(r, who)
	if err != nil {
		return nil, err
	}
	s := &stream{h: h, f: f, sse: strings.Contains(r.Header.Get("Accept"), "text/event-stream")}
	s.sub = h.b.Subscribe(func(t board.Table, _ string) bool { return t == board.TEvent }) // before the first reading: nothing falls between
	if s.cursor, err = h.cursorOf(r); err != nil {
		s.sub.Close()
		return nil, err
	}
	return s, nil
}

func (s *stream) follow(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	kind := "application/x-ndjson"
	if s.sse {
		kind = "text/event-stream"
	}
	w.Header().Set("Content-Type", kind)
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(http.StatusOK)
	_ = rc.Flush()
	alive := time.NewTicker(keepAlive)
	defer alive.Stop()
	for first := consistent(r); ; first = false { // what follows is as new as this node knows: a barrier for each would cost every node
		list, next, fresh, err := s.h.page(r.Context(), first, s.cursor, s.f)
		if err != nil {
			return
		}
		_ = rc.SetWriteDeadline(time.Now().Add(streamWrite))
		for _, e := range list {
			if s.write(w, e, fresh.Index) != nil {
				return
			}
		}
		if len(list) > 0 && rc.Flush() != nil {
			return
		}
		if next != s.cursor {
			s.cursor = next
			continue
		}
		select {
		case <-r.Context().Done():
			return
		case <-s.sub.C():
		case <-alive.C:
			_ = rc.SetWriteDeadline(time.Now().Add(streamWrite))
			if s.sse {
				fmt.Fprint(w, ": alive\n\n")
			} else {
				fmt.Fprint(w, "\n") // an empty line: readers skip it, and a dead one is found
			}
			if rc.Flush() != nil {
				return
			}
		}
	}
}

func (s *stream) write(w http.ResponseWriter, e Event, index uint64) error {
	data, err := json.Marshal(e)
	if err != nil {
		return err
	}
	line, err := json.Marshal(Envelope{V: Version, Index: index, Data: data})
	if err != nil {
		return err
	}
	if s.sse {
		_, err = fmt.Fprintf(w, "id: %s\nevent: %s\ndata: %s\n\n", e.ID, e.Kind, line)
		return err
	}
	_, err = fmt.Fprintf(w, "%s\n", line)
	return err
}

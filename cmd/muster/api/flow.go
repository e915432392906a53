package api

import (
	"cmp"
	"net/http"
	"slices"
	"strconv"
	"time"

	"muster/board"
	"muster/board/workflow/chart"
)

const (
	flowPoints = 96      // of a plot over time
	flowMost   = 30 * 24 // hours
	flowEvents = 200_000 // read for one plot; beyond that it begins later
)

// Flow is how cards moved through a board: how many were in each status at each
// time, and how long they stayed. It is worked out from events, when it is asked for.
type Flow struct {
	Board    string           `json:"board"`
	Statuses []string         `json:"statuses"` // as the workflow orders them, then those it does not have any more
	Times    []time.Time      `json:"times"`
	Counts   map[string][]int `json:"counts"` // by status, one for each time
	Stays    []Stay           `json:"stays"`
	Cut      bool             `json:"cut,omitempty"` // more happened than is read: it begins later than asked for
}

// Stay is how long cards were in a status that they have left, of those that left it in the time shown.
type Stay struct {
	Status string  `json:"status"`
	Cards  int     `json:"cards"`
	MedS   float64 `json:"median_s"`
	P90S   float64 `json:"p90_s"`
	MaxS   float64 `json:"max_s"`
}

var flowAsks = asks{"hours": number(1)}

// step is a change of status, backwards in time.
type flowStep struct {
	at             int64
	card, from, to string
}

// flow reads the events of a board from now backwards: what is now is known, and
// each event undone tells what was before it.
func (h *handler) flow(r *http.Request, who caller) (any, Fresh, error) {
	hours, _ := strconv.Atoi(r.URL.Query().Get("hours"))
	if hours == 0 {
		hours = 24
	}
	x := Flow{Counts: map[string][]int{}, Stays: []Stay{}}
	now := map[string]int{}
	var to, from int64 // board time, ms
	var seq uint64
	f, err := h.read(r, func(v board.View) error {
		b, err := findBoard(v, r.PathValue("slug"))
		if err != nil {
			return err
		}
		if err := who.sees(b.Slug); err != nil {
			return err
		}
		x.Board, seq, to = b.Slug, v.Seq(), max(v.Time(), time.Now().UnixMilli())
		from = to - int64(min(hours, flowMost))*time.Hour.Milliseconds()
		from = max(from, b.Created)
		if w, err := h.flows.Of(v, b); err == nil {
			x.Statuses = append(x.Statuses, w.Order...)
		}
		board.EachCard(v, b, func(c *board.Card) bool { now[c.Status]++; return true })
		return nil
	})
	if err != nil {
		return nil, unread, err
	}
	steps, cut, err := h.steps(r, x.Board, seq, from)
	if err != nil {
		return nil, unread, err
	}
	if x.Cut = cut; cut && len(steps) > 0 {
		from = steps[len(steps)-1].at
	}
	x.plot(steps, now, from, to)
	x.stays(steps)
	return x, f, nil
}

// steps are the changes of status of a board's cards since a time, newest first. It
// reads in pieces, each a reading of its own: what happens meanwhile is newer than Seq.
func (h *handler) steps(r *http.Request, slug string, seq uint64, from int64) (list []flowStep, cut bool, err error) {
	read := 0
	for high := seq + 1; high > 0; {
		low, over := high-min(high, pieceSeqs), false
		var piece []flowStep
		err := h.look(r.Context(), func(v board.View) error {
			end := board.EventKey(high, 0)
			board.EachEvent(v, board.EventKey(low, 0), func(key string, e *board.Event) bool {
				if key >= end {
					return false
				}
				read++
				if e.At < from {
					over = true
				} else if e.Board == slug && e.Card != "" && e.To != "" && e.Origin == "" {
					piece = append(piece, flowStep{e.At, e.Card, e.From, e.To})
				}
				return true
			})
			return nil
		})
		if err == nil {
			err = r.Context().Err()
		}
		if err != nil {
			return nil, false, err
		}
		slices.Reverse(piece)
		list = append(list, piece...)
		if over {
			break
		}
		if high = low; read > flowEvents {
			return list, high > 0, nil
		}
	}
	return list, false, nil
}

// plot undoes the steps from now backwards, and notes the counts at each time.
func (x *Flow) plot(steps []flowStep, now map[string]int, from, to int64) {
	for s := range now {
		if !slices.Contains(x.Statuses, s) {
			x.Statuses = append(x.Statuses, s)
		}
	}
	for _, s := range steps {
		for _, name := range []string{s.from, s.to} {
			if name != "" && !slices.Contains(x.Statuses, name) {
				x.Statuses = append(x.Statuses, name)
			}
		}
	}
	x.Times = make([]time.Time, flowPoints)
	for _, s := range x.Statuses {
		x.Counts[s] = make([]int, flowPoints)
	}
	i := 0
	for p := flowPoints - 1; p >= 0; p-- {
		t := from + (to-from)*int64(p)/(flowPoints-1)
		for ; i < len(steps) && steps[i].at > t; i++ {
			now[steps[i].to]--
			if steps[i].from != "" {
				now[steps[i].from]++
			}
		}
		x.Times[p] = at(t)
		for _, s := range x.Statuses {
			x.Counts[s][p] = max(now[s], 0)
		}
	}
}

// stays are the times between entering and leaving a status.
func (x *Flow) stays(steps []flowStep) {
	since, spent := map[string]int64{}, map[string][]float64{}
	for _, s := range slices.Backward(steps) {
		if t, ok := since[s.card]; ok && s.from != "" {
			spent[s.from] = append(spent[s.from], float64(s.at-t)/1000)
		}
		since[s.card] = s.at
	}
	for _, name := range x.Statuses {
		l := spent[name]
		if len(l) == 0 {
			continue
		}
		slices.SortFunc(l, cmp.Compare)
		x.Stays = append(x.Stays, Stay{Status: name, Cards: len(l), MedS: l[len(l)/2], P90S: l[len(l)*9/10], MaxS: l[len(l)-1]})
	}
}

// chart is the picture of a board's workflow: an SVG without script that loads nothing.
func (h *handler) chart(r *http.Request, who caller) (any, Fresh, error) {
	x := Chart{}
	f, err := h.read(r, func(v board.View) error {
		b, err := findBoard(v, r.PathValue("slug"))
		if err != nil {
			return err
		}
		if err := who.sees(b.Slug); err != nil {
			return err
		}
		w, err := h.flows.Of(v, b)
		if err != nil {
			return err
		}
		x.Version, x.SVG = b.Workflow, chart.Of(w).SVG()
		return nil
	})
	return x, f, err
}

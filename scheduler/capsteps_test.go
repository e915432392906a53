package scheduler

import (
	"encoding/json"
	"testing/synctest"
	"time"

	"muster/board"
)

var capPerson = board.Actor{Kind: board.ActorPerson, Name: "ann", Node: "n-atlas"}

// held are the rows of sessions that are not gone, under the lock.
func (w *capWorld) held() (rows []*board.Held) {
	_ = w.View(func(v board.View) error { rows = heldRows(v); return nil })
	return rows
}

// step does one thing. What cannot be done now is left.
func (w *capWorld) step(s capStep) {
	node := capNodes[s.A%len(capNodes)]
	slug := capBoards[s.B%len(capBoards)]
	switch s.Op {
	case 0, 1, 2, 3, 4, 5, 6, 7:
		w.file(s, slug)
	case 8, 9, 10, 11, 12, 13, 14:
		w.session(s)
	case 15, 16:
		w.ofRunning(s, "request_review")
	case 17:
		w.ofRunning(s, []string{"cancel", "complete", "reclaim", "stop_run"}[s.B%4])
	case 18, 19:
		w.manual(s)
	case 20:
		w.ask(capPerson, board.VPause, board.Pause{Board: []string{"", slug}[s.A%2], Why: "x"})
	case 21, 22:
		w.ask(capPerson, board.VResume, board.Pause{Board: []string{"", slug}[s.A%2]})
	case 23:
		w.ask(capPerson, board.VDrain, board.Drain{Node: node, EndSessions: s.B == 0})
	case 24:
		w.ask(capPerson, board.VDrain, board.Drain{Node: node, End: true})
	case 25, 26:
		w.reading(s, "n-"+node)
	case 27:
		w.most(slug, s.A%5-1)
	case 28, 29:
		time.Sleep(time.Duration([]int{1, 5, 20, 40, 61, 130, 301, 700}[s.A%8]) * time.Second)
		synctest.Wait()
	case 30:
		for _, id := range []string{"n-" + node} {
			w.reportFirst(id, board.ReportRefused)
		}
	case 31:
		w.race(s, node, slug)
	}
}

func (w *capWorld) file(s capStep, slug string) {
	title, who := "card", []string{"sh", "sh", "two", "two", "agent", "git", "rev", "none"}[s.A%8]
	p := int64(s.B / 2 % 3)
	a := board.CardAdd{Board: slug, CardFields: board.CardFields{Title: &title, Assignee: &who, Priority: &p}}
	if s.A > 7 {
		a.Machine = &capNodes[s.B%3]
	}
	if s.B == 11 && len(w.cards) > 0 {
		a.After = []string{w.cards[s.A%len(w.cards)]}
	}
	if res := w.ask(capPerson, board.VCardAdd, a); res.Err == nil {
		var x struct{ ID string }
		_ = json.Unmarshal(res.Data, &x)
		w.mu.Lock() // the loop's goroutine may be in the middle of a race
		w.cards = append(w.cards, x.ID)
		w.mu.Unlock()
	}
}

// session moves one session on: launched, ended, or gone after its stop.
func (w *capWorld) session(s capStep) {
	rows := w.held()
	if len(rows) == 0 {
		return
	}
	run := w.run(rows[s.A%len(rows)].Run)
	if run.Launched == 0 {
		w.launch(run)
		if s.B%3 == 0 {
			return
		}
		synctest.Wait() // a round between the two would plan with the session and start without it
	}
	code := int64([]int{0, 0, 0, 1, 1, 75}[s.B%6])
	w.report(run.Node, board.Report{Kind: board.ReportExited, Run: run.ID, Code: &code})
}

func (w *capWorld) reportFirst(node, kind string) {
	for _, h := range w.held() {
		if run := w.run(h.Run); run.Node == node && run.Launched == 0 && !h.Ended {
			w.report(node, board.Report{Kind: kind, Run: run.ID, Error: "no room"})
			return
		}
	}
}

// ofRunning has a person say something about a card at work.
func (w *capWorld) ofRunning(s capStep, event string) {
	rows := w.held()
	if len(rows) > 0 {
		w.ask(capPerson, board.VEvent, board.FireEvent{Card: rows[s.A%len(rows)].Card, Event: event, Force: event == "reclaim" && s.B > 5, Why: "x"})
	}
}

// manual is a person's start, placed as the leader places it.
func (w *capWorld) manual(s capStep) {
	var wait []string
	for _, id := range w.cards {
		if c := w.card(id); c.Run == "" && (c.Status == "ready" || c.Status == "review") {
			wait = append(wait, id)
		}
	}
	if len(wait) == 0 {
		return
	}
	b, _ := json.Marshal(board.Start{Card: wait[s.A%len(wait)], Force: s.B > 6, Why: "x"})
	req := &board.Request{Actor: capPerson, Verb: board.VStart, Args: b}
	err := w.View(func(v board.View) error {
		if e := Prepare(v, w.ws, w.state, w.rig.now(), req); e != nil {
			return e
		}
		return nil
	})
	if err != nil { // all the same: the executor looks again; only contact is the plan's alone
		if req.Place = "n-" + capNodes[s.B%3]; w.state(req.Place).State != board.NodeOnline {
			return
		}
	}
	w.Do(w.t.Context(), req)
}

func (w *capWorld) reading(s capStep, id string) {
	x := w.state(id)
	switch s.B {
	case 0, 1:
		x.Estop = !x.Estop
	case 2, 3, 4:
		x.State = []string{board.NodeOnline, board.NodeOffline, board.NodeUnknown}[s.B-2]
	case 5, 6, 7:
		x.Pressure = []string{"normal", "elevated", "critical"}[s.B-5]
	case 8, 9:
		x.Slots = int64(s.B - 7)
	default:
		x = board.Reading{State: board.NodeOnline, Slots: x.Slots, Pressure: "normal"}
	}
	w.set(id, x)
	w.hear(id)
	if w.loop != nil {
		w.loop.Poke()
	}
}

func (w *capWorld) most(slug string, n int) {
	w.mu.Lock()
	w.n.most[slug] = n
	w.mu.Unlock()
	w.ask(capPerson, board.VBoardSet, board.BoardSet{Board: slug, Set: map[string]json.RawMessage{"params.most": json.RawMessage(orNull(n))}})
}

// race lets something happen between the next plan and its start (M-03).
func (w *capWorld) race(s capStep, node, slug string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.before = func(verb string) {
		if verb != board.VStart {
			return
		}
		w.before, w.quiet = nil, false
		card := ""
		if len(w.cards) > 0 {
			card = w.cards[s.A%len(w.cards)]
		}
		w.mu.Unlock() // it is this request's turn: another one comes first
		defer w.mu.Lock()
		switch s.B % 4 {
		case 0:
			w.ask(capPerson, board.VDrain, board.Drain{Node: node})
		case 1:
			w.ask(capPerson, board.VPause, board.Pause{Board: slug, Why: "x"})
		case 2:
			x := w.state("n-" + node)
			x.Estop = true
			w.set("n-"+node, x)
			w.loop.Poke()
		case 3:
			if card != "" && w.state("n-"+node).State == board.NodeOnline {
				b, _ := json.Marshal(board.Start{Card: card}) // on a machine that is not chosen
				w.Do(w.t.Context(), &board.Request{Actor: capPerson, Verb: board.VStart, Args: b, Place: "n-" + node})
			}
		}
	}
}

// play runs a script, each step to its rest.
func (w *capWorld) play(steps []capStep) {
	for _, s := range steps {
		w.step(s)
		synctest.Wait()
		if w.idle(); len(w.wrong) > 0 {
			return
		}
		w.mu.Lock()
		w.quiet = true
		w.mu.Unlock()
	}
}

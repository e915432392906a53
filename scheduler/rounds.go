package scheduler

import (
	"encoding/json"
	"time"

	"muster/board"
)

// Round is the report of one round (TCK-07): what was decided, for whom, and how
// long each phase took (TCK-04).
type Round struct {
	Time    int64              `json:"at"`
	Started []RoundStart       `json:"started,omitempty"`
	Queued  []RoundWait        `json:"queued,omitempty"`
	Failed  []RoundWait        `json:"failed,omitempty"`
	Seen    []RoundSeen        `json:"seen,omitempty"`
	MS      map[string]float64 `json:"ms"`
}

// RoundStart is a card that was started (DSP-13).
type RoundStart struct {
	Card    string `json:"card"`
	Run     string `json:"run,omitempty"`
	Machine string `json:"machine"`
	Profile string `json:"profile"`
	Instead string `json:"instead_of,omitempty"` // profile that it stands in for
}

// RoundWait is a card that was not, and why; the first hundred of a round.
type RoundWait struct {
	Card  string `json:"card"`
	Check string `json:"check"`
	Text  string `json:"text"`
}

// RoundSeen is something that was observed.
type RoundSeen struct {
	What  string `json:"what"`
	Event string `json:"event"`
}

const (
	keepRounds = 50
	roundRows  = 100
)

func newRound(now int64) *Round { return &Round{Time: now, MS: map[string]float64{}} }

func (r *Round) phase(name string, at *time.Time) {
	now := time.Now()
	r.MS[name] = float64(now.Sub(*at).Microseconds()) / 1000
	*at = now
}

func (r *Round) started(s Start, res board.Result) {
	r.Started = append(r.Started, RoundStart{Card: s.Card, Run: runOf(res), Machine: s.Node, Profile: s.Profile, Instead: s.Instead})
}

func (r *Round) failed(s Start, err *board.Error) {
	if len(r.Failed) < roundRows {
		r.Failed = append(r.Failed, RoundWait{s.Card, err.Check, clip(err.Message, 300)})
	}
}

func (r *Round) queue(card string, w *Wait) {
	if len(r.Queued) < roundRows {
		r.Queued = append(r.Queued, RoundWait{card, w.Check, clip(w.Text, 300)})
	}
}

func (r *Round) note(what, event string) {
	if len(r.Seen) < roundRows {
		r.Seen = append(r.Seen, RoundSeen{what, event})
	}
}

// keep remembers a round in which something happened.
func (l *Loop) keep(r *Round) {
	if len(r.Started)+len(r.Queued)+len(r.Failed)+len(r.Seen) == 0 {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.rounds = append(l.rounds, r)
	if len(l.rounds) > keepRounds {
		l.rounds = l.rounds[len(l.rounds)-keepRounds:]
	}
}

// Rounds are the last n rounds of this term in which something happened, oldest first.
func (l *Loop) Rounds(n int) []Round {
	n = min(max(n, 0), keepRounds) // a peer may ask for any number
	l.mu.Lock()
	defer l.mu.Unlock()
	out := make([]Round, 0, n)
	for _, r := range l.rounds[max(0, len(l.rounds)-n):] {
		out = append(out, *r)
	}
	return out
}

func runOf(res board.Result) string {
	var a struct {
		Run string `json:"run"`
	}
	if json.Unmarshal(res.Data, &a) != nil {
		return ""
	}
	return a.Run
}

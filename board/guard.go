package board

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"
)

// The respawn guard (RSP-01..06): named checks that hold a start back for a
// while after the run before. Each has an end, is switched off by 0, and is
// passed by `start --force --why`. It reads the state and changes nothing (RSP-10).

// blockerError is an error that starting again does not mend: whole words, any case (RSP-03).
var blockerError = regexp.MustCompile(`(?i)\b(quota|rate limit|429|403|auth|unauthorized|forbidden|billing|subscription|(access|permission) denied|invalid api key)\b`)

// pullRequest is the address of a pull request in a comment (RSP-06).
var pullRequest = regexp.MustCompile(`https?://github\.com/[\w.-]+/[\w.-]+/pull/\d+`)

// maxReset bounds what a harness says about when its limit ends: a guard must be able to let go.
const maxReset = 7 * 24 * time.Hour

// Guard holds the respawn guard against a start of the card at now (ms, board
// time). A refusal's Check names the guard that holds (rate_limit,
// blocker_auth, recent_success, active_pr), and until is the board time (ms) at which it lets go.
func Guard(v View, ws *Workflows, b *Board, c *Card, now int64) (refusal *Error, until int64) {
	s, err := NewScope(v, ws, b, c, now, nil)
	if err != nil {
		return ruleError("card "+c.ID, err), 0
	}
	return s.guard()
}

func (s *Scope) guard() (*Error, int64) {
	r := newestEnded(s.view, s.card)
	if r == nil {
		return nil, 0
	}
	if r.Outcome == "rate_limited" { // only the cooldown counts; the rest is skipped (RSP-02)
		return s.holds("rate_limit", s.limitEnds(r, r.Ended), "its last run met a rate limit")
	}
	if word := blockerError.FindString(s.card.LastError); word != "" {
		if e, until := s.holds("blocker_auth", r.Ended+s.wait("guard_auth"), fmt.Sprintf("its last error (%q) looks like one that starting again does not mend", word)); e != nil {
			return e, until
		}
	}
	// A review is not held by a success or a pull request, and whoever sets the card free later lifts both (RSP-04, RSP-05).
	if s.wf.StoredAs(s.card.Status) == "review" || s.card.LastFree >= r.Ended {
		return nil, 0
	}
	if r.Outcome == "completed" {
		if e, until := s.holds("recent_success", r.Ended+s.wait("guard_success"), "it was completed and nobody asked to do it again"); e != nil {
			return e, until
		}
	}
	return s.pullRequestGuard(r)
}

func (s *Scope) pullRequestGuard(r *Run) (*Error, int64) {
	wait := s.wait("guard_pr")
	if wait == 0 || s.now >= r.Ended+wait {
		return nil, 0
	}
	var newest int64
	url := ""
	EachComment(s.view, s.card, func(c *Comment) bool {
		if m := pullRequest.FindString(c.Body); m != "" && c.At >= newest {
			newest, url = c.At, m
		}
		return true
	})
	if url == "" {
		return nil, 0
	}
	return s.holds("active_pr", min(newest, r.Ended)+wait, "its pull request is young: "+url)
}

// wait is a parameter in seconds, as ms; what is no number, or below 0, is off.
func (s *Scope) wait(param string) int64 {
	n, _ := number64(s.params[param])
	return ms(n)
}

func (s *Scope) holds(check string, until int64, why string) (*Error, int64) {
	if until <= s.now {
		return nil, 0
	}
	left := (time.Duration(until-s.now) * time.Millisecond).Round(time.Second)
	return Errorf(Refused, "card %s: %s; it waits %s more", s.card.ID, why, max(left, time.Second)).WithCheck(check).
		WithHint("start it all the same: muster start %s --force --why TEXT", s.card.ID), until
}

// newestEnded is the newest run of the card that has its verdict (RUN-11).
// Runs follow each other, so it is the last one or the one before.
func newestEnded(v View, c *Card) *Run {
	for n := lastN(v, c); n > 0; n-- {
		if r := GetRun(v, RunID(c.ID, n)); r != nil && r.State == RunEnded {
			return r
		}
	}
	return nil
}

const resetKey = "reset_at" // in Run.Metadata, ms

// ResetAt is when the limit that ended a run is over, as its harness said; 0: not known.
func ResetAt(r *Run) int64 {
	var m struct {
		ResetAt int64 `json:"reset_at"`
	}
	if len(r.Metadata) == 0 || json.Unmarshal(r.Metadata, &m) != nil {
		return 0
	}
	return m.ResetAt
}

// setMetadata sets one key of a run's metadata and keeps the others (BRD-07).
func setMetadata(r *Run, key string, value any) {
	m := map[string]json.RawMessage{}
	if len(r.Metadata) > 0 && json.Unmarshal(r.Metadata, &m) != nil {
		return // not ours to throw away
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return
	}
	m[key] = raw
	if out, err := json.Marshal(m); err == nil {
		r.Metadata = out
	}
}

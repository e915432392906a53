package lease

import (
	"fmt"
	"math"
	"time"
)

// Token is the sending of one contact: what its answer counts from.
type Token struct{ sent Instant }

// Clock is a node's side of the contact: how long ago it was certainly led. It
// lives in memory only; a node that restarts begins with a new one and has
// never been in contact. A Clock is a value: methods return the next one.
type Clock struct {
	fresh time.Duration
	told  bool
	sent  Instant // sending of the newest answered contact
	term  uint64  // of the newest answer
	need  uint64  // commit index to apply before acting again after a lapse
}

// NewClock is the clock of a node that was never in contact.
func NewClock(cfg Config) Clock { return Clock{fresh: cfg.Fresh} }

// Sent is called right before a contact is sent.
func (c Clock) Sent(now Instant) Token { return Token{now} }

// Answered takes the leader's answer to the contact of the token. The node
// counts from the sending, never from the receipt: the leader's answer came
// later, so the leader always counts longer than the node. Answers of a term
// lower than the last contact's are ignored. After a lapse (and on the first
// contact of a process) the node has to apply the answer's commit index before
// it acts again: what it has missed may be the end of what it wants to start.
func (c Clock) Answered(t Token, term, commitIndex uint64, now Instant) Clock {
	if c.told && term < c.term {
		return c
	}
	if !c.Fresh(now) {
		c.need = max(c.need, commitIndex)
	}
	if !c.told || t.sent > c.sent {
		c.sent = t.sent
	}
	c.told, c.term = true, term
	return c
}

// Fresh tells whether the contact is younger than the limit.
func (c Clock) Fresh(now Instant) bool { return c.told && now.Sub(c.sent) < c.fresh }

// Age is the time since the sending of the last answered contact; false when
// there was none.
func (c Clock) Age(now Instant) (time.Duration, bool) { return now.Sub(c.sent), c.told }

// Term is the term of the last contact, 0 before the first.
func (c Clock) Term() uint64 { return c.term }

// TermOK tells whether a push of this term may be believed: it comes from the
// leader of the last contact or a later one.
func (c Clock) TermOK(push uint64) bool { return push >= c.term }

// MayStart tells whether a session may be started now, given the raft index
// this node has applied; if not, why, for people.
func (c Clock) MayStart(now Instant, applied uint64) (bool, string) {
	switch {
	case !c.told:
		return false, "this node has had no contact with the leader since it started"
	case !c.Fresh(now):
		return false, fmt.Sprintf("this node's last contact with the leader is %s old (limit %s)",
			now.Sub(c.sent).Round(time.Second), c.fresh)
	case applied < c.need:
		return false, fmt.Sprintf("this node was out of contact and is still catching up (entry %d of %d)", applied, c.need)
	}
	return true, ""
}

// Deadline is the instant at which a session with this lease must be dead
// unless the next contact moves it: last contact + lease. False without a
// lease or without a contact.
func (c Clock) Deadline(lease time.Duration) (Instant, bool) {
	return c.sent.Add(lease), c.told && lease > 0
}

// StartBy is the instant until which a keeper spawned now may still exec: its
// lease's deadline or, without a lease, the end of the fresh contact. Without a
// contact it is long past.
func (c Clock) StartBy(lease time.Duration) Instant {
	if !c.told {
		return math.MinInt64
	}
	if at, ok := c.Deadline(lease); ok {
		return at
	}
	return c.sent.Add(c.fresh)
}

package board

import (
	"fmt"
	"time"

	"muster/board/workflow"
)

// Cooldown is a limit that a run has met: until it is over, nothing starts on the
// account. It is state, so that a new leader goes on with it; its end is a due time.
type Cooldown struct {
	Account string // key, see accountOf
	Run     string // the one that met it
	What    string // for people: whose limit
	At      int64  // board time, ms
	Until   int64
	unknown
}

func (c *Cooldown) fields(w *wire) {
	str(w, 1, &c.Account)
	str(w, 2, &c.Run)
	str(w, 3, &c.What)
	w.int(4, &c.At)
	w.int(5, &c.Until)
}

// GetCooldown reads the limit that an account is under, nil when there is none.
func GetCooldown(v View, account string) *Cooldown {
	if account == "" {
		return nil
	}
	return read[Cooldown](v, TCool, account)
}

// EachCooldown reads all limits, in order of their accounts.
func EachCooldown(v View, fn func(*Cooldown) bool) {
	scan(v, TCool, "", "", func(_ string, c *Cooldown) bool { return fn(c) })
}

// accountOf is what shares a limit: the login that a profile names, on whatever
// board and machine; else what the machine has of that harness. A plain command
// has no login unless its profile names one: another program's exit code says
// nothing of it.
func accountOf(account, node, harness string) string {
	switch {
	case account != "":
		return "account/" + account
	case harness == "" || harness == workflow.CommandHarness || node == "":
		return ""
	}
	return "machine/" + node + "/" + harness
}

// coolDown notes the limit that ended a run, for all that share its account: until
// its reset, else for the board's rate_limit_cooldown; 0 switches it off, as it
// does for the card (RSP-02). The later end of two counts.
func (t *tx) coolDown(r *Run, s *Scope) {
	key, until := accountOf(r.Account, r.Node, r.Harness), s.limitEnds(r, t.env.Now)
	if key == "" || until <= t.env.Now {
		return
	}
	was := GetCooldown(t, key)
	if was != nil {
		if was.Until >= until {
			return
		}
		t.delDue(was.Until, DueCool, key)
	}
	what := fmt.Sprintf("account %q", r.Account)
	if r.Account == "" {
		what = r.Harness + " on " + t.nodeName(r.Node)
	}
	t.put(TCool, key, &Cooldown{Account: key, Run: r.ID, What: what, At: t.env.Now, Until: until})
	t.putDue(until, DueCool, key)
}

// limitEnds is when the limit that ended a run at a moment (ms) is over: as its
// harness said, else after the board's rate_limit_cooldown; 0 when that is off.
func (s *Scope) limitEnds(r *Run, ended int64) int64 {
	wait := s.wait("rate_limit_cooldown")
	if wait == 0 {
		return 0
	}
	if reset := ResetAt(r); reset > ended {
		return min(reset, ended+maxReset.Milliseconds())
	}
	return ended + wait
}

// dueCool is the end of a limit.
func (t *tx) dueCool(account string) {
	if c := GetCooldown(t, account); c != nil && c.Until <= t.env.Now {
		t.del(TCool, account)
	}
}

// Cooling refuses a start on an account that is under a limit; until is when
// that is over, ms. It is no cap: a card that has its place waits as well.
func Cooling(v View, c *Candidate, now int64) (refusal *Error, until int64) {
	x := GetCooldown(v, accountOf(c.Account, c.Node, c.Harness))
	if x == nil || x.Until <= now {
		return nil, 0
	}
	return Errorf(Refused, "card %s: %s is rate limited until %s (run %s met the limit)", c.Card, x.What, clockText(x.Until), x.Run).WithCheck("cooldown").
		WithHint("wait, or start it all the same: muster start %s --force --why TEXT", c.Card), x.Until
}

// clockText is a board time for people: the same words for every reader, so that a
// reason that stands is not written again.
func clockText(at int64) string { return time.UnixMilli(at).UTC().Format("2006-01-02 15:04:05 UTC") }

// limited says which limit a profile is under on one of the machines.
func (s *Scope) limited(p *workflow.Profile) (x *Cooldown) {
	EachNode(s.view, func(n *Node) bool {
		if c := GetCooldown(s.view, accountOf(p.Account, n.ID, p.Harness)); c != nil && c.Until > s.now {
			x = c
		}
		return x == nil
	})
	return x
}

// Fallbacks are the profiles that may stand in for the planned one on a card's
// first start, in order: later ones would lose what its session knows.
func (s *Scope) Fallbacks(p *StartPlan) (list []*workflow.Profile) {
	if s.card.Runs > s.card.Skipped {
		return nil
	}
	for _, name := range p.Profile.Fallback {
		if q := s.wf.Profile(name); q != nil && q.Name != p.Profile.Name {
			list = append(list, q)
		}
	}
	return list
}

// standsIn checks that the named profile may stand in for p, the one of the role:
// asked for by p, on the card's first start, while p is under a limit.
func (s *Scope) standsIn(p *workflow.Profile, name string) (q *workflow.Profile, why *Cooldown) {
	if x := s.limited(p); x != nil {
		for _, q := range s.Fallbacks(&StartPlan{Profile: p}) {
			if q.Name == name {
				return q, x
			}
		}
	}
	return nil, nil
}

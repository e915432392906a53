package lease

import "time"

// Liveness is the leader's verdict on a node.
type Liveness uint8

// The verdicts. Unknown is not a verdict: without a reading nothing is
// concluded (M-09, M-10, INV-01).
const (
	Unknown Liveness = iota
	Online
	Offline
)

func (l Liveness) String() string { return [...]string{"unknown", "online", "offline"}[l] }

// Ask is a contact that came in and has no answer yet.
type Ask struct {
	Node string
	ask
}

// Round is a question to the voters whether the leader's term still holds. It
// speaks for the contacts that had come in when it was asked, for none later.
type Round struct{ term, upTo uint64 }

// Table is the leader's memory of contacts: who was heard and, what leases
// count from, when each node got its last answer in this term. It is empty
// after [Table.End] and before [Table.Begin]: who does not lead knows nothing.
type Table struct {
	cfg  Config
	term term
	rows map[string]row
}

// NewTable makes a table that does not lead.
func NewTable(cfg Config) *Table { return &Table{cfg: cfg, rows: map[string]row{}} }

// Begin starts a term. Every node counts from here, whatever the leader before
// had told it (M-09). Call it when the term's executor is ready: the commit
// index of an answer must hold everything an earlier leader has committed.
func (t *Table) Begin(n uint64, now Instant) {
	t.term = beginTerm(n, now)
	clear(t.rows)
}

// End forgets the term: a deposed leader answers nothing and judges nobody.
func (t *Table) End() { t.term = term{}; clear(t.rows) }

// Term is the term the table leads in, 0 when it does not lead.
func (t *Table) Term() uint64 { return t.term.n }

// Asked notes that a contact of the node came in. The leader's own node asks
// like every other; it is also what shows that the leader itself was awake.
func (t *Table) Asked(node string, now Instant) Ask {
	var a ask
	var r row
	t.term, r, a = t.term.asked(t.rows[node], now, t.cfg)
	if t.term.n != 0 {
		t.rows[node] = r
	}
	return Ask{node, a}
}

// Round opens a question to the voters. Take it first, then ask them; the
// contacts that come in meanwhile need the next round.
func (t *Table) Round() Round { return t.term.round() }

// Answer notes that the contact is answered at this instant, and says whether
// it may be: only while the table leads, in the term the voters of a round
// have confirmed, and only if that round was opened after the contact came in.
// Send the answer after Answer, with the term and a commit index read after
// the round. While the node is condemned it gets no answer.
func (t *Table) Answer(a Ask, r Round, confirmed uint64, at Instant) bool {
	next, ok := t.term.answer(t.rows[a.Node], a.ask, r, confirmed, at)
	if ok {
		t.rows[a.Node] = next
	}
	return ok
}

// Condemn begins to count a session with this lease on this node gone. It says
// whether lease and margin have passed; if so, the node's contacts are not
// answered until [Table.Acquit]. Call it before the request that records the
// end, and Acquit when that request has its outcome, whatever it is: an answer in
// between would carry a commit index from before the end, and the node would
// start, on fresh contact, what is counted gone.
func (t *Table) Condemn(node string, lease time.Duration, now Instant) bool {
	r := t.rows[node]
	if at, ok := t.term.goneAt(r, lease, t.cfg); !ok || now < at {
		return false
	}
	r.condemned++
	t.rows[node] = r
	return true
}

// Acquit ends one [Table.Condemn]; after the last the node is answered again.
func (t *Table) Acquit(node string) {
	if r := t.rows[node]; r.condemned > 0 { // a new term has none
		r.condemned--
		t.rows[node] = r
	}
}

// Bye notes that the node has said that it stops. It is not heard any more, so
// nothing new is given to it; when silence is a verdict, and from when leases
// count, stays as it was. Its next contact ends that.
func (t *Table) Bye(node string) {
	if r, ok := t.rows[node]; ok {
		r.stopped = true
		t.rows[node] = r
	}
}

// Forget drops a node that has left the fleet.
func (t *Table) Forget(node string) { delete(t.rows, node) }

// State is the verdict on a node.
func (t *Table) State(node string, now Instant) Liveness {
	return t.term.state(t.rows[node], now, t.cfg)
}

// Age is the time since the node was last heard in this term; false when it
// was not.
func (t *Table) Age(node string, now Instant) (time.Duration, bool) {
	r := t.rows[node]
	return now.Sub(r.heardAt), r.heard
}

// Next is the earliest instant at which the state of one of the nodes may
// change without any contact; false when none will. Wake then, not on a tick.
func (t *Table) Next(nodes []string, now Instant) (Instant, bool) {
	var best Instant
	found := false
	for _, n := range nodes {
		r := t.rows[n]
		if at := t.term.unread(r).Add(t.cfg.Offline); t.term.n != 0 && at > now && (!found || at < best) {
			best, found = at, true
		}
	}
	return best, found
}

// GoneAt is the instant from which the leader may count a session with this
// lease on this node gone: lease and margin after its own last answer to the
// node or the start of its term, whichever is later (M-35), and never sooner
// than a fresh contact has run out. False when there is no lease, or the table
// does not lead.
func (t *Table) GoneAt(node string, lease time.Duration) (Instant, bool) {
	return t.term.goneAt(t.rows[node], lease, t.cfg)
}

// term is the part of the table that is not about one node. Zero: not leading.
type term struct {
	n, asks        uint64
	began          Instant
	seen, awakened Instant // last contact of anybody; end of the last time the leader read nothing
}

// row is what the leader remembers of one node in its term.
type row struct {
	heard, told       bool
	heardAt, answered Instant
	stopped           bool // it said so since it was heard
	condemned         int  // ends being recorded that an answer must not overtake
}

type ask struct{ term, n uint64 }

func beginTerm(n uint64, now Instant) term {
	return term{n: n, began: now, seen: now, awakened: now}
}

func (t term) asked(r row, now Instant, cfg Config) (term, row, ask) {
	if t.n == 0 {
		return t, r, ask{}
	}
	if t.deaf(now, cfg) {
		t.awakened = now
	}
	t.seen = now
	t.asks++
	r.heard, r.heardAt, r.stopped = true, now, false
	return t, r, ask{t.n, t.asks}
}

// deaf tells whether the leader has read nothing for so long that it was
// stopped or asleep itself: what it did not hear then says nothing.
func (t term) deaf(now Instant, cfg Config) bool { return now.Sub(t.seen) > cfg.Offline/2 }

func (t term) round() Round { return Round{t.n, t.asks} }

func (t term) answer(r row, a ask, round Round, confirmed uint64, at Instant) (row, bool) {
	switch {
	case t.n == 0, a.term != t.n, round.term != t.n, confirmed != t.n:
		return r, false
	case a.n > round.upTo: // the voters may have moved on before this contact was sent
		return r, false
	case r.condemned > 0:
		return r, false
	}
	if !r.told || at > r.answered {
		r.told, r.answered = true, at
	}
	return r, true
}

// unread is the instant from which silence of the node counts.
func (t term) unread(r row) Instant {
	since := max(t.began, t.awakened)
	if r.heard {
		since = max(since, r.heardAt)
	}
	return since
}

func (t term) state(r row, now Instant, cfg Config) Liveness {
	switch {
	case t.n == 0 || t.deaf(now, cfg):
		return Unknown
	case r.heard && !r.stopped && now.Sub(r.heardAt) < cfg.Offline:
		return Online
	case now.Sub(t.unread(r)) < cfg.Offline:
		return Unknown
	}
	return Offline
}

func (t term) goneAt(r row, lease time.Duration, cfg Config) (Instant, bool) {
	if t.n == 0 || lease <= 0 {
		return 0, false
	}
	from := t.began
	if r.told {
		from = max(from, r.answered)
	}
	// Not while the node's contact may still be fresh: without a lapse it need not
	// apply what it has missed, and a new contact would let it start what is gone.
	fresh := cfg.Fresh + cfg.Fresh/time.Duration(cfg.MarginPer)
	return from.Add(max(lease+cfg.Margin(lease), fresh)), true
}

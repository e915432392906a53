package board

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// What an organisation's directory is to be told stands in the state, written by the
// transaction that it follows from: declarations with parents before children, ends
// behind all of them. The leader lends the telling to one machine that can; nothing is
// undone by a machine that dies between a call and its result, for a directory takes the
// same word twice as once (docs/directory.md).

// Bounds of what is handed on.
const (
	maxOrgs     = 20
	orgRotates  = 3       // passes that fail before another machine tries
	handAfter   = 3       // failures after which one word no longer holds up those behind it
	maxHandWait = 3600000 // ms
	handLater   = 60_000  // ms until an end is looked at again whose agent's session is not gone
)

var orgRE = regexp.MustCompile(`^[a-z0-9][a-z0-9.-]{0,62}$`)

// IsOrgName tells whether an organisation may be called that: never as the fleet itself.
func IsOrgName(s string) bool { return orgRE.MatchString(s) && s != LocalOrg }

// GetOrg reads an organisation.
func GetOrg(v View, name string) *Org { return read[Org](v, TOrg, name) }

// EachOrg reads all organisations, by name.
func EachOrg(v View, fn func(*Org) bool) {
	scan(v, TOrg, "", "", func(_ string, o *Org) bool { return fn(o) })
}

// EachHand reads what waits for an organisation's directory, in the order in which it is told.
func EachHand(v View, org string, fn func(*Hand) bool) {
	scan(v, THand, org+"/", "", func(_ string, h *Hand) bool { return fn(h) })
}

// handKey puts declarations before ends, parents before children, and what waits longer first.
func handKey(kind string, a *Agent) string {
	if kind == HandDeclare {
		return fmt.Sprintf("%s/d/%016x.%02x/%s", a.Org, uint64(max(a.Created, 0)), min(strings.Count(a.Path, "/"), 255), a.ID)
	}
	return fmt.Sprintf("%s/e/%016x/%s", a.Org, uint64(max(a.Ending, 0)), a.ID)
}

func getHand(v View, kind string, a *Agent) *Hand { return read[Hand](v, THand, handKey(kind, a)) }

// directory tells whether the state may hold what is handed on: all its nodes know it.
func (t *tx) directory() bool {
	f := GetFleet(t)
	return f != nil && f.Format >= FormatDirectory
}

// handOn queues what an agent's directory is to be told of it; of [LocalOrg] nobody is told.
func (t *tx) handOn(a *Agent, kind string) {
	if a.Org == LocalOrg || !t.directory() {
		return
	}
	t.put(THand, handKey(kind, a), &Hand{Org: a.Org, Agent: a.ID, Kind: kind, At: t.env.Now})
}

// setEnding queues an agent's end, or takes it out of the queue (at 0, AGT-20). The caller stores the agent.
func (t *tx) setEnding(a *Agent, at int64, why string) {
	if a.Ending != 0 {
		t.del(THand, handKey(HandEnd, a))
	}
	if a.Ending, a.Why = at, why; at != 0 {
		t.handOn(a, HandEnd)
	}
	t.keepAgent(a)
}

// Handable is the next word for an organisation's directory that may be said now; nil
// when there is none, and then when one may be, 0: nobody knows. What it says of an agent
// waits for what its parent, or the agent itself, was declared with.
func Handable(v View, org string, now int64) (next *Hand, at int64) {
	if f := GetFleet(v); f == nil || f.AgentSweep != "" { // not all of its agents are in the queue yet
		return nil, 0
	}
	EachHand(v, org, func(h *Hand) bool {
		a := GetAgent(v, h.Agent)
		if a == nil {
			return true
		}
		before := a.Parent
		if h.Kind == HandEnd {
			before = a.ID
		}
		if p := GetAgent(v, before); p != nil && p.Org == org && p.Declared == 0 {
			return true
		}
		if h.Next > now {
			if at == 0 || h.Next < at {
				at = h.Next
			}
			return true
		}
		next = h
		return false
	})
	return next, at
}

// orgSet says whose the fleet's agents are (AGT-22).
func orgSet(t *tx) (any, *Error) {
	a, err := args[OrgSet](t)
	if err != nil {
		return nil, err
	}
	f := GetFleet(t)
	switch {
	case !t.directory():
		return nil, Errorf(Refused, "the fleet's state has no directories yet: not all of its nodes know them").WithCheck("format").WithHint("upgrade every node; see: muster node list")
	case !IsOrgName(a.Org):
		return nil, Errorf(Invalid, "%q is no name of an organisation: lower-case letters, digits, dots and dashes, at most 63, and not %q", clip(a.Org, 70), LocalOrg)
	case f.Org == a.Org:
		return map[string]any{"org": f.Org}, nil
	case f.Org != "":
		return nil, Errorf(Refused, "the fleet's agents are those of %s: its directory knows them", f.Org).WithCheck("org").WithHint("another organisation's agents are those of another fleet")
	}
	held := false
	EachNode(t, func(n *Node) bool { held = slices.Contains(n.Orgs, a.Org); return !held })
	if !held {
		return nil, Errorf(Refused, "no machine holds credentials of %s: nobody could tell its directory", a.Org).WithCheck("org").
			WithHint("in node.yaml of a machine: organisations: {%s: {url: URL, credentials: FILE}}, then muster restart", a.Org)
	}
	f.Org = a.Org
	t.putFleet(f)
	t.put(TOrg, a.Org, &Org{Name: a.Org})
	t.sweepAgents()
	t.event(nil, Event{Kind: "org_set", Payload: object("org", a.Org)})
	return map[string]any{"org": a.Org}, nil
}

// orgHold takes a machine's word for which organisations it holds credentials: their names, and nothing else.
func orgHold(t *tx) (any, *Error) {
	a, err := args[OrgHold](t)
	if err != nil {
		return nil, err
	}
	n := GetNode(t, t.req.Actor.Node)
	switch {
	case n == nil:
		return nil, Errorf(Refused, "a node of the list speaks for itself only")
	case !t.directory():
		return nil, Errorf(Refused, "the fleet's state has no directories yet").WithCheck("format")
	case len(a.Orgs) > maxOrgs || slices.ContainsFunc(a.Orgs, func(s string) bool { return !IsOrgName(s) }):
		return nil, Errorf(Invalid, "at most %d organisations, by their names", maxOrgs)
	case slices.Equal(n.Orgs, a.Orgs):
		return nil, nil
	}
	n.Orgs = a.Orgs
	t.putNode(n)
	return nil, nil
}

// orgLend writes who delivers for an organisation: the leader's decision, by compare with the lease that it saw.
func orgLend(t *tx) (any, *Error) {
	a, err := args[OrgLend](t)
	if err != nil {
		return nil, err
	}
	o := GetOrg(t, a.Org)
	switch {
	case o == nil:
		return nil, Errorf(NotFound, "no organisation %q", clip(a.Org, 70))
	case o.Lease != a.Was:
		return nil, Errorf(Conflict, "the lease of %s is %d by now", o.Name, o.Lease)
	}
	o.Node, o.Lease, o.Lent, o.Failures = a.Node, o.Lease+1, t.env.Now, 0
	t.put(TOrg, o.Name, o)
	t.event(nil, Event{Kind: "org_lent", Payload: object("org", o.Name, "machine", t.nodeName(o.Node))})
	return map[string]any{"lease": o.Lease}, nil
}

// NextHolder is who should deliver for an organisation, of the machines of the list, and
// whether that is another than now. dead tells of the machine that has the lease that
// nothing of it can be under way any more; online of a machine that it is in contact.
func NextHolder(o *Org, nodes []Node, online, dead func(id string) bool) (node string, change bool) {
	var ids []string
	holds := false
	for i := range nodes {
		if n := &nodes[i]; slices.Contains(n.Orgs, o.Name) {
			if holds = holds || n.ID == o.Node; online(n.ID) && n.ID != o.Node {
				ids = append(ids, n.ID)
			}
		}
	}
	slices.Sort(ids)
	at := slices.IndexFunc(ids, func(id string) bool { return id > o.Node }) // the one after it: each has its turn
	if len(ids) > 0 {
		node = ids[max(at, 0)]
	}
	switch {
	case o.Node == "":
		return node, node != ""
	case !holds:
		return node, true
	case node == "":
		return o.Node, false // nobody else could
	case online(o.Node):
		return node, o.Failures >= orgRotates
	}
	return node, dead(o.Node)
}

// orgWord takes what the machine that delivers tells of one word.
func orgWord(t *tx) (any, *Error) {
	m, err := args[OrgWord](t)
	if err != nil {
		return nil, err
	}
	o, a := GetOrg(t, m.Org), GetAgent(t, m.Agent)
	switch {
	case o == nil || a == nil || a.Org != m.Org:
		return nil, Errorf(NotFound, "no agent %q of an organisation %q", clip(m.Agent, 60), clip(m.Org, 70))
	case o.Node != t.req.Actor.Node || o.Lease != m.Lease:
		return nil, Errorf(Conflict, "%s does not deliver for %s (lease %d)", t.nodeName(t.req.Actor.Node), o.Name, m.Lease).WithCheck("lease")
	case m.Kind != HandDeclare && m.Kind != HandEnd:
		return nil, Errorf(Invalid, "no word of kind %q", clip(m.Kind, 40))
	}
	h := getHand(t, m.Kind, a)
	if h == nil {
		return map[string]any{"go": false}, nil // it was taken back, or is done
	}
	w := &handing{t: t, o: o, a: a, h: h, m: &m}
	switch m.What {
	case HandBegin:
		return map[string]any{"go": w.begin()}, nil
	case HandDone:
		w.done()
	case HandForgot:
		w.forgot()
	case HandFailed:
		w.failed(m.Error)
	default:
		return nil, Errorf(Invalid, "a word is %s, %s, %s or %s", HandBegin, HandDone, HandFailed, HandForgot)
	}
	t.put(TOrg, o.Name, o)
	return nil, nil
}

// handing is one word that somebody tells of.
type handing struct {
	t *tx
	o *Org
	a *Agent
	h *Hand
	m *OrgWord
}

// begin says whether the word may be said. An end that is said is not taken back, whatever
// is heard of it: from then on the agent is not started again.
func (w *handing) begin() bool {
	t, a := w.t, w.a
	if w.h.Kind == HandDeclare || a.Leaving != 0 {
		return true
	}
	if a.Ended == 0 && a.Active > 0 { // assigned again: the queue forgets it (AGT-20)
		t.setEnding(a, 0, "")
		t.putAgent(a)
		return false
	}
	if t.noSession(a) != nil {
		w.h.Next = t.env.Now + handLater
		t.put(THand, handKey(w.h.Kind, a), w.h)
		return false
	}
	a.Leaving = t.env.Now
	t.putAgent(a)
	return true
}

func (w *handing) done() {
	t, a, o := w.t, w.a, w.o
	t.del(THand, handKey(w.h.Kind, a))
	if w.h.Kind == HandDeclare {
		a.Declared = t.env.Now
		o.Declared++
	} else {
		if a.Ended == 0 {
			a.Ended = t.env.Now
		}
		t.keepAgent(a)
		o.Ended++
	}
	t.putAgent(a)
	o.Failures, o.Failing, o.Error = 0, 0, ""
}

// failed notes why a word was not taken. The pass ends with it; a word that fails again and
// again, or that is refused by itself, does not hold up those behind it for ever.
func (w *handing) failed(why string) {
	t, o, h := w.t, w.o, w.h
	h.Failures++
	h.Error = clip(why, 300)
	if wait := min(max(w.m.Wait, 0), maxHandWait); wait > 0 || h.Failures >= handAfter {
		h.Next = t.env.Now + max(wait, 1000)
	}
	t.put(THand, handKey(h.Kind, w.a), h)
	o.Failures++
	if o.Failing == 0 {
		o.Failing = t.env.Now
	}
	o.Error = h.Error
}

// forgot declares an agent again that the directory was told of and does not know.
func (w *handing) forgot() {
	t := w.t
	x := GetAgent(t, w.m.Forgot)
	if x == nil || x.Org != w.o.Name || x.Declared == 0 || w.h.Failures > 0 {
		w.failed(orElse(w.m.Error, "the directory does not know an agent that it took"))
		return
	}
	x.Declared = 0
	t.putAgent(x)
	t.handOn(x, HandDeclare)
	w.h.Failures++ // a second time it counts as a failure
	t.put(THand, handKey(w.h.Kind, w.a), w.h)
}

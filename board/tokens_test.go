package board

import (
	"slices"
	"strings"
	"testing"
)

// bearer asks with a token, through atlas.
func (w *world) bearer(secret, verb string, args any) Result {
	w.t.Helper()
	return w.ask(Actor{Kind: ActorPerson, Name: "token", Node: "n-atlas"}, verb, args, func(r *Request) { r.Secret = secret })
}

func (w *world) token(secret string, a TokenCreate) {
	w.t.Helper()
	a.ID = HashSecret(secret)
	w.ok(VTokenCreate, a)
}

func comment(card string) FireEvent {
	return FireEvent{Card: card, Event: "comment", Payload: map[string]any{"text": "hm"}}
}

// A token's role, its end, its revocation and its uses are held at the leader;
// what its bearer does has its name.
func TestTokensAreHeldByTheState(t *testing.T) {
	w := newWorld(t, "")
	id := w.add("x", nil)
	w.token("v", TokenCreate{Role: "viewer"})
	w.token("m", TokenCreate{Role: "member", Name: "ben", TTL: 60, Uses: 2})
	w.token("n", TokenCreate{Role: "node"})
	refused(t, w.bearer("v", VEvent, comment(id)).Err, CheckRole, "viewer")
	refused(t, w.bearer("n", VEvent, comment(id)).Err, CheckToken, `role "node"`)
	refused(t, w.bearer("guess", VEvent, comment(id)).Err, CheckToken, "not known")
	refused(t, w.bearer("m", VTokenCreate, TokenCreate{ID: HashSecret("z"), Role: "viewer"}).Err, CheckRole, "member")
	refused(t, w.bearer("m", VEvent, FireEvent{Card: id, Event: "nonsense"}).Err, NoTransition, "nonsense") // a refusal is no use
	for range 2 {
		if res := w.bearer("m", VEvent, comment(id)); res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	EachComment(w.v, GetCard(w.v, id), func(c *Comment) bool {
		if c.Author.Name != "ben@atlas" || c.Author.Role != "member" {
			t.Errorf("said by %+v", c.Author)
		}
		return true
	})
	refused(t, w.bearer("m", VEvent, comment(id)).Err, CheckToken, "used up")

	w.token("e", TokenCreate{Role: "member", TTL: 60})
	w.after(59.9)
	if res := w.bearer("e", VEvent, comment(id)); res.Err != nil {
		t.Fatal(res.Err)
	}
	w.after(0.1)
	refused(t, w.bearer("e", VEvent, comment(id)).Err, CheckToken, "ended")
	w.ok(VTokenRevoke, TokenRevoke{ID: HashSecret("v")[:8]})
	refused(t, w.bearer("v", VBarrier, nil).Err, CheckToken, "not known")
}

func TestTokenNames(t *testing.T) {
	w := newWorld(t, "")
	w.token("a", TokenCreate{Role: "member", Name: "ann"})
	for _, c := range []struct {
		a     TokenCreate
		words string
	}{
		{TokenCreate{Role: "member", Name: "ann"}, "stands"},
		{TokenCreate{Role: "member", Name: "ann@borea"}, "--name"},
		{TokenCreate{Role: "member", Name: "-x"}, "--name"},
		{TokenCreate{Role: "node", Name: "x"}, "of nobody"},
		{TokenCreate{Role: "node", Board: "web"}, "whole fleet"},
		{TokenCreate{Role: "member", Local: "viewer"}, "--local"},
		{TokenCreate{Role: "member", Board: "none"}, "no board"},
	} {
		c.a.ID = HashSecret("b")
		refused(t, w.through(byAnn, VTokenCreate, c.a, ""), "", c.words)
	}
	w.ok(VTokenRevoke, TokenRevoke{ID: HashSecret("a")[:8]})
	w.token("b", TokenCreate{Role: "member", Name: "ann"})
	if k := GetToken(w.v, HashSecret("b")); k == nil || strings.Contains(string(marshal(k)), "secret") {
		t.Errorf("stored: %+v", k)
	}
}

// A manager's token of one board manages that board, and over every verb there
// is nothing else.
func TestATokenOfOneBoard(t *testing.T) {
	w := newWorld(t, "")
	w.board("docs", "")
	mine := w.addBy("docs", manager, "mine", nil, nil)
	part := w.addBy("docs", manager, "part", nil, nil)
	other := w.add("other", nil)
	w.token("d", TokenCreate{Role: "manager", Board: "docs"})
	title := "new"
	for _, c := range []struct {
		ok   bool
		verb string
		args any
	}{
		{true, VCardAdd, CardAdd{Board: "docs", CardFields: CardFields{Title: &title}}},
		{false, VCardAdd, CardAdd{Board: "web", CardFields: CardFields{Title: &title}}},
		{false, VCardAdd, CardAdd{CardFields: CardFields{Title: &title}}},
		{false, VCardAdd, CardAdd{Board: "docs", SubtaskOf: other, CardFields: CardFields{Title: &title}}},
		{true, VEvent, comment(mine)},
		{false, VEvent, comment(other)},
		{true, VCardLink, CardLink{Card: mine, After: []string{part}}},
		{false, VCardLink, CardLink{Card: mine, After: []string{other}}},
		{false, VCardLink, CardLink{Card: other, After: []string{mine}}},
		{true, VPause, Pause{Board: "docs", Why: "w"}},
		{false, VPause, Pause{Why: "w"}},
		{false, VPause, Pause{Board: "web", Why: "w"}},
		{true, VSubscribe, Subscribe{Board: "docs"}},
		{false, VSubscribe, Subscribe{Board: "web"}},
		{false, VSubscribe, Subscribe{Card: other}},
		{true, VCardPut, CardPut{Card: mine, Status: "triage", Why: "w"}},
		{false, VCardPut, CardPut{Card: other, Status: "triage", Why: "w"}},
		{false, VMove, Move{Card: other, Machine: "atlas"}},
		{false, VNodeSet, NodeSet{Node: "atlas", Local: "viewer"}},
		{false, VDrain, Drain{Node: "atlas", Why: "w"}},
		{false, VTokenCreate, TokenCreate{ID: HashSecret("q"), Role: "manager"}},
		{true, VBarrier, nil},
	} {
		res := w.bearer("d", c.verb, c.args)
		if c.ok && res.Err != nil {
			t.Errorf("%s %+v: %v", c.verb, c.args, res.Err)
		} else if !c.ok {
			refused(t, res.Err, CheckScope, "docs")
		}
	}
	for _, verb := range verbs(t) {
		if aimed[verb] {
			continue
		}
		if v, _ := verbOf(verb); v.who == byPlatform || v.who == byNode {
			continue
		}
		seq := w.v.Seq()
		refused(t, w.bearer("d", verb, map[string]any{"board": "docs", "card": mine}).Err, CheckScope, "docs")
		if w.v.Seq() != seq {
			t.Errorf("%s wrote something", verb)
		}
	}
}

// Invariant 23: a stranger's words are not written, a retry's id included.
func TestAStrangerWritesNothing(t *testing.T) {
	w := newWorld(t, "")
	id := w.add("x", nil)
	for name, a := range map[string]Actor{"token": {Kind: ActorPerson, Node: "n-atlas"}, "run": {Kind: ActorRun, Run: id + ".1", Node: "n-atlas"}} {
		req := &Request{ID: ReqID(GetFleet(w.v), w.v.Seq(), "stranger"), Retry: true, Actor: a, Verb: VBarrier, Secret: "guess"}
		txn, res := Exec(w.v, req, w.env())
		if res.Err == nil || !txn.Empty() {
			t.Errorf("%s: %v, %d records", name, res.Err, len(txn.Ops))
		}
	}
}

// Invariant 24: a run's secret holds at the run's own node, and nowhere else.
func TestASecretHoldsAtItsNode(t *testing.T) {
	w, id, _ := speaking(t)
	w.node("borea", 2)
	run := GetCard(w.v, id).Run
	res := w.ask(Actor{Kind: ActorRun, Run: run, Node: "n-borea"}, VEvent, comment(id), func(r *Request) { r.Secret = "mine" })
	refused(t, res.Err, CheckSecret, "not known")
	if r := GetRun(w.v, run); r.Opens("n-borea", "mine") || !r.Opens("n-atlas", "mine") || r.Opens("n-atlas", "") {
		t.Error("opens at another node, or without a secret")
	}
}

// Whoever a node says is at its door is of that node: the leader puts the name right.
func TestAnActorIsOfItsNode(t *testing.T) {
	w := newWorld(t, "")
	w.node("borea", 2)
	id := w.add("x", nil)
	if res := w.ask(Actor{Kind: ActorPerson, Name: "ann@atlas", Node: "n-borea"}, VEvent, comment(id)); res.Err != nil {
		t.Fatal(res.Err)
	}
	var said []string
	EachComment(w.v, GetCard(w.v, id), func(c *Comment) bool { said = append(said, c.Author.Name); return true })
	if !slices.Equal(said, []string{"ann@borea"}) {
		t.Errorf("said by %v", said)
	}
	w.edit("borea", func(n *Node) { n.Local = "viewer" })
	refused(t, w.ask(Actor{Kind: ActorPerson, Name: "ann@atlas", Role: "manager", Node: "n-borea"}, VEvent, comment(id)).Err, CheckRole, "viewer")
	for kind, verb := range map[string]string{ActorPerson: VReport, ActorNode: VEvent, ActorRun: VNodeUp, "king": VEvent} {
		if err := w.ask(Actor{Kind: kind, Node: "n-borea"}, verb, comment(id)).Err; Denial(err) == "" {
			t.Errorf("%s by a %s: %v", verb, kind, err)
		}
	}
	refused(t, w.ask(Actor{Kind: ActorPerson, Node: "n-borea"}, VDue, DueArgs{}).Err, CheckSpeaker, "fleet itself")
}

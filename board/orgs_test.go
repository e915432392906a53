package board

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

const acme = "acme"

// withOrg makes the fleet's agents those of an organisation that atlas delivers for.
func (f *fleet) withOrg() {
	f.t.Helper()
	f.must(f.person(VOrgSet), OrgSet{Org: acme})
	for GetFleet(f.v).AgentSweep != "" {
		f.comesDue()
	}
	f.must(Request{Actor: Platform(), Verb: VOrgLend}, OrgLend{Org: acme, Node: atlas, Was: GetOrg(f.v, acme).Lease})
}

// comesDue lets the next due time come.
func (f *fleet) comesDue() {
	f.t.Helper()
	var key string
	scan(f.v, TDue, "", "", func(k string, d *Due) bool {
		key, f.now = k, max(f.now, d.At)
		return false
	})
	if key == "" {
		f.t.Fatal("nothing is due")
	}
	f.must(Request{Actor: Platform(), Verb: VDue}, DueArgs{Keys: []string{key}})
}

func (f *fleet) holds(orgs ...string) {
	f.t.Helper()
	f.must(Request{Actor: Actor{Kind: ActorNode, Node: atlas}, Verb: VOrgHold}, OrgHold{Orgs: orgs})
}

// word is what atlas tells of the next word for acme's directory; it gives the word and the answer.
func (f *fleet) word(what string, more OrgWord) (*Hand, Result) {
	f.t.Helper()
	h, _ := Handable(f.v, acme, f.now)
	if h == nil {
		f.t.Fatal("nothing waits")
	}
	more.Org, more.Lease, more.Agent, more.Kind, more.What = acme, GetOrg(f.v, acme).Lease, h.Agent, h.Kind, what
	return h, f.do(Request{Actor: Actor{Kind: ActorNode, Node: atlas}, Verb: VOrgWord}, more)
}

// told says all that waits, and gives what was said by stable keys.
func (f *fleet) told() (list []string) {
	f.t.Helper()
	for h, _ := Handable(f.v, acme, f.now); h != nil; h, _ = Handable(f.v, acme, f.now) {
		if h.Kind == HandEnd {
			if _, res := f.word(HandBegin, OrgWord{}); res.Err != nil || !strings.Contains(string(res.Data), "true") {
				f.t.Fatalf("an end may not be said: %s %v", res.Data, res.Err)
			}
		}
		if _, res := f.word(HandDone, OrgWord{}); res.Err != nil {
			f.t.Fatal(res.Err)
		}
		list = append(list, h.Kind+" "+GetAgent(f.v, h.Agent).StableKey())
	}
	return list
}

// AGT-18, AGT-20, AGT-22: what a fleet of its own declared and ended is told to nobody; when its organisation is known all of it is, once:
// parents before children, declarations before ends. A key whose agent the going through did not come to yet has its agent all the same.
func TestOrganisationLearnedLater(t *testing.T) {
	f := newFleet(t)
	one, two := f.card("one"), f.card("two")
	a := f.must(f.person(VAgentDeclare), AgentDeclare{Card: one})["id"].(string)
	b := f.must(f.person(VAgentDeclare), AgentDeclare{Card: two})["id"].(string)
	f.must(f.person(VAgentEnd), AgentEnd{Agent: b, Why: "enough"})
	if res := f.do(f.person(VOrgSet), OrgSet{Org: acme}); code(res) != Refused || res.Err.Hint == "" {
		t.Errorf("an organisation that nobody can tell: %v", res.Err)
	}
	f.holds(acme)
	scan(f.v, THand, "", "", func(k string, _ *Hand) bool { t.Errorf("%s waits, of a fleet of its own", k); return true })
	f.must(f.person(VOrgSet), OrgSet{Org: acme})
	if h, _ := Handable(f.v, acme, f.now); h != nil {
		t.Errorf("%s of %s may be told while not all are in the queue", h.Kind, h.Agent)
	}
	if again := f.must(f.person(VAgentDeclare), AgentDeclare{Card: one}); again["id"] != a || again["org"] != acme {
		t.Errorf("the agent of a key on the way: %v, want %s", again, a)
	}
	f.withOrg()
	want := []string{"declare root", "declare profile/sh", "declare card/" + one + "/implementer", "declare card/" + two + "/implementer", "end card/" + two + "/implementer"}
	got := f.told()
	slices.Sort(got[2:4])
	if !slices.Equal(got, want) {
		t.Errorf("told:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	EachAgent(f.v, func(x *Agent) bool {
		if x.Org != acme || x.Declared == 0 {
			t.Errorf("%s is of %s, declared at %d", x.StableKey(), x.Org, x.Declared)
		}
		return true
	})
	if f.must(f.person(VOrgSet), OrgSet{Org: acme}); len(f.told()) != 0 {
		t.Error("said again")
	}
	f.holds(acme, "other")
	if res := f.do(f.person(VOrgSet), OrgSet{Org: "other"}); code(res) != Refused {
		t.Errorf("another organisation: %v", res.Err)
	}
}

// AGT-20: an agent that is assigned again is taken out of the queue; one whose end is on its way is not, and its key's next start is another.
func TestAnEndOnItsWayIsNotTakenBack(t *testing.T) {
	f := newFleet(t)
	f.holds(acme)
	f.withOrg()
	card := f.card("x")
	finish := func() {
		run := f.launched(card)
		f.must(f.person(VCardPut), CardPut{Card: card, Status: "done", Why: "by hand"})
		f.over(run)
	}
	finish()
	a := f.agentOf(card, "implementer")
	f.say(card, "reopen", map[string]any{"why": "again"})
	finish() // the same agent, and its end is queued anew
	if got := f.told(); len(got) != 4 || got[3] != "end card/"+card+"/implementer" {
		t.Errorf("told: %v", got)
	}
	if x := GetAgent(f.v, a.ID); x.State() != "ended" || x.Generation != 1 || f.agentOf(card, "implementer").ID != a.ID {
		t.Errorf("the agent: %+v", x)
	}
	f.say(card, "reopen", map[string]any{"why": "again"})
	finish()
	b := f.agentOf(card, "implementer")
	if b.ID == a.ID || b.Generation != 2 {
		t.Fatalf("after its end: %+v", b)
	}
	f.word(HandDone, OrgWord{}) // its declaration
	if h, res := f.word(HandBegin, OrgWord{}); h.Kind != HandEnd || res.Err != nil {
		t.Fatal(h.Kind, res.Err)
	}
	f.say(card, "reopen", map[string]any{"why": "again"})
	f.launched(card)
	if c := f.agentOf(card, "implementer"); c.ID == b.ID || c.Generation != 3 {
		t.Errorf("started while its end is on its way: %+v", c)
	}
}

// AGT-20: the end of an agent waits while its session is not gone.
func TestAnEndWaitsForTheSession(t *testing.T) {
	f := newFleet(t)
	f.holds(acme)
	f.withOrg()
	card := f.card("x")
	run := f.launched(card)
	f.say(card, "cancel", nil)
	for range 3 {
		f.word(HandDone, OrgWord{}) // declarations
	}
	if _, res := f.word(HandBegin, OrgWord{}); !strings.Contains(string(res.Data), "false") {
		t.Errorf("an agent ends whose session lives: %s", res.Data)
	}
	if h, at := Handable(f.v, acme, f.now); h != nil || at <= f.now {
		t.Errorf("looked at again at %d, now is %d", at, f.now)
	}
	f.over(run)
	f.now += handLater
	if got := f.told(); len(got) != 1 {
		t.Errorf("told: %v", got)
	}
}

// AGT-19, AGT-21: a failure stops the pass and is shown, and the word stays; one that is refused by itself holds up neither those
// behind it nor, once it is taken, its agent's end. AGT-18: only the holder of the lease is heard.
func TestAWordThatFails(t *testing.T) {
	f := newFleet(t)
	f.holds(acme)
	f.withOrg()
	f.must(f.person(VAgentDeclare), AgentDeclare{Card: f.card("one")})
	f.must(f.person(VAgentDeclare), AgentDeclare{Card: f.card("two")})
	h, _ := f.word(HandFailed, OrgWord{Error: "down"})
	if o := GetOrg(f.v, acme); o.Failures != 1 || o.Failing != f.now || o.Error != "down" {
		t.Errorf("a pass that failed: %+v", o)
	}
	if again, _ := Handable(f.v, acme, f.now); again == nil || again.Agent != h.Agent || again.Failures != 1 {
		t.Errorf("the next word is %+v, want the same", again)
	}
	for range 2 {
		f.word(HandDone, OrgWord{}) // root, profile
	}
	if o := GetOrg(f.v, acme); o.Failures != 0 || o.Failing != 0 || o.Error != "" || o.Declared != 2 {
		t.Errorf("after a word that was taken: %+v", o)
	}
	bad, _ := f.word(HandFailed, OrgWord{Error: "no", Wait: 5000})
	f.must(f.person(VAgentEnd), AgentEnd{Agent: bad.Agent})
	if got := f.told(); len(got) != 1 || strings.Contains(got[0], bad.Agent) {
		t.Errorf("told while one is refused: %v", got)
	}
	if _, at := Handable(f.v, acme, f.now); at != f.now+5000 {
		t.Errorf("tried again at %d, want %d", at, f.now+5000)
	}
	f.now += 5000
	if got := f.told(); len(got) != 2 || !strings.HasPrefix(got[1], "end ") {
		t.Errorf("told when it is taken: %v", got)
	}
	f.must(f.person(VAgentDeclare), AgentDeclare{Card: f.card("three")})
	f.must(Request{Actor: Platform(), Verb: VOrgLend}, OrgLend{Org: acme, Node: "other", Was: GetOrg(f.v, acme).Lease})
	if _, res := f.word(HandDone, OrgWord{}); code(res) != Conflict || res.Err.Check != "lease" {
		t.Errorf("who has no lease tells: %v", res.Err)
	}
	if res := f.do(Request{Actor: Platform(), Verb: VOrgLend}, OrgLend{Org: acme, Node: atlas, Was: 1}); code(res) != Conflict {
		t.Errorf("lent on the word of an old lease: %v", res.Err)
	}
}

// AGT-19: an agent that the directory forgot is declared again before what is said of it; a second time that counts as a failure.
func TestADirectoryThatForgets(t *testing.T) {
	f := newFleet(t)
	f.holds(acme)
	f.withOrg()
	a := f.must(f.person(VAgentDeclare), AgentDeclare{Card: f.card("one")})["id"].(string)
	f.told()
	f.must(f.person(VAgentEnd), AgentEnd{Agent: a})
	f.word(HandForgot, OrgWord{Forgot: a})
	if h, _ := Handable(f.v, acme, f.now); h == nil || h.Kind != HandDeclare || h.Agent != a {
		t.Fatalf("next is %+v, want its declaration", h)
	}
	f.word(HandDone, OrgWord{})
	f.word(HandForgot, OrgWord{Forgot: a})
	if o := GetOrg(f.v, acme); o.Failures != 1 || !strings.Contains(o.Error, "does not know") {
		t.Errorf("forgotten twice: %+v", o)
	}
}

// M-28: who delivers is lent that, each in turn, and nobody else while it can; from one that is away it is taken when nothing of it can be under way any more.
func TestNextHolder(t *testing.T) {
	nodes := []Node{{ID: "a", Orgs: []string{acme}}, {ID: "b"}, {ID: "c", Orgs: []string{acme}}, {ID: "d", Orgs: []string{"x", acme}}}
	for _, tc := range []struct {
		name, has    string
		failures     int64
		online, dead string
		want         string
		change       bool
	}{
		{"the first", "", 0, "abcd", "", "a", true},
		{"nobody is online", "", 0, "b", "", "", false},
		{"it can", "c", 2, "abcd", "", "d", false},
		{"it fails", "c", 3, "abcd", "", "d", true},
		{"the last of them fails", "d", 3, "abcd", "", "a", true},
		{"it fails, and nobody else could", "c", 9, "bc", "", "c", false},
		{"away, and may still speak", "c", 0, "ab", "", "a", false},
		{"away, and cannot any more", "c", 0, "ab", "c", "a", true},
		{"it has no credentials any more", "b", 0, "bd", "", "d", true},
		{"neither has anybody", "b", 0, "b", "", "", true},
	} {
		is := func(list string) func(string) bool { return func(id string) bool { return strings.Contains(list, id) } }
		o := &Org{Name: acme, Node: tc.has, Failures: tc.failures}
		if got, change := NextHolder(o, nodes, is(tc.online), is(tc.dead)); change != tc.change || change && got != tc.want {
			t.Errorf("%s: %q %v, want %q %v", tc.name, got, change, tc.want, tc.change)
		}
	}
}

// M-37: an agent leaves the state when it ended so long ago as its board keeps what is old, with its assignments; the head of its
// key stays, so that no generation is given twice. One that is taken up again stays, and so does one whose end was not told.
func TestAgentsLeave(t *testing.T) {
	f := newFleet(t)
	finished := func() (card string, a *Agent) {
		card = f.card("x")
		run := f.launched(card)
		f.say(card, "cancel", nil)
		f.over(run)
		return card, f.agentOf(card, "implementer")
	}
	one, a := finished()
	_, b := finished()
	f.must(f.person(VAgentEnd), AgentEnd{Agent: b.ID})
	two, c := finished()
	f.say(two, "reopen", map[string]any{"why": "again"})
	run := f.launched(two)
	passes := func(days int64) {
		for end := f.now + days*dayMS; ; {
			var next int64
			scan(f.v, TDue, "", "", func(_ string, d *Due) bool { next = d.At; return false })
			if next == 0 || next > end {
				f.now = end
				return
			}
			f.comesDue()
		}
	}
	passes(89)
	if GetAgent(f.v, a.ID) == nil || GetAgent(f.v, b.ID) == nil {
		t.Fatal("an agent left before its time")
	}
	passes(2)
	if GetAgent(f.v, a.ID) != nil || GetAgent(f.v, b.ID) != nil || GetAgent(f.v, c.ID) == nil {
		t.Errorf("after its time: %+v %+v, taken up again: %+v", GetAgent(f.v, a.ID), GetAgent(f.v, b.ID), GetAgent(f.v, c.ID))
	}
	EachWork(f.v, a.ID, func(w *Assignment) bool { t.Errorf("its assignment stays: %+v", w); return true })
	EachAssignment(f.v, AgentCard, one, func(w *Assignment) bool { t.Errorf("the card's assignment stays: %+v", w); return true })
	if again := f.must(f.person(VAgentDeclare), AgentDeclare{Card: one}); again["generation"] != 2.0 || again["id"] == a.ID {
		t.Errorf("its key's next agent: %v", again)
	}
	if x := GetRun(f.v, run); x == nil || x.Agent.ID != c.ID {
		t.Errorf("the run: %+v", x)
	}
	f.holds(acme)
	f.withOrg()
	three, d := finished()
	passes(400)
	if GetAgent(f.v, d.ID) == nil {
		t.Errorf("the agent of %s left before its directory was told", three)
	}
	f.told()
	passes(91)
	if GetAgent(f.v, d.ID) != nil {
		t.Error("it stays when its directory was told")
	}
}

// architecture.md §2: many agents become an organisation's in slices.
func TestAdoptionGoesInSlices(t *testing.T) {
	f := newFleet(t)
	for i := range agentSlice + 20 {
		f.must(f.person(VAgentDeclare), AgentDeclare{Card: f.card(fmt.Sprint("c", i))})
	}
	f.holds(acme)
	f.must(f.person(VOrgSet), OrgSet{Org: acme})
	most := 0
	for GetFleet(f.v).AgentSweep != "" {
		before := 0
		EachHand(f.v, acme, func(*Hand) bool { before++; return true })
		f.comesDue()
		after := 0
		EachHand(f.v, acme, func(*Hand) bool { after++; return true })
		most = max(most, after-before)
	}
	if n := len(tails(f.v, THand, acme+"/d/")); most > agentSlice || n != agentSlice+22 {
		t.Errorf("%d words at once, %d in all", most, n)
	}
}

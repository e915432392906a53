package board

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// fleet drives Exec as the leader's executor does, on a fleet made by fleet.init.
type fleet struct {
	t     testing.TB
	v     *MemView
	ws    *Workflows
	now   int64
	state map[string]string // node id -> what the contact table says
	num   map[string]uint64 // journal -> last number
	n     int
}

const (
	atlas = "nodeatlas"
	borea = "nodeborea"
)

func newFleet(t testing.TB) *fleet {
	t.Helper()
	f := &fleet{t: t, v: NewMemView(), ws: NewWorkflows(), now: t0, state: map[string]string{atlas: NodeOnline}, num: map[string]uint64{}}
	f.must(Request{Actor: Platform(), Verb: VFleetInit}, FleetInit{ID: "f1", EraTag: "tag", Node: NodeUp{ID: atlas, Name: "atlas", Slots: 4, Journal: "j-atlas"}})
	f.must(f.person(VBoardApply), BoardApply{Board: "default", YAML: commands})
	return f
}

func (f *fleet) person(verb string) Request {
	return Request{Actor: Actor{Kind: ActorPerson, Name: "ann@atlas", Node: atlas}, Verb: verb}
}

func (f *fleet) do(r Request, args any) Result {
	f.t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		f.t.Fatal(err)
	}
	r.Args = b
	env := &Env{Now: f.now, Seq: f.v.Seq() + 1, Workflows: f.ws, Nodes: func(id string) Reading {
		return Reading{State: orElse(f.state[id], NodeUnknown), Slots: 4, Pressure: "normal"}
	}}
	txn, res := Exec(f.v, &r, env)
	if again, res2 := Exec(f.v, &r, env); fmt.Sprint(again, res2.Err) != fmt.Sprint(txn, res.Err) {
		f.t.Fatalf("%s is not the same twice", r.Verb)
	}
	if !txn.Empty() {
		f.v.Apply(&txn)
	}
	return res
}

func (f *fleet) must(r Request, args any) map[string]any {
	f.t.Helper()
	res := f.do(r, args)
	if res.Err != nil {
		f.t.Fatalf("%s: %v", r.Verb, res.Err)
	}
	m := map[string]any{}
	_ = json.Unmarshal(res.Data, &m)
	return m
}

func (f *fleet) id() string {
	f.n++
	return ReqID(GetFleet(f.v), f.v.Seq(), fmt.Sprintf("r%d", f.n))
}

func (f *fleet) card(title string) string {
	f.t.Helper()
	who := "sh"
	return f.must(f.person(VCardAdd), CardAdd{Board: "default", CardFields: CardFields{Title: &title, Assignee: &who}})["id"].(string)
}

// start places a card's run on a node and returns the run's id.
func (f *fleet) start(card, node string) string {
	f.t.Helper()
	r := Request{Actor: Platform(), Verb: VStart}
	return f.must(r, Start{Card: card, Node: node})["run"].(string)
}

func (f *fleet) report(node string, a Report) Result {
	f.t.Helper()
	j := "j-" + node
	f.num[j]++
	return f.do(Request{Actor: Actor{Kind: ActorNode, Node: node}, Verb: VReport, Journal: j, Number: f.num[j]}, a)
}

func (f *fleet) launched(card string) string {
	f.t.Helper()
	run := f.start(card, atlas)
	for _, k := range []string{ReportTaken, ReportLaunched} {
		if res := f.report(atlas, Report{Kind: k, Run: run, PID: 7, SecretHash: hash32("s-" + run)}); res.Err != nil {
			f.t.Fatal(res.Err)
		}
	}
	return run
}

func hash32(secret string) []byte {
	var b []byte
	_, _ = fmt.Sscanf(HashSecret(secret), "%x", &b)
	return b
}

func orders(v View, node string) (s []string) {
	EachOrder(v, node, func(o *Order) bool { s = append(s, o.Kind+" "+o.Run+" "+o.State); return true })
	return s
}

func (f *fleet) wantOrders(want ...string) {
	f.t.Helper()
	if got := orders(f.v, atlas); strings.Join(got, ", ") != strings.Join(want, ", ") {
		f.t.Fatalf("orders of atlas: %q, want %q", got, want)
	}
}

func code(r Result) Code {
	if r.Err == nil {
		return ""
	}
	return r.Err.Code
}

// Exactly once (architecture.md §2, invariant 4): the second copy of an id gets the first's answer and writes nothing.
func TestRequestIDIsExecutedOnce(t *testing.T) {
	f := newFleet(t)
	title := "one"
	r := f.person(VCardAdd)
	r.ID = f.id()
	a := CardAdd{CardFields: CardFields{Title: &title}}
	first := f.must(r, a)["id"]
	seq := f.v.Seq()
	r.Retry, r.Actor.Name, r.Actor.Node = true, "ann@other", "another-door"
	if again := f.must(r, a)["id"]; again != first || f.v.Seq() != seq {
		t.Fatalf("second copy made %v at Seq %d, want %v at %d", again, f.v.Seq(), first, seq)
	}
	other := "two"
	if res := f.do(r, CardAdd{CardFields: CardFields{Title: &other}}); code(res) != Conflict {
		t.Fatalf("another request under a used id: %v, want a conflict", res.Err)
	}
}

// A refusal of a marked copy is written under its id: a slower copy cannot succeed later.
func TestRefusalOfARetryIsRemembered(t *testing.T) {
	f := newFleet(t)
	plain, marked := f.person(VEvent), f.person(VEvent)
	plain.ID, marked.ID, marked.Retry = f.id(), f.id(), true
	bad := FireEvent{Card: "d-99", Event: "comment"}
	seq := f.v.Seq()
	if res := f.do(plain, bad); code(res) != NotFound || f.v.Seq() != seq {
		t.Fatalf("a refusal of a first try wrote something (%v, Seq %d, was %d)", res.Err, f.v.Seq(), seq)
	}
	if res := f.do(marked, bad); code(res) != NotFound || f.v.Seq() != seq+1 {
		t.Fatalf("a refusal of a marked copy wrote nothing (%v)", res.Err)
	}
	for i := 0; f.v.Has(TCard, "d-99") == false && i < 100; i++ {
		f.card("filler")
	}
	marked.Retry = false // the slower, older copy of the same words
	if res := f.do(marked, bad); code(res) != NotFound {
		t.Fatalf("the slower copy got %v, want the stored refusal", res.Err)
	}
}

// An id below the horizon, above the state or of another era is never executed.
func TestRequestIDBelowHorizon(t *testing.T) {
	f := newFleet(t)
	title := "old"
	a := CardAdd{CardFields: CardFields{Title: &title}}
	old := f.id()
	for i := 0; i < 3; i++ {
		r := f.person(VCardAdd)
		r.ID = f.id()
		f.must(r, a)
	}
	f.now += RequestIDTime + 1
	r := f.person(VCardAdd)
	r.ID = f.id()
	f.must(r, a) // lets the old ones go
	ids := GetIDs(f.v)
	if n := ids.Count(f.v.Seq()); ids.Horizon == 0 || n != 1 {
		t.Fatalf("after a day the table holds %d ids, horizon %d; want 1 id and a horizon", n, ids.Horizon)
	}
	for name, tc := range map[string]struct {
		id    string
		retry bool
		want  Code
	}{
		"first try":       {old, false, Conflict},
		"retry":           {old, true, UnknownOutcome},
		"above the state": {ReqID(GetFleet(f.v), f.v.Seq()+5, "z"), true, UnknownOutcome},
		"another era":     {"2-tag.1.z", false, Conflict},
		"not an id":       {"hello", false, Invalid},
	} {
		r := f.person(VCardAdd)
		r.ID, r.Retry = tc.id, tc.retry
		seq := f.v.Seq()
		if res := f.do(r, a); code(res) != tc.want || f.v.Seq() != seq {
			t.Errorf("%s: %v at Seq %d, want %s at %d", name, res.Err, f.v.Seq(), tc.want, seq)
		}
	}
}

// The table of ids stays bounded when only the fleet's own events were written for long.
func TestIDTableIsEvictedPastQuietStretches(t *testing.T) {
	f := newFleet(t)
	title := "x"
	a := CardAdd{CardFields: CardFields{Title: &title}}
	r := f.person(VCardAdd)
	r.ID = f.id()
	f.must(r, a)
	for i := 0; i < 700; i++ {
		f.must(Request{Actor: Platform(), Verb: VNodeState}, NodeState{Node: atlas, State: [2]string{NodeOffline, NodeOnline}[i%2]})
	}
	mid := f.person(VCardAdd)
	mid.ID = f.id()
	f.must(mid, a)
	f.now += RequestIDTime + 1
	for i := 0; i < 20; i++ {
		r := f.person(VCardAdd)
		r.ID = f.id()
		f.must(r, a)
	}
	if GetDone(f.v, mid.ID) != nil {
		t.Fatalf("an id older than a day is still there (table %+v)", *GetIDs(f.v))
	}
}

// A node's outbox is taken by number, in order, once; a refused item takes its number too (M-20).
func TestOutboxNumbers(t *testing.T) {
	f := newFleet(t)
	run := f.start(f.card("x"), atlas)
	if res := f.report(atlas, Report{Kind: ReportTaken, Run: run}); res.Err != nil {
		t.Fatal(res.Err)
	}
	if res := f.report(atlas, Report{Kind: ReportTaken, Run: "d-9.9"}); code(res) != NotFound || GetOutbox(f.v, "j-"+atlas).Last != 2 {
		t.Fatalf("a refused item: %v, last number %d, want not_found and 2", res.Err, GetOutbox(f.v, "j-"+atlas).Last)
	}
	for n := range uint64(2) { // the same number again, also the newest: its first answer was lost
		f.num["j-"+atlas] = n
		seq := f.v.Seq()
		if res := f.report(atlas, Report{Kind: ReportLaunched, Run: run, PID: 1}); res.Err != nil || f.v.Seq() != seq {
			t.Fatalf("number %d again was executed (%v)", n+1, res.Err)
		}
	}
	if res := f.do(Request{Actor: Actor{Kind: ActorNode, Node: borea}, Verb: VReport, Journal: "j-" + atlas, Number: 9}, Report{Kind: ReportTaken, Run: run}); code(res) != Refused {
		t.Fatalf("another node's journal: %v, want refused", res.Err)
	}
}

// A run from claim to exit (M-12, RUN-06): what its orders, its place and its card are at each step.
func TestRunFromClaimToExit(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.start(card, atlas)
	f.wantOrders("start " + run + " pending")
	if NextDue(f.v) == 0 {
		t.Fatal("a pending order has no expiry")
	}
	f.report(atlas, Report{Kind: ReportTaken, Run: run})
	f.wantOrders("start " + run + " taken")
	if at := NextDue(f.v); at != 0 {
		t.Fatalf("M-12: a taken order still expires, at %d", at)
	}
	f.report(atlas, Report{Kind: ReportLaunched, Run: run, PID: 42, SecretHash: hash32("s")})
	f.wantOrders("start " + run + " launched")
	zero := int64(0)
	f.report(atlas, Report{Kind: ReportExited, Run: run, Code: &zero})
	f.wantOrders()
	c, r := GetCard(f.v, card), GetRun(f.v, run)
	if c.Status != "done" || c.Run != "" || r.Outcome != "completed" || r.Verdict != ByExit || r.Gone != GoneReport || GetHeld(f.v, run) != nil {
		t.Fatalf("after exit 0: card %s run %q, run %s %s gone %q", c.Status, c.Run, r.Outcome, r.Verdict, r.Gone)
	}
}

// RUN-06, SUP-23: an order nobody took expires: a verdict and an order to void it; the slot is free only by the node's word (M-35).
func TestOrphanedClaim(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.start(card, atlas)
	f.now = NextDue(f.v)
	var keys []string
	EachDue(f.v, f.now, func(k string, _ *Due) bool { keys = append(keys, k); return true })
	f.must(Request{Actor: Platform(), Verb: VDue}, DueArgs{Keys: keys})
	f.wantOrders("stop " + run + " pending")
	if c := GetCard(f.v, card); c.Status != "ready" || c.Run != "" || GetHeld(f.v, run) == nil {
		t.Fatalf("orphaned: card %s run %q; held %v", c.Status, c.Run, GetHeld(f.v, run))
	}
	if res := f.do(Request{Actor: Platform(), Verb: VStart}, Start{Card: card, Node: atlas}); res.Err == nil || res.Err.Check != "session_not_gone" {
		t.Fatalf("M-35: a start while the void is not answered: %v", res.Err)
	}
	if res := f.report(atlas, Report{Kind: ReportLaunched, Run: run}); res.Err == nil || res.Err.Check != "superseded" {
		t.Fatalf("launched after the void: %v, want superseded", res.Err)
	}
	f.report(atlas, Report{Kind: ReportGone, Run: run})
	f.wantOrders()
	if r := GetRun(f.v, run); GetHeld(f.v, run) != nil || r.Gone != GoneReport && r.Gone != GoneVoid {
		t.Fatalf("after the node's word the place is still held (gone %q)", r.Gone)
	}
	f.start(card, atlas)
}

// M-12: a refusal by the node withdraws the run and is no failure; a failed spawn counts (DSP-14).
func TestRefusedAndFailedStart(t *testing.T) {
	for kind, failures := range map[string]int64{ReportRefused: 0, ReportFailed: 1} {
		f := newFleet(t)
		card := f.card("x")
		run := f.start(card, atlas)
		f.report(atlas, Report{Kind: kind, Run: run, Error: "ESTOP"})
		c := GetCard(f.v, card)
		if c.Status != "ready" || c.Failures != failures || GetHeld(f.v, run) != nil || len(orders(f.v, atlas)) != 0 {
			t.Errorf("%s: card %s, %d failures (want %d), held %v, orders %v", kind, c.Status, c.Failures, failures, GetHeld(f.v, run), orders(f.v, atlas))
		}
	}
}

// M-35: a verdict from outside orders the stop in the same transaction, the place stays held until the node says gone, and the late exit is no second verdict.
func TestStopRunHoldsThePlaceUntilGone(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.launched(card)
	f.must(f.person(VEvent), FireEvent{Card: card, Event: "reclaim"})
	f.wantOrders("stop " + run + " pending")
	c := GetCard(f.v, card)
	if h := GetHeld(f.v, run); c.Run != "" || h == nil || !h.Stopping || !h.Ended {
		t.Fatalf("after reclaim: run %q, held %+v", c.Run, h)
	}
	code1 := int64(143)
	f.report(atlas, Report{Kind: ReportExited, Run: run, Code: &code1})
	f.wantOrders()
	if c := GetCard(f.v, card); c.Failures != 0 || GetRun(f.v, run).Outcome != "reclaimed" || GetHeld(f.v, run) != nil {
		t.Fatalf("the exit of a reclaimed run: %d failures, outcome %s, held %v", c.Failures, GetRun(f.v, run).Outcome, GetHeld(f.v, run))
	}
}

// M-11, M-35: a run without lease is not taken from a machine that is away, but by --force --why; with a lease it is, and the start waits for it.
func TestTakingARunFromAMachineThatIsAway(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.launched(card)
	r := GetRun(f.v, run)
	if r.Lease == 0 {
		t.Fatal("an always-on machine's run has no lease in the default workflow")
	}
	f.state[atlas] = NodeOffline
	without := *r
	without.Lease = 0
	f.v.Apply(&Txn{Ops: []Op{{Table: TRun, Key: RunKey(run), Val: marshal(&without)}}})
	if res := f.do(f.person(VEvent), FireEvent{Card: card, Event: "reclaim"}); res.Err == nil || res.Err.Check != "machine" {
		t.Fatalf("reclaim from an offline machine without lease: %v, want refused", res.Err)
	}
	f.must(f.person(VEvent), FireEvent{Card: card, Event: "reclaim", Force: true, Why: "it burned"})
	if got := GetRun(f.v, run); got.Gone != GoneWord || GetHeld(f.v, run) != nil {
		t.Fatalf("after --force: gone %q, held %v", got.Gone, GetHeld(f.v, run))
	}
	f.wantOrders("stop " + run + " pending") // stands until the node answers, should it come back
}

// architecture.md §5: lease passed frees the slot, once, only for a run with a lease; the stop order stands (M-37).
func TestGoneByLease(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.launched(card)
	f.must(Request{Actor: Platform(), Verb: VNodeState}, NodeState{Node: atlas, State: NodeOffline})
	f.now += 700_000
	f.must(Request{Actor: Platform(), Verb: VObserve}, Observe{Run: run, Event: "machine_offline", Payload: map[string]any{"machine": "atlas", "seconds": 700}})
	if GetHeld(f.v, run) == nil {
		t.Fatal("the requeue alone freed the place")
	}
	f.must(Request{Actor: Platform(), Verb: VGone}, Gone{Run: run, By: GoneLease})
	if r := GetRun(f.v, run); r.Gone != GoneLease || GetHeld(f.v, run) != nil {
		t.Fatalf("gone %q, held %v", r.Gone, GetHeld(f.v, run))
	}
	f.wantOrders("stop " + run + " pending")
	if res := f.do(Request{Actor: f.person("").Actor, Verb: VGone}, Gone{Run: run, By: GoneLease}); code(res) != Refused {
		t.Fatalf("a person said gone by lease: %v", res.Err)
	}
	f.report(atlas, Report{Kind: ReportExited, Run: run})
	f.wantOrders()
}

// Invariant 3, M-25: a run's words count with its secret and only while it is current.
func TestWordsOfARun(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.launched(card)
	say := func(secret, card, event string) Result {
		return f.do(Request{Actor: Actor{Kind: ActorRun, Run: run, Node: atlas}, Secret: secret, Verb: VEvent}, FireEvent{Card: card, Event: event, Payload: map[string]any{"text": "hi", "kind": "needs_input", "reason": "r"}})
	}
	other := f.card("other")
	if res := say("wrong", card, "comment"); res.Err == nil || res.Err.Check != "secret" {
		t.Fatalf("a wrong secret: %v", res.Err)
	}
	if res := say("s-"+run, other, "comment"); res.Err == nil || res.Err.Check != "secret" {
		t.Fatalf("a word on a stranger's card: %v", res.Err)
	}
	if res := say("s-"+run, card, "comment"); res.Err != nil {
		t.Fatal(res.Err)
	}
	if res := say("s-"+run, card, "block"); res.Err != nil {
		t.Fatal(res.Err)
	}
	if r := GetRun(f.v, run); r.Verdict != ByOwn || len(orders(f.v, atlas)) != 0 {
		t.Fatalf("after its own word: verdict %q, orders %v (its own word orders no stop)", r.Verdict, orders(f.v, atlas))
	}
	if res := say("s-"+run, card, "comment"); res.Err == nil || res.Err.Check != "superseded" {
		t.Fatalf("a word after the run's end: %v, want superseded", res.Err)
	}
}

// Invariant 15: a generation rises by compare-and-set; a lost answer of the same start is no stranger.
func TestNodeGeneration(t *testing.T) {
	f := newFleet(t)
	up := NodeUp{ID: atlas, Name: "atlas", Generation: 1, Start: "s1", Slots: 4}
	r := Request{Actor: Actor{Kind: ActorNode, Node: atlas}, Verb: VNodeUp}
	if g := f.must(r, up)["generation"]; g != 2.0 {
		t.Fatalf("generation %v, want 2", g)
	}
	if g := f.must(r, up)["generation"]; g != 2.0 {
		t.Fatalf("the same start again: generation %v, want 2", g)
	}
	up.Start = "s-copy"
	if res := f.do(r, up); res.Err == nil || res.Err.Check != "generation" {
		t.Fatalf("a copied folder: %v, want refused", res.Err)
	}
}

// Joining by token: role, use count, end, name (architecture.md §6).
func TestJoinByToken(t *testing.T) {
	f := newFleet(t)
	f.must(f.person(VTokenCreate), TokenCreate{ID: HashSecret("once"), Role: "node", TTL: 60, Uses: 1})
	f.must(f.person(VTokenCreate), TokenCreate{ID: HashSecret("view"), Role: "viewer", TTL: 60})
	join := func(name, secret string) Result {
		return f.do(Request{Actor: Actor{Kind: ActorNode, Node: "node" + name}, Verb: VNodeJoin}, NodeJoin{Node: NodeUp{ID: "node" + name, Name: name, Slots: 2}, Secret: secret})
	}
	if res := join("cleo", "view"); code(res) != Refused {
		t.Fatalf("joined with a viewer's token: %v", res.Err)
	}
	if res := join("atlas2", "once"); res.Err != nil {
		t.Fatal(res.Err)
	}
	if res := join("dora", "once"); code(res) != Refused {
		t.Fatalf("a token of one use let two in: %v", res.Err)
	}
	f.must(f.person(VTokenCreate), TokenCreate{ID: HashSecret("late"), Role: "node", TTL: 60})
	if res := f.do(Request{Actor: Actor{Kind: ActorNode, Node: "nx"}, Verb: VNodeJoin}, NodeJoin{Node: NodeUp{ID: "nx", Name: "atlas"}, Secret: "late"}); code(res) != Conflict {
		t.Fatalf("one name on two machines: %v", res.Err)
	}
	f.now += 61_000
	if res := join("eve", "late"); code(res) != Refused {
		t.Fatalf("an ended token: %v", res.Err)
	}
}

// Roles come from the state: a node's local role bounds its socket, a request's own word does not count.
func TestRolesComeFromTheState(t *testing.T) {
	f := newFleet(t)
	n := *GetNode(f.v, atlas)
	n.Local = "viewer"
	f.v.Apply(&Txn{Ops: []Op{{Table: TNode, Key: atlas, Val: marshal(&n)}}})
	r := f.person(VCardAdd)
	r.Actor.Role = "manager"
	title := "x"
	if res := f.do(r, CardAdd{CardFields: CardFields{Title: &title}}); code(res) != Refused {
		t.Fatalf("a viewer filed a card: %v", res.Err)
	}
	f.must(f.person(VBarrier), nil)
}

// Every refusal writes nothing and says why; every bad request of a person has the right class.
func TestBadRequests(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	str := func(s string) *string { return &s }
	neg := int64(-1)
	for name, tc := range map[string]struct {
		verb string
		args any
		want Code
		says string
	}{
		"no title":           {VCardAdd, CardAdd{}, Invalid, "title"},
		"unknown board":      {VCardAdd, CardAdd{Board: "nope", CardFields: CardFields{Title: str("t")}}, NotFound, `"nope"`},
		"unknown parent":     {VCardAdd, CardAdd{After: []string{"d-77"}, CardFields: CardFields{Title: str("t")}}, NotFound, "d-77"},
		"unknown profile":    {VCardAdd, CardAdd{CardFields: CardFields{Title: str("t"), Assignee: str("nobody")}}, NotFound, "nobody"},
		"unknown machine":    {VCardAdd, CardAdd{CardFields: CardFields{Title: str("t"), Machine: str("moon")}}, NotFound, "moon"},
		"two lines of title": {VCardAdd, CardAdd{CardFields: CardFields{Title: str("a\nb")}}, Invalid, "one line"},
		"negative runtime":   {VCardEdit, CardEdit{Card: card, CardFields: CardFields{MaxRuntime: &neg}}, Invalid, "max_runtime"},
		"unknown card":       {VCardEdit, CardEdit{Card: "d-77"}, NotFound, "d-77"},
		"unknown key":        {VCardEdit, map[string]any{"card": card, "colour": "red"}, Invalid, "colour"},
		"unknown event":      {VEvent, FireEvent{Card: card, Event: "explode"}, Refused, "explode"},
		"a circle":           {VCardLink, CardLink{Card: card, After: []string{card}}, Refused, card},
		"a board twice":      {VBoardCreate, BoardCreate{Slug: "default"}, Conflict, "exists"},
		"a bad slug":         {VBoardCreate, BoardCreate{Slug: "No Good"}, Invalid, "slug"},
		"a YAML mistake":     {VBoardApply, BoardApply{Board: "default", YAML: "version: 1\nname: x\nextends: default\nstatusses: {}\n"}, Invalid, "statusses"},
		"a large YAML":       {VBoardApply, BoardApply{Board: "default", YAML: strings.Repeat("# x\n", 80_000)}, Exhausted, "bytes"},
		"an unknown param":   {VBoardSet, BoardSet{Board: "default", Set: map[string]json.RawMessage{"params.x": json.RawMessage("1")}}, Invalid, "parameter"},
		"an unknown verb":    {"dance", nil, Invalid, "dance"},
		"a large body":       {VCardAdd, CardAdd{CardFields: CardFields{Title: str("t"), Body: str(strings.Repeat("x", 300<<10))}}, Exhausted, "bytes"},
		"the last voter":     {VNodeVote, NodeVote{Node: "atlas"}, Refused, "only voter"},
		"an unknown node":    {VNodeVote, NodeVote{Node: "moon", Vote: true}, NotFound, "moon"},
	} {
		t.Run(name, func(t *testing.T) {
			seq := f.v.Seq()
			res := f.do(f.person(tc.verb), tc.args)
			if code(res) != tc.want || !strings.Contains(fmt.Sprint(res.Err.Message, res.Err.Hint), tc.says) {
				t.Fatalf("%v (%s), want %s with %q", res.Err, code(res), tc.want, tc.says)
			}
			if f.v.Seq() != seq {
				t.Fatal("a refusal wrote something")
			}
		})
	}
}

// M-22: a workflow without a status that cards are in is refused, or moves them as it says.
func TestApplyMigrates(t *testing.T) {
	f := newFleet(t)
	old := "version: 1\nname: x\ninitial: idea\nstatuses:\n  idea: {stored_as: todo, on: {go: [{target: done}]}}\n  done: {stored_as: done, on: {}}\ndispatch: {start: start}\n"
	f.must(f.person(VBoardCreate), BoardCreate{Slug: "x", YAML: old})
	title := "t"
	id := f.must(f.person(VCardAdd), CardAdd{Board: "x", CardFields: CardFields{Title: &title}})["id"].(string)
	next := strings.ReplaceAll(old, "idea", "plan")
	if res := f.do(f.person(VBoardApply), BoardApply{Board: "x", YAML: next}); res.Err == nil || res.Err.Check != "migrate" || !strings.Contains(res.Err.Message, id) {
		t.Fatalf("apply without migrate: %v", res.Err)
	}
	f.must(f.person(VBoardApply), BoardApply{Board: "x", YAML: next + "migrate: {idea: plan}\n"})
	if c := GetCard(f.v, id); c.Status != "plan" {
		t.Fatalf("card is in %s, want plan", c.Status)
	}
}

// A panic in a handler is a refusal, and a poisoned due time holds up no other (invariants 22, 27).
func TestDuePoison(t *testing.T) {
	f := newFleet(t)
	good := f.card("good")
	f.v.Apply(&Txn{Ops: []Op{
		{Table: TDue, Key: DueKey(5, DueCard, "d-99"), Val: marshal(&Due{At: 5, Kind: DueCard, Key: "d-99"})},
		{Table: TDue, Key: DueKey(6, DueRun, "no.run"), Val: marshal(&Due{At: 6, Kind: DueRun, Key: "no.run"})},
		{Table: TDue, Key: DueKey(7, DueCard, good), Val: marshal(&Due{At: 7, Kind: DueCard, Key: good})},
	}})
	f.must(Request{Actor: Platform(), Verb: VDue}, DueArgs{Keys: []string{DueKey(5, DueCard, "d-99"), DueKey(6, DueRun, "no.run"), DueKey(7, DueCard, good)}})
	if NextDue(f.v) != 0 {
		t.Fatal("a due time that has come is still there: it would come again for ever")
	}
}

// The codec keeps what a newer version wrote (architecture.md §7).
func TestUnknownFieldsSurvive(t *testing.T) {
	c := &Card{ID: "d-1", Title: "t", Labels: map[string]string{"a": "b"}}
	newer := append(marshal(c), 63<<2|kindBytes) // tag 63, three bytes
	newer[len(newer)-1] = 0xfd
	newer = append(newer, 0x01, 3, 'x', 'y', 'z')
	got := new(Card)
	if err := unmarshal(newer, got); err != nil {
		t.Fatal(err)
	}
	got.Title = "changed"
	again := new(Card)
	if err := unmarshal(marshal(got), again); err != nil || !strings.HasSuffix(string(marshal(got)), "xyz") || again.Title != "changed" || again.Labels["a"] != "b" {
		t.Fatalf("unknown field lost: %q (%v)", marshal(got), err)
	}
}

// What has come due at once is more than one transaction may hold: what fits is
// done, the rest stays due, and each request makes progress (invariant 22). A
// refusal of the whole would be asked again for ever.
func TestDueTakesWhatFits(t *testing.T) {
	f := newFleet(t)
	const n = 250
	for range n { // runs past their runtime, each on a card of its own
		run := f.launched(f.card("x"))
		r := GetRun(f.v, run)
		f.v.Apply(&Txn{Ops: []Op{{Table: THeld, Key: run, Delete: true},
			{Table: TDue, Key: DueKey(r.Expires, DueRun, run), Val: marshal(&Due{At: r.Expires, Kind: DueRun, Key: run})},
			{Table: TRun, Key: RunKey(run), Val: marshal(func() *Run { r.Runtime = 1; return r }())}}})
	}
	f.now += 24 * 60 * 60 * 1000
	for rounds := 0; NextDue(f.v) != 0 && NextDue(f.v) <= f.now; rounds++ {
		if rounds == n {
			t.Fatal("due times are left, and no request takes them")
		}
		var keys []string
		EachDue(f.v, f.now, func(k string, _ *Due) bool { keys = append(keys, k); return true })
		before := len(keys)
		f.must(Request{Actor: Platform(), Verb: VDue}, DueArgs{Keys: keys})
		left := 0
		EachDue(f.v, f.now, func(string, *Due) bool { left++; return true })
		if left >= before {
			t.Fatalf("%d due times before, %d after", before, left)
		}
	}
}

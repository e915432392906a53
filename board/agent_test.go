package board

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// agentOf is the agent of a card in a role, by its key.
func (f *fleet) agentOf(card, role string) *Agent {
	f.t.Helper()
	h := GetHead(f.v, OrgOf(f.v), "card/"+card+"/"+role)
	if h == nil {
		return nil
	}
	return GetAgent(f.v, h.Agent)
}

// over ends a run's session: nothing of it lives.
func (f *fleet) over(run string) {
	f.t.Helper()
	zero := int64(0)
	if res := f.report(atlas, Report{Kind: ReportExited, Run: run, Code: &zero}); res.Err != nil {
		f.t.Fatal(res.Err)
	}
}

func (f *fleet) kinds(card, kind string) (list []*Event) {
	CardEvents(f.v, GetCard(f.v, card), func(e *Event) bool {
		if e.Kind == kind {
			list = append(list, e)
		}
		return true
	})
	return list
}

// AGT-01, AGT-02, AGT-05, AGT-06: a start declares the card's agent under its key; its id is of the form of all ids and stays,
// start after start, and the head names it. What was intended is in its record.
func TestStartDeclaresTheAgentOfCardAndRole(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	first := f.launched(card)
	a := f.agentOf(card, "implementer")
	if a == nil || !regexp.MustCompile(`^ag-[0-9a-f]{20}$`).MatchString(a.ID) || a.StableKey() != "card/"+card+"/implementer" || a.Generation != 1 {
		t.Fatalf("after a start: %+v", a)
	}
	if a.Org != LocalOrg || a.Card != card || a.Role != "implementer" || a.Profile != "sh" || a.Created != f.now || a.Kind != AgentCard {
		t.Errorf("what was intended: %+v", a)
	}
	var p struct{ Name, Harness string }
	if err := json.Unmarshal(a.Resolved, &p); err != nil || p.Name != "sh" || p.Harness != "command" {
		t.Errorf("its profile is kept as %s", a.Resolved)
	}
	f.say(card, "reclaim", nil)
	f.over(first)
	second := f.launched(card)
	if b := f.agentOf(card, "implementer"); second == first || b.ID != a.ID || GetRun(f.v, second).Agent.ID != a.ID || GetRun(f.v, first).Agent.ID != a.ID {
		t.Errorf("runs %s and %s are of agents %q and %q", first, second, GetRun(f.v, first).Agent.ID, GetRun(f.v, second).Agent.ID)
	}
	if n := len(f.kinds(card, "agent_declared")); n != 1 {
		t.Errorf("it is told %d times", n)
	}
}

// AGT-10, AGT-14: the root is there before any other and has no parent; a profile's agent comes after that of the profile
// which it inherits from, up to the root, and the path says so.
func TestAgentsComeOfTheRoot(t *testing.T) {
	f := newFleet(t)
	f.must(f.person(VBoardApply), BoardApply{Board: "default", YAML: commands + "  default: {harness: command, args: [true]}\n  base: {harness: command, args: [make]}\n  deep: {parent: base, args: [deep]}\n"})
	title, who := "x", "deep"
	card := f.must(f.person(VCardAdd), CardAdd{CardFields: CardFields{Title: &title, Assignee: &who}})["id"].(string)
	f.launched(card)
	a := f.agentOf(card, "implementer")
	var line []string
	for x := a; x != nil; x = GetAgent(f.v, x.Parent) {
		line = append(line, x.StableKey())
	}
	if got := strings.Join(line, " < "); got != "card/"+card+"/implementer < profile/deep < profile/base < root" {
		t.Errorf("parents: %s", got)
	}
	if a.Path != "root/base/deep/"+card+".implementer" {
		t.Errorf("path %s", a.Path)
	}
	root := GetAgent(f.v, GetHead(f.v, LocalOrg, "root").Agent)
	if root.Profile != "default" || root.Parent != "" || root.State() != "active" {
		t.Errorf("root: %+v", root)
	}
	if p := GetAgent(f.v, a.Parent); p.StarterKind != StarterAutomation || p.Starter != "orchestrator:default" {
		t.Errorf("who starts the profile's agent: %s %s", p.StarterKind, p.Starter)
	}
}

// AGT-07: an agent that stands takes the profile as it is now; the root keeps the one that it was declared with.
func TestAgentTakesTheProfileOfNow(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.launched(card)
	root := GetAgent(f.v, GetHead(f.v, LocalOrg, "root").Agent)
	f.say(card, "reclaim", nil)
	f.over(run)
	f.must(f.person(VBoardApply), BoardApply{Board: "default", YAML: strings.Replace(commands, "sh: {harness: command,", "sh: {harness: command, model: other,", 1)})
	f.launched(card)
	if a := f.agentOf(card, "implementer"); !strings.Contains(string(a.Resolved), `"model":"other"`) {
		t.Errorf("its profile is %s", a.Resolved)
	}
	if now := GetAgent(f.v, root.ID); string(now.Resolved) != string(root.Resolved) {
		t.Errorf("the root's profile is now %s", now.Resolved)
	}
}

// AGT-08: an agent that ended is never started again: the next start of its key is another generation. Not so the root, which never ends.
func TestAnEndedAgentIsNotStartedAgain(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.launched(card)
	a := f.agentOf(card, "implementer")
	if res := f.do(f.person(VAgentEnd), AgentEnd{Agent: a.ID}); code(res) != Refused || !strings.Contains(res.Err.Message, run) {
		t.Errorf("an agent ends while its session lives: %v", res.Err)
	}
	f.say(card, "reclaim", nil)
	f.over(run)
	f.must(f.person(VAgentEnd), AgentEnd{Agent: card + "/implementer", Why: "enough"})
	again := f.launched(card)
	b := f.agentOf(card, "implementer")
	if b.ID == a.ID || b.Generation != 2 || b.StableKey() != "card/"+card+"/implementer/generation/2" || GetRun(f.v, again).Agent.ID != b.ID || b.Memory.Hash != "" {
		t.Errorf("after its end: %+v", b)
	}
	if old := GetAgent(f.v, a.ID); old.State() != "ended" || old.Why != "enough" {
		t.Errorf("the one that ended: %+v", old)
	}
	if res := f.do(f.person(VAgentEnd), AgentEnd{Agent: "root"}); code(res) != Refused {
		t.Errorf("the root ends: %v", res.Err)
	}
}

// AGT-04, AGT-09, M-27: what stands wins over what a request brings; a bump names the generation that it expects, and one
// that comes late is answered the agent that there is.
func TestDeclaringIsCompareAndSet(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	declare := func(d AgentDeclare) map[string]any {
		t.Helper()
		d.Card = card
		return f.must(f.person(VAgentDeclare), d)
	}
	first, second := declare(AgentDeclare{ID: "ag-aaaaaaaaaaaaaaaa"}), declare(AgentDeclare{ID: "ag-bbbbbbbbbbbbbbbb"})
	if first["id"] != "ag-aaaaaaaaaaaaaaaa" || second["id"] != first["id"] || second["fresh"] != false {
		t.Errorf("declared twice: %v, %v", first, second)
	}
	f.must(f.person(VAgentEnd), AgentEnd{Agent: first["id"].(string)})
	bump, late := declare(AgentDeclare{Next: 1, ID: "ag-cccccccccccccccc"}), declare(AgentDeclare{Next: 1, ID: "ag-dddddddddddddddd"})
	if bump["generation"] != 2.0 || late["id"] != bump["id"] || late["generation"] != 2.0 {
		t.Errorf("bumped twice: %v, %v", bump, late)
	}
	f.must(f.person(VAgentEnd), AgentEnd{Agent: bump["id"].(string)})
	if res := f.do(f.person(VAgentDeclare), AgentDeclare{Card: card, ID: first["id"].(string)}); code(res) != Refused || res.Err.Check != "agent_ended" {
		t.Errorf("the id of an agent that has ended, again: %v", res.Err)
	}
	if third := declare(AgentDeclare{Next: 1}); third["id"] != bump["id"] || third["state"] != "ended" {
		t.Errorf("a bump from generation 1, when 2 has ended too: %v", third)
	}
	if res := f.do(f.person(VAgentDeclare), AgentDeclare{Card: card, Next: 7}); code(res) != Conflict {
		t.Errorf("a bump from a generation that is not there: %v", res.Err)
	}
	if res := f.do(f.person(VAgentDeclare), AgentDeclare{Card: f.card("y"), ID: "ag-aaaaaaaaaaaaaaaa"}); code(res) != Conflict {
		t.Errorf("another's id: %v", res.Err)
	}
}

// AGT-03, AGT-11: a new agent is the fleet's own: nobody outside was asked, it is handed on to nobody yet, and says so.
func TestANewAgentIsLocal(t *testing.T) {
	f := newFleet(t)
	got := f.must(f.person(VAgentDeclare), AgentDeclare{Card: f.card("x")})
	if got["org"] != LocalOrg || got["synced"] != false || got["fresh"] != true {
		t.Errorf("%v", got)
	}
}

// AGT-12: the starter is the session that filed the card, or the person who started it, or the board; the sponsor is the person behind.
func TestStarterAndSponsor(t *testing.T) {
	f := newFleet(t)
	one := f.card("one")
	run := f.launched(one)
	if a := f.agentOf(one, "implementer"); a.StarterKind != StarterAutomation || a.Starter != "board:default" || a.Sponsor != "ann@atlas" {
		t.Errorf("started by the fleet: %s %s for %s", a.StarterKind, a.Starter, a.Sponsor)
	}
	title, who := "two", "sh"
	two := f.must(Request{Actor: Actor{Kind: ActorRun, Run: run, Node: atlas}, Verb: VCardAdd, Secret: "s-" + run}, CardAdd{CardFields: CardFields{Title: &title, Assignee: &who}})["id"].(string)
	f.say(two, "specify", map[string]any{"title": "two", "body": "b"})
	f.launched(two)
	a := f.agentOf(two, "implementer")
	if a.StarterKind != StarterSession || a.Starter != orElse(GetRun(f.v, run).SessionID, run) || a.Sponsor != "ann@atlas" {
		t.Errorf("filed by a session: %s %s for %s", a.StarterKind, a.Starter, a.Sponsor)
	}
	three := f.card("three")
	p := f.person(VStart)
	p.Place = atlas
	f.must(p, Start{Card: three})
	if a := f.agentOf(three, "implementer"); a.StarterKind != StarterPerson || a.Starter != "ann@atlas" {
		t.Errorf("started by a person: %s %s", a.StarterKind, a.Starter)
	}
}

// AGT-13: an agent that a manager gave a card works it, before that of the card's own key, as long as it has not ended.
func TestReassignedAgentWins(t *testing.T) {
	f := newFleet(t)
	one, two := f.card("one"), f.card("two")
	run := f.launched(one)
	a := f.agentOf(one, "implementer")
	own := f.must(f.person(VAgentDeclare), AgentDeclare{Card: two})["id"].(string)
	f.must(f.person(VEvent), FireEvent{Card: two, Event: "reassign", Payload: map[string]any{"assignee": "sh"}, Agent: a.ID})
	second := f.launched(two)
	if got := GetRun(f.v, second).Agent.ID; got != a.ID {
		t.Errorf("run %s is of agent %s, want %s", second, got, a.ID)
	}
	for _, r := range []string{run, second} {
		f.say(CardOfRun(r), "reclaim", nil)
		f.over(r)
	}
	f.must(f.person(VAgentEnd), AgentEnd{Agent: a.ID})
	if got := GetRun(f.v, f.launched(two)).Agent.ID; got != own {
		t.Errorf("after its end the card is worked by %s, want its own, %s", got, own)
	}
	member := f.person(VEvent)
	if res := f.do(member, FireEvent{Card: two, Event: "comment", Payload: map[string]any{"text": "x"}, Agent: own}); code(res) != Refused {
		t.Errorf("an agent is given a card by a comment: %v", res.Err)
	}
	if res := f.do(f.person(VEvent), FireEvent{Card: two, Event: "reassign", Payload: map[string]any{"assignee": "sh"}, Agent: a.ID}); code(res) != Refused || res.Err.Check != "agent_ended" {
		t.Errorf("a card is given to an agent that has ended: %v", res.Err)
	}
}

// AGT-15, AGT-17: closing a card, by whatever way, ends its agents' assignments in that transaction, with the reason, without
// anything in the workflow or a dispatcher; an agent with none left has its end queued. AGT-20: assigned again, it is taken out of the queue, the same agent.
func TestClosingACardEndsItsAssignments(t *testing.T) {
	f := newFleet(t)
	plain := strings.Replace(commands, "extends: default", "extends: default\nstatuses: {done: {enter: []}, cancelled: {enter: []}}", 1)
	f.must(f.person(VBoardApply), BoardApply{Board: "default", YAML: plain})
	for name, end := range map[string]func(card string){
		"cancelled": func(card string) { f.say(card, "cancel", nil) },
		"done":      func(card string) { f.must(f.person(VCardPut), CardPut{Card: card, Status: "done", Why: "by hand"}) },
	} {
		card := f.card("x")
		run := f.launched(card)
		a := f.agentOf(card, "implementer")
		end(card)
		now := GetAgent(f.v, a.ID)
		if now.State() != "ending" || now.Active != 0 || now.Why != name || now.Ended != 0 {
			t.Errorf("%s: its agent is %s (%s), %d assignments", name, now.State(), now.Why, now.Active)
		}
		EachAssignment(f.v, AgentCard, card, func(w *Assignment) bool {
			if w.Ended != f.now || w.Why != name {
				t.Errorf("%s: assignment %+v", name, w)
			}
			return true
		})
		if n := len(f.kinds(card, "agent_released")); n != 1 {
			t.Errorf("%s: told %d times", name, n)
		}
		f.over(run)
		if name == "done" {
			f.say(card, "reopen", map[string]any{"why": "again"})
			again := f.launched(card)
			now = GetAgent(f.v, a.ID)
			if now.State() != "active" || now.Active != 1 || GetRun(f.v, again).Agent.ID != a.ID {
				t.Errorf("taken up again: %s, %d assignments, run of %s", now.State(), now.Active, GetRun(f.v, again).Agent.ID)
			}
		}
	}
}

// AGT-16, SUB-03: a part of a card gets no agent; a finished card's new assignment is over at once; the event says who, what and where.
func TestWhatDeclareAgentDoes(t *testing.T) {
	f := newFleet(t)
	f.must(f.person(VBoardApply), BoardApply{Board: "default", YAML: commands + "on: {late: [{do: [declare_agent]}]}\n"})
	card := f.card("x")
	first := f.launched(card)
	var p map[string]any
	if err := json.Unmarshal(f.kinds(card, "agent_declared")[0].Payload, &p); err != nil {
		t.Fatal(err)
	}
	a := f.agentOf(card, "implementer")
	for k, want := range map[string]string{"agent": a.ID, "org": "local", "role": "implementer", "profile": "sh", "handed_to_machine": "atlas", "assignment": "card/" + card + "/" + a.ID + "/implementer"} {
		if fmt.Sprint(p[k]) != want {
			t.Errorf("the event has %s %v, want %s", k, p[k], want)
		}
	}
	f.say(card, "reclaim", nil)
	f.over(first)
	title, who := "part", "sh"
	part := f.must(f.person(VCardAdd), CardAdd{SubtaskOf: card, CardFields: CardFields{Title: &title, Assignee: &who}})["id"].(string)
	byHand := f.person(VStart)
	byHand.Place = atlas
	if run := f.must(byHand, Start{Card: part})["run"].(string); GetRun(f.v, run).Agent.ID != "" || f.agentOf(part, "implementer") != nil {
		t.Errorf("a part of a card has an agent: %+v", f.agentOf(part, "implementer"))
	}
	if res := f.do(f.person(VAgentDeclare), AgentDeclare{Card: part}); code(res) != Refused {
		t.Errorf("a part of a card is given an agent: %v", res.Err)
	}
	done := f.card("done")
	f.must(f.person(VCardPut), CardPut{Card: done, Status: "done", Why: "by hand"})
	f.say(done, "late", nil)
	if a := f.agentOf(done, "implementer"); a == nil || a.Active != 0 || a.State() != "ending" {
		t.Errorf("the agent of a finished card: %+v", a)
	}
}

// AGT-23: a fork comes of a session that ran here for its parent, has its configuration and no memory, and is itself no parent's key; an ended one asks for a new key.
func TestFork(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	own := f.must(f.person(VAgentDeclare), AgentDeclare{Card: card})["id"].(string)
	if res := f.do(f.person(VAgentFork), AgentFork{Agent: own, Key: "k"}); code(res) != Refused || !strings.Contains(res.Err.Message, "no session") {
		t.Errorf("a fork of an agent that never ran: %v", res.Err)
	}
	f.launched(card)
	if res := f.do(f.person(VAgentFork), AgentFork{Agent: own, Key: "k", Session: "other"}); code(res) != Refused {
		t.Errorf("a fork of another's session: %v", res.Err)
	}
	if res := f.do(f.person(VAgentFork), AgentFork{Agent: own, Key: "a/b"}); code(res) != Invalid {
		t.Errorf("a key with a slash: %v", res.Err)
	}
	id := f.must(f.person(VAgentFork), AgentFork{Agent: own, Key: "k"})["id"].(string)
	x, parent := GetAgent(f.v, id), GetAgent(f.v, own)
	if x.Parent != own || x.StableKey() != "fork/"+own+"/k" || x.Profile != parent.Profile || string(x.Resolved) != string(parent.Resolved) || x.Memory.Hash != "" || x.Path != parent.Path+"/k" {
		t.Errorf("fork: %+v", x)
	}
	if again := f.must(f.person(VAgentFork), AgentFork{Agent: own, Key: "k"}); again["id"] != id || again["fresh"] != false {
		t.Errorf("the same key again: %v", again)
	}
	f.must(f.person(VAgentEnd), AgentEnd{Agent: id})
	if res := f.do(f.person(VAgentFork), AgentFork{Agent: own, Key: "k"}); code(res) != Refused || res.Err.Check != "agent_ended" {
		t.Errorf("the key of a fork that ended: %v", res.Err)
	}
}

// Who did what is answerable: what a session says bears its run, its agent and its machine.
func TestSessionsSpeakForTheirAgent(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.launched(card)
	f.must(Request{Actor: Actor{Kind: ActorRun, Run: run, Node: atlas, Agent: "ag-forged"}, Verb: VEvent, Secret: "s-" + run}, FireEvent{Card: card, Event: "comment", Payload: map[string]any{"text": "x"}})
	e := f.kinds(card, "comment")[0]
	if a := f.agentOf(card, "implementer"); e.Actor.Agent != a.ID || e.Actor.Run != run || e.Actor.Node != atlas {
		t.Errorf("said by %+v, want agent %s", e.Actor, a.ID)
	}
}

// A state that not every node can hold agents in has none: workflows that declare them run as before.
func TestNoAgentsBelowTheirFormat(t *testing.T) {
	f := newFleet(t)
	fl := GetFleet(f.v)
	fl.Format = FormatAgents - 1
	f.v.Apply(&Txn{Ops: []Op{{Table: TFleet, Key: FleetKey, Val: marshal(fl)}}})
	card := f.card("x")
	f.over(f.launched(card))
	EachAgent(f.v, func(a *Agent) bool { t.Errorf("agent %s is there", a.Key); return true })
	if res := f.do(f.person(VAgentDeclare), AgentDeclare{Card: card}); code(res) != Refused || res.Err.Check != "format" {
		t.Errorf("declared: %v", res.Err)
	}
}

// M-29, AGT-24: the newest snapshot of the writing session is what the next one begins with; it is in the order, and the
// prompt names agent and earlier sessions. A session beside it reads a copy, and what it keeps is nobody's next memory.
func TestMemoryFollowsTheAgent(t *testing.T) {
	f := newFleet(t)
	one, two := f.card("one"), f.card("two")
	first := f.launched(one)
	a := f.agentOf(one, "implementer")
	if a.Writer != first {
		t.Fatalf("the writer is %q, want %s", a.Writer, first)
	}
	f.must(f.person(VEvent), FireEvent{Card: two, Event: "reassign", Payload: map[string]any{"assignee": "sh"}, Agent: a.ID})
	beside := f.launched(two)
	if r := GetRun(f.v, beside); !r.Agent.Reads || GetAgent(f.v, a.ID).Writer != first {
		t.Errorf("two write: %+v, writer %s", r.Agent, GetAgent(f.v, a.ID).Writer)
	}
	took := func(run, hash string) {
		t.Helper()
		if res := f.report(atlas, Report{Kind: ReportMemory, Run: run, Memory: &MemoryReport{Hash: hash, Bytes: 3, Files: 1}}); res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	took(beside, strings.Repeat("b", 64))
	if m := GetAgent(f.v, a.ID).Memory; m.Hash != "" {
		t.Errorf("what a reader keeps is the memory: %+v", m)
	}
	if len(f.kinds(two, "agent_memory_kept")) != 1 {
		t.Error("what a reader kept is not told")
	}
	took(first, strings.Repeat("a", 64))
	took(first, strings.Repeat("a", 64))
	if n := len(f.kinds(one, "agent_memory")); n != 1 {
		t.Errorf("the same snapshot is told %d times", n)
	}
	zero := int64(0)
	if res := f.report(atlas, Report{Kind: ReportExited, Run: first, Code: &zero, Memory: &MemoryReport{Hash: strings.Repeat("c", 64), Bytes: 4, Files: 1}}); res.Err != nil {
		t.Fatal(res.Err)
	}
	if m := GetAgent(f.v, a.ID).Memory; m.Hash != strings.Repeat("c", 64) || m.Run != first || m.Node != atlas {
		t.Errorf("after its end: %+v", m)
	}
	f.say(one, "reopen", map[string]any{"why": "again"})
	next := f.start(one, atlas)
	var spec StartSpec
	r := GetRun(f.v, next)
	if err := json.Unmarshal(GetOrder(f.v, atlas, r.Order).Spec, &spec); err != nil {
		t.Fatal(err)
	}
	if spec.Agent == nil || spec.Agent.ID != a.ID || spec.Agent.Hash != strings.Repeat("c", 64) || spec.Agent.Node != atlas || spec.Agent.Reads {
		t.Errorf("the order says %+v", spec.Agent)
	}
	for _, want := range []string{"You are agent " + a.ID, orElse(GetRun(f.v, first).SessionID, first) + " on atlas: ended ", "completed", MemoryNote} {
		if !strings.Contains(spec.Prompt, want) {
			t.Errorf("the prompt lacks %q:\n%s", want, spec.Prompt)
		}
	}
}

// M-29: a session whose machine was given up writes no memory any more: what it kept stays with its run, and is shown.
func TestAGoneSessionWritesNoMemory(t *testing.T) {
	f := newFleet(t)
	card := f.card("x")
	run := f.launched(card)
	a := f.agentOf(card, "implementer")
	f.must(f.person(VEvent), FireEvent{Card: card, Event: "reclaim", Force: true, Why: "dead"})
	f.report(atlas, Report{Kind: ReportMemory, Run: run, Memory: &MemoryReport{Hash: strings.Repeat("a", 64)}})
	if m := GetAgent(f.v, a.ID).Memory; m.Hash != "" || len(f.kinds(card, "agent_memory_kept")) != 1 {
		t.Errorf("it wrote %+v", m)
	}
	if res := f.do(f.person(VAgentMemory), AgentMemory{Agent: a.ID, Hash: "aaaaaa"}); res.Err != nil {
		t.Fatal(res.Err)
	}
	if m := GetAgent(f.v, a.ID).Memory; m.Hash != strings.Repeat("a", 64) {
		t.Errorf("taken back to %+v", m)
	}
	if res := f.do(f.person(VAgentMemory), AgentMemory{Agent: a.ID, Hash: "bbbbbb"}); code(res) != NotFound {
		t.Errorf("a snapshot that is not there: %v", res.Err)
	}
}

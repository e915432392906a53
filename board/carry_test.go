package board

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
)

const carried = "migrate: {idea: plan, draft: write, parked: shelf, roles: {writer: author}, slots: {desk: table}}\n"

// many has a board with so many cards that wait, before and behind one that is worked and one that is parked.
func many(t *testing.T, n int) (f *fleet, busy, parked string, rest []string) {
	f, first, busy, parked := underWay(t)
	rest = []string{first}
	for i := range n {
		title := fmt.Sprint("card ", i)
		rest = append(rest, f.must(f.person(VCardAdd), CardAdd{Board: "x", CardFields: CardFields{Title: &title}})["id"].(string))
	}
	return f, busy, parked, rest
}

func next() string {
	return renamed("idea", "plan", "draft", "write", "parked", "shelf", "writer", "author", "desk", "table") + carried
}

// M-22: a status with more cards than one transaction holds is mapped in slices, by due times, so that whoever leads goes
// on; none is large. Only the next version, and a file of the board, wait for the last of them.
func TestManyCardsAreCarriedOver(t *testing.T) {
	f, busy, parked, rest := many(t, 1300)
	out := f.must(f.person(VBoardApply), BoardApply{Board: "x", YAML: next(), DryRun: true})
	if out["moved"] != 1303.0 || out["in_steps"] != true || GetBoard(f.v, "x").Workflow != 1 {
		t.Fatalf("dry run: %v", out)
	}
	out = f.must(f.person(VBoardApply), BoardApply{Board: "x", YAML: next()})
	if out["moved"] != 1303.0 || out["in_steps"] != true || GetCard(f.v, rest[7]).Status != "idea" {
		t.Fatalf("%v, %+v", out, GetCard(f.v, rest[7]))
	}
	if err := Export(f.v, GetBoard(f.v, "x"), func([]byte) error { return nil }); CodeOf(err) != Unavailable {
		t.Fatalf("exported between two slices: %v", err)
	}
	if res := f.do(f.person(VBoardApply), BoardApply{Board: "x", YAML: flowOf}); res.Err == nil || res.Err.Code != Conflict {
		t.Fatalf("another version between two slices: %v", res.Err)
	}
	if steps := f.dues(carryPerStep + 40); steps < 3 {
		t.Fatalf("in %d steps", steps)
	}
	for _, id := range rest {
		if c := GetCard(f.v, id); c.Status != "plan" || c.Run != "" {
			t.Fatalf("card %s is in %s", id, c.Status)
		}
	}
	r := GetRun(f.v, GetCard(f.v, busy).Run)
	if r.Role != "author" || r.Slot != "table" || r.Source != "plan" || r.Status != "write" || GetSlot(f.v, busy, "table") == nil {
		t.Fatalf("%+v", r)
	}
	if c, b := GetCard(f.v, parked), GetBoard(f.v, "x"); c.Status != "shelf" || c.Previous != "plan" || b.Carry != "" || b.CarryFrom != 0 {
		t.Fatalf("%+v, %+v", c, b)
	}
	if err := f.apply(next()); err != nil {
		t.Fatal(err)
	}
}

// M-22: between two slices no card is worse off: a session's word, its end, a person's word and a start take a card along
// that was not reached yet, and the slices find it done.
func TestACardIsCarriedOverWhenItIsSpokenOf(t *testing.T) {
	for name, speak := range map[string]func(f *fleet, busy, idle string) (card, status string){
		"the session": func(f *fleet, busy, _ string) (string, string) {
			r := GetRun(f.v, GetCard(f.v, busy).Run)
			word := Request{Actor: Actor{Kind: ActorRun, Run: r.ID, Node: atlas}, Verb: VEvent, Secret: "s-" + r.ID}
			f.must(word, FireEvent{Card: busy, Event: "submit"})
			return busy, "done"
		},
		"its end": func(f *fleet, busy, _ string) (string, string) {
			one := int64(1)
			if res := f.report(atlas, Report{Kind: ReportExited, Run: GetCard(f.v, busy).Run, Code: &one}); res.Err != nil {
				f.t.Fatal(res.Err)
			}
			return busy, "plan"
		},
		"a person": func(f *fleet, _, idle string) (string, string) {
			f.must(f.person(VEvent), FireEvent{Card: idle, Event: "hold"})
			return idle, "shelf"
		},
		"a start": func(f *fleet, _, idle string) (string, string) {
			who := "sh"
			f.must(f.person(VCardEdit), CardEdit{Card: idle, CardFields: CardFields{Assignee: &who}})
			f.start(idle, atlas)
			if r := GetRun(f.v, GetCard(f.v, idle).Run); r.Source != "plan" || r.Role != "author" || r.Slot != "table" {
				f.t.Fatalf("%+v", r)
			}
			return idle, "write"
		},
	} {
		t.Run(name, func(t *testing.T) {
			f, busy, _, rest := many(t, 700)
			f.must(f.person(VBoardApply), BoardApply{Board: "x", YAML: next()})
			id, want := speak(f, busy, rest[600])
			if c := GetCard(f.v, id); c.Status != want {
				t.Fatalf("card %s is in %s, want %s", id, c.Status, want)
			}
			f.dues(carryPerStep + 40)
			for _, other := range append(rest, id) {
				c := GetCard(f.v, other)
				if st := c.Status; other == id && st != want || other != id && st != "plan" || strings.Contains("idea draft parked", st) {
					t.Fatalf("card %s is in %s", other, st)
				}
			}
		})
	}
}

// M-22: a live session whose doors changed is told the new ones, once; one whose doors did not change, and one that
// nobody can type at, are told nothing. The same when a parameter of the board changed them.
func TestSessionsAreToldOfOtherDoors(t *testing.T) {
	more := strings.Replace(flowOf, "submit: [{by: [writer]", "shelve: [{by: [writer], target: parked, do: [{end_run: shelved}]}]\n      submit: [{by: [writer]", 1)
	for _, c := range []struct {
		name, yaml string
		told       bool
	}{{"another door", more, true}, {"the same doors", strings.Replace(flowOf, "args: [make]", "args: [make, -s]", 1), false}} {
		t.Run(c.name, func(t *testing.T) {
			f, _, busy, _ := underWay(t)
			headless := f.card("other board")
			f.launched(headless)
			f.pane(GetCard(f.v, busy).Run)
			if err := f.apply(c.yaml); err != nil {
				t.Fatal(err)
			}
			var got []*Delivery
			EachDelivery(f.v, "", func(d *Delivery) bool { got = append(got, d); return true })
			if !c.told {
				if len(got) != 0 {
					t.Fatalf("told: %s", got[0].Text)
				}
				return
			}
			if len(got) != 1 || got[0].Card != busy || got[0].State != DeliveryOrdered || !strings.Contains(got[0].Text, "muster event "+busy+" shelve") ||
				!strings.HasPrefix(got[0].Text, "[automated notice") {
				t.Fatalf("%+v", got)
			}
		})
	}
	w := agents(t)
	id := w.add("x", func(c *Card) { c.Assignee = "claude-pane" })
	w.started(id)
	quiet := w.add("y", func(c *Card) { c.Assignee = "claude" })
	w.started(quiet)
	for range 2 { // the second time nothing changes
		if res := w.ask(Actor{Kind: ActorPerson, Name: "ann@atlas", Node: "n-atlas"}, VBoardSet, BoardSet{Board: "web", Set: map[string]json.RawMessage{"params.review": json.RawMessage("false")}}); res.Err != nil {
			t.Fatal(res.Err)
		}
	}
	var got []*Delivery
	EachDelivery(w.v, "", func(d *Delivery) bool { got = append(got, d); return true })
	if len(got) != 1 || got[0].Card != id || strings.Contains(got[0].Text, "a review is wanted here") || !strings.Contains(got[0].Text, "muster complete --summary") {
		t.Fatalf("%+v", got)
	}
	w.lastEvent(id, "doors_changed")
}

// M-22: what telling the sessions of a board would write is bounded in bytes, too: large cards are told of in
// slices, each session once.
func TestTellingIsBoundedInBytes(t *testing.T) {
	w := agents(t)
	labels := map[string]string{"long": strings.Repeat("x", 40<<10)}
	for range 30 {
		id := w.add("large", func(c *Card) { c.Assignee, c.Labels = "claude-pane", labels })
		if _, err := w.firing(id, firing{Event: "start", Actor: manager, Force: true, Why: "x", Start: &startCtx{Node: "n-atlas"}}); err != nil {
			t.Fatal(err)
		}
		w.launched(GetRun(w.v, w.card(id).Run))
	}
	set := BoardSet{Board: "web", Set: map[string]json.RawMessage{"params.review": json.RawMessage("false")}}
	if res := w.ask(person, VBoardSet, set); res.Err != nil {
		t.Fatal(res.Err)
	}
	if GetBoard(w.v, "web").Carry == "" {
		t.Fatal("it was not too much for one transaction")
	}
	for steps := 0; GetBoard(w.v, "web").Carry != ""; steps++ {
		if w.now++; steps > 10 {
			t.Fatal("it never ends")
		}
		w.due()
	}
	told, n := map[string]int{}, 0
	EachDelivery(w.v, "", func(d *Delivery) bool { told[d.Card]++; n++; return true })
	if len(told) != 30 || n != 30 {
		t.Fatalf("%d sessions were told %d times", len(told), n)
	}
}

// M-22: a session that is spoken of between two slices is told the new doors once, however often it speaks; one that was
// claimed since the version is in force knows them.
func TestSessionsAreToldOnceWhileCarried(t *testing.T) {
	f, busy, _, rest := many(t, 700)
	f.pane(GetCard(f.v, busy).Run)
	more := strings.Replace(next(), "submit: [{by: [author]", "shelve: [{by: [author], target: shelf, do: [{end_run: shelved}]}]\n      ping: [{do: [{set: {priority: card.priority + 1}}]}]\n      submit: [{by: [author]", 1)
	f.must(f.person(VBoardApply), BoardApply{Board: "x", YAML: more})
	for range 2 {
		f.must(f.person(VEvent), FireEvent{Card: busy, Event: "ping"})
	}
	late, who := rest[600], "sh"
	f.must(f.person(VCardEdit), CardEdit{Card: late, CardFields: CardFields{Assignee: &who}})
	f.launched(late)
	f.pane(GetCard(f.v, late).Run)
	f.must(f.person(VEvent), FireEvent{Card: late, Event: "ping"})
	f.dues(carryPerStep + 40)
	told := map[string]int{}
	EachDelivery(f.v, "", func(d *Delivery) bool {
		if strings.Contains(d.Text, "has changed while you work") {
			told[d.Card]++
		}
		return true
	})
	if told[busy] != 1 || len(told) != 1 || GetBoard(f.v, "x").CarrySeq != 0 {
		t.Fatalf("told %v, busy is %s", told, busy)
	}
}

// M-22: between two slices no parameter changes, and a workflow that cannot be used for a while does not end it.
func TestCarryingOverEnds(t *testing.T) {
	f, _, _, rest := many(t, 700)
	f.must(f.person(VBoardApply), BoardApply{Board: "x", YAML: next() + "params: {a: 0}\n"})
	set := BoardSet{Board: "x", Set: map[string]json.RawMessage{"params.a": json.RawMessage("1")}}
	if res := f.do(f.person(VBoardSet), set); res.Err == nil || res.Err.Check != "migrate" {
		t.Fatalf("a parameter between two slices: %v", res.Err)
	}
	key := WorkflowKey("x", GetBoard(f.v, "x").Workflow)
	doc := slices.Clone(f.v.Get(TWorkflow, key))
	f.v.Apply(&Txn{Ops: []Op{{Table: TWorkflow, Key: key}}})
	f.ws = NewWorkflows()
	f.dues(10)
	f.v.Apply(&Txn{Ops: []Op{{Table: TWorkflow, Key: key, Val: doc}}})
	f.ws = NewWorkflows()
	f.now += offerAgain
	f.dues(carryPerStep + 40)
	if c := GetCard(f.v, rest[690]); c.Status != "plan" || GetBoard(f.v, "x").Carry != "" {
		t.Fatalf("card %s is in %s", c.ID, c.Status)
	}
}

// M-22: a version that cannot be used while its cards are carried over does not keep out the one that mends it; a session
// is told of what it may say now as if there had been none between.
func TestUnusableVersionIsMended(t *testing.T) {
	f, busy, _, rest := many(t, 700)
	f.pane(GetCard(f.v, busy).Run)
	f.must(f.person(VBoardApply), BoardApply{Board: "x", YAML: next()})
	f.v.Apply(&Txn{Ops: []Op{{Table: TWorkflow, Key: WorkflowKey("x", GetBoard(f.v, "x").Workflow)}}})
	f.ws = NewWorkflows()
	f.must(f.person(VBoardApply), BoardApply{Board: "x", YAML: next()})
	f.dues(carryPerStep + 40)
	if c := GetCard(f.v, rest[690]); c.Status != "plan" || GetBoard(f.v, "x").Carry != "" {
		t.Fatalf("card %s is in %s", c.ID, c.Status)
	}
}

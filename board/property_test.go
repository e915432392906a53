package board

import (
	"bytes"
	"os"
	"reflect"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// twice asks Exec two times on the same state: it never panics (a panic is an
// internal error), answers the same, and a refusal writes nothing.
func (w *world) twice(r *rapid.T, req *Request) Result {
	txn, res := Exec(w.v, req, w.env())
	again, res2 := Exec(w.v, req, w.env())
	if !reflect.DeepEqual(txn, again) || !bytes.Equal(res.Data, res2.Data) || !reflect.DeepEqual(res.Err, res2.Err) {
		r.Fatalf("%s %s: two answers: %v %v", req.Verb, req.Args, res, res2)
	}
	if res.Err != nil && (!txn.Empty() || res.Err.Code == Internal || res.Err.Message == "") {
		r.Fatalf("%s %s: %+v, and %d records", req.Verb, req.Args, res.Err, len(txn.Ops))
	}
	if !txn.Empty() {
		w.v.Apply(&txn)
	}
	return res
}

var reportKinds = []string{ReportTaken, ReportLaunched, ReportRefused, ReportFailed, ReportExited, ReportGone, ReportSeen, ReportMissing,
	ReportQuiet, ReportHeard, ReportIdle, ReportBusy, ReportDeaf, ReportHears}

// happens does one thing that may happen to a card in a fleet with panes.
func (w *world) happens(r *rapid.T, c *Card, names []string) {
	run := LastRun(w.v, c)
	switch rapid.IntRange(0, 11).Draw(r, "what") {
	case 0, 1:
		node := rapid.SampledFrom([]string{"n-atlas", "n-brick"}).Draw(r, "node")
		w.twice(r, &Request{Actor: Platform(), Verb: VStart, Args: jsonOf(Start{Card: c.ID, Node: node})})
	case 2, 3, 4:
		if run == nil {
			return
		}
		if c.Runs > 1 && rapid.IntRange(0, 4).Draw(r, "old") == 0 {
			run = GetRun(w.v, RunID(c.ID, c.Runs-1))
		}
		w.reports(r, c.ID, run)
	case 5:
		w.after(float64(rapid.SampledFrom([]int{1, 61, 130, 901, 8000}).Draw(r, "seconds")))
		var keys []string
		EachDue(w.v, w.now, func(key string, _ *Due) bool { keys = append(keys, key); return true })
		w.twice(r, &Request{Actor: Platform(), Verb: VDue, Args: jsonOf(DueArgs{Keys: keys})})
	case 6:
		verb := rapid.SampledFrom([]string{VForget, VMove, VAdopt}).Draw(r, "verb")
		req := &Request{Actor: person, Verb: verb, Args: jsonOf(Forget{Card: c.ID})}
		switch verb {
		case VMove:
			req.Args = jsonOf(Move{Card: c.ID, Machine: rapid.SampledFrom([]string{"any", "atlas", "brick"}).Draw(r, "machine")})
		case VAdopt:
			vouch("s-"+c.ID, nil)(req)
			req.Args = jsonOf(Adopt{Card: c.ID})
		}
		w.twice(r, req)
	case 7:
		if run != nil {
			w.says(r, c.ID, run, names)
		}
	case 8, 9:
		if run != nil {
			w.observes(r, c.ID, run)
		}
	default:
		w.twice(r, &Request{Actor: person, Verb: VEvent, Args: jsonOf(FireEvent{Card: c.ID, Event: rapid.SampledFrom(names).Draw(r, "event"), Payload: randomPayload(r)})})
	}
}

// says fires an event in the name of a run, of the current one or one before; one that is not current changes nothing.
func (w *world) says(r *rapid.T, card string, run *Run, names []string) {
	if run.N > 1 && rapid.IntRange(0, 3).Draw(r, "old") == 0 {
		run = GetRun(w.v, RunID(card, run.N-1))
	}
	if run.ID != w.card(card).Run { // what any run of the card could say
		names = []string{"comment", "block", "complete"}
	}
	before, seq := w.card(card), w.v.Seq()
	_, err := w.firing(card, firing{Event: rapid.SampledFrom(names).Draw(r, "event"), Actor: asRun(run.ID), Payload: randomPayload(r)})
	if run.ID != before.Run && (err == nil || w.v.Seq() != seq) {
		r.Fatalf("run %s is not current, and its word was taken", run.ID)
	}
}

// observes tells what the leader or a due time saw of a run.
func (w *world) observes(r *rapid.T, card string, run *Run) {
	if run.N > 1 && rapid.IntRange(0, 3).Draw(r, "old") == 0 {
		run = GetRun(w.v, RunID(card, run.N-1))
	}
	event := rapid.SampledFrom([]string{"timed_out", "stale", "session_lost", "machine_offline", "orphaned", "session_idle"}).Draw(r, "event")
	p := map[string]any{"seconds": rapid.SampledFrom([]float64{0, 700}).Draw(r, "seconds"), "never_came_up": rapid.Bool().Draw(r, "never"),
		"losses": float64(rapid.IntRange(1, 3).Draw(r, "losses")), "turns": float64(rapid.IntRange(0, 30).Draw(r, "turns"))}
	before := w.card(card)
	w.twice(r, &Request{Actor: Platform(), Verb: VObserve, Args: jsonOf(Observe{Run: run.ID, Event: event, Payload: p})})
	w.unchanged(r, event, before, run)
}

// unchanged holds a card against what was seen of a run that is not its current one.
func (w *world) unchanged(r *rapid.T, what string, before *Card, run *Run) {
	after := w.card(before.ID)
	if run.ID != before.Run && (after.Status != before.Status || after.Run != before.Run || after.Failures != before.Failures || after.Attention.Text != before.Attention.Text) {
		r.Fatalf("run %s is not current, and %s changed its card from %+v to %+v", run.ID, what, before, after)
	}
}

// reports sends a node's word about a run; one that is not current changes nothing of its card.
func (w *world) reports(r *rapid.T, card string, run *Run) {
	a := Report{Run: run.ID, Kind: rapid.SampledFrom(reportKinds).Draw(r, "kind"), PID: 7, ResumeFailed: rapid.Bool().Draw(r, "resume_failed")}
	if a.Kind == ReportExited {
		code := rapid.SampledFrom([]int64{0, 1, 75}).Draw(r, "code")
		a.Code = &code
	}
	if a.Kind == ReportIdle {
		a.For = rapid.SampledFrom([]string{"", TurnPermission, TurnQuestion, TurnLimit, "other"}).Draw(r, "for")
	}
	before := w.card(card)
	w.twice(r, &Request{Actor: Actor{Kind: ActorNode, Node: run.Node}, Verb: VReport, Args: jsonOf(a)})
	w.unchanged(r, a.Kind, before, run)
}

// counted holds a change of the count of failures against RSP-09: timeout, crash,
// a start that failed, a fresh session that never came up; a failed merge is the
// workflow's own. Nothing else.
func counted(r *rapid.T, before, after *Card) {
	if after.Failures <= before.Failures {
		return
	}
	if !slices.Contains([]string{"timed_out", "crashed", "spawn_failed"}, after.LastOutcome) {
		r.Fatalf("card %s: a failure was counted for %q (%d, then %d)", after.ID, after.LastOutcome, before.Failures, after.Failures)
	}
}

// guides are the default workflow, as tests have it, and the five of the guide, with what a board may set of each.
var guides = []struct {
	name   string
	params []string
}{
	{"", []string{"{}", `{"reviewer":"rev"}`, `{"review":false}`, `{"merge":true,"reviewer":"rev"}`, `{"rate_limit_cooldown":0,"guard_success":0,"lost_context":"fresh"}`}},
	{"solo", []string{"{}", `{"review":true}`}},
	{"two-reviewers", []string{"{}", `{"reviewer":"claude","second_reviewer":"codex"}`, `{"reviewer":null}`}},
	{"documentation", []string{"{}", `{"writer":"claude","editor":"claude"}`}},
	{"release-train", []string{"{}", `{"reviewer":"claude"}`}},
	{"nightly", []string{"{}", `{"failure_limit":1}`}},
}

// guide is a world whose board has a workflow of the guide; "" is the default workflow.
func guide(t *testing.T, name string) *world {
	if name == "" {
		return agents(t)
	}
	src, err := os.ReadFile("../docs/workflows/" + name + ".yaml")
	if err != nil {
		t.Fatal(err)
	}
	return agentsOf(t, string(src))
}

// Under random events, starts, reports, due times, moves and attachments, in the default workflow and the five of the
// guide: a card never has two current runs (RUN-03), a superseded run changes nothing (RUN-08, INV-10), failures are
// counted as RSP-09 says (where the workflow is the default one), Exec never panics and is the same twice (INV-27), a
// refusal changes nothing, and from wherever a card is a manager brings it to done and to cancelled in at most three
// events (INV-20).
func TestProperties(t *testing.T) {
	for _, g := range guides {
		t.Run(orElse(g.name, "default"), func(t *testing.T) {
			rapid.Check(t, func(r *rapid.T) { guide(t, g.name).properties(r, g.name, g.params) })
		})
	}
}

func (w *world) properties(r *rapid.T, flow string, params []string) {
	w.params("web", rapid.SampledFrom(params).Draw(r, "params"))
	profile := rapid.SampledFrom(sortedKeys(w.flow("web").wf.Profiles))
	var ids []string
	for i := range 3 {
		var after []string
		if i == 1 {
			after = ids[:1]
		}
		ids = append(ids, w.addBy("web", manager, "card", func(c *Card) { c.Assignee = profile.Draw(r, "profile") }, map[string]any{"triage": i == 2}, after...))
	}
	names, most := w.names(), 15
	if flow == "" {
		most = 30
	}
	for range rapid.IntRange(1, most).Draw(r, "steps") {
		before := map[string]*Card{}
		for _, id := range w.cards() {
			before[id] = w.card(id)
		}
		w.happens(r, w.card(rapid.SampledFrom(ids).Draw(r, "card")), names)
		for _, id := range w.cards() {
			w.sound(id)
			if b := before[id]; b != nil && flow == "" {
				counted(r, b, w.card(id))
			}
		}
	}
	for _, id := range ids {
		for _, end := range []string{"done", "cancelled"} {
			if !reaches(w.v, w.env(), id, end, 3, names) {
				r.Fatalf("card %s is %s (run %q, attention %+v): a manager cannot bring it to %s in three events", id, w.card(id).Status, w.card(id).Run, w.card(id).Attention, end)
			}
		}
	}
}

// reaches looks for a way of a manager's events from where the card is to a stored status.
func reaches(v View, env *Env, card, end string, left int, names []string) bool {
	if GetCard(v, card).Stored == end {
		return true
	}
	if left == 0 {
		return false
	}
	for _, event := range names {
		if FleetEvent(event) || event == "comment" || event == "heartbeat" || event == "start" {
			continue
		}
		req := &Request{Actor: person, Verb: VEvent, Args: jsonOf(FireEvent{Card: card, Event: event, Force: true, Why: "it must end"})}
		env.Seq = v.Seq() + 1
		txn, res := Exec(v, req, env)
		if res.Err != nil || txn.Empty() {
			continue
		}
		o := NewOverlay(v)
		o.Apply(&txn)
		if reaches(o, env, card, end, left-1, names) {
			return true
		}
	}
	return false
}

package scenario

import (
	"encoding/json"
	"fmt"
	"slices"

	"muster/board"
	"muster/board/workflow"
)

// Outcome is how one scenario went.
type Outcome struct {
	Scenario *Scenario
	Failures []Failure // empty: as it says
}

// Failure is one expectation that was not met, or a step that could not be played.
type Failure struct {
	workflow.Pos
	Step int // from 1; 0: before the first
	Text string
}

func (f Failure) String() string {
	if f.Step == 0 {
		return fmt.Sprintf("%s: %s", f.Pos, f.Text)
	}
	return fmt.Sprintf("%s: step %d: %s", f.Pos, f.Step, f.Text)
}

// Player plays scenarios on one workflow and counts the transitions they take.
type Player struct {
	Workflow *workflow.Workflow
	source   []byte
	flows    *board.Workflows
	taken    map[string]int // transition's path to how often
}

// NewPlayer reads the workflow. The error is the loader's report.
func NewPlayer(source []byte) (*Player, error) {
	wf, report := workflow.Load(source, nil)
	if err := report.Err(); err != nil {
		return nil, err
	}
	return &Player{Workflow: wf, source: source, flows: board.NewWorkflows(), taken: map[string]int{}}, nil
}

// Play plays one scenario. A step that goes wrong ends it: what follows builds on it.
func (p *Player) Play(s *Scenario) Outcome {
	out := Outcome{Scenario: s}
	took := func(t *workflow.Transition) { p.taken[t.Path]++ }
	w, err := newWorld(p.source, s, p.flows, took)
	if err != nil {
		out.Failures = append(out.Failures, Failure{Pos: s.Pos, Text: err.Error()})
		return out
	}
	for i := range s.Steps {
		st := &s.Steps[i]
		r := w.step(st)
		for _, f := range r.judge(w, st) {
			f.Step = i + 1
			out.Failures = append(out.Failures, f)
		}
		if len(out.Failures) > 0 {
			return out
		}
	}
	return out
}

// result is what one step did.
type result struct {
	err    error        // it could not be played at all
	denied *board.Error // the board refused it
	card   string       // id it is about; "" when it is about none
	orders []string     // kinds of the orders it made
	added  []string     // ids of the cards it filed
	seq    uint64       // before and ...
	after  uint64       // ... after it, without what the machines answered
	events []string     // kinds of the events of the card that it made
}

func (w *world) step(st *Step) *result {
	r := &result{}
	if r.err = w.pass(st.After); r.err != nil {
		return r
	}
	if st.Card != "" {
		if r.card, r.err = w.id(st.Card); r.err != nil {
			return r
		}
	}
	before := w.orders()
	cards := w.cards()
	r.seq = w.v.Seq()
	last := ""
	if c := board.GetCard(w.v, r.card); c != nil {
		last = c.LastEvent
	}
	switch {
	case st.Add:
		r.denied, r.err = w.add(st, r)
	case st.Event != "":
		r.denied, r.err = w.event(st, r.card)
	}
	if r.err != nil {
		return r
	}
	r.after = w.v.Seq()
	for _, o := range w.orders() {
		if !slices.ContainsFunc(before, func(x *board.Order) bool { return x.ID == o.ID }) {
			r.orders = append(r.orders, o.Kind)
		}
	}
	for _, id := range w.cards() {
		if !slices.Contains(cards, id) {
			r.added = append(r.added, id)
		}
	}
	if c := board.GetCard(w.v, r.card); c != nil {
		board.CardEvents(w.v, c, func(e *board.Event) bool {
			if e.ID != last {
				r.events = append([]string{e.Kind}, r.events...)
			}
			return e.ID != last
		})
	}
	r.err = w.obey()
	return r
}

func (w *world) orders() (list []*board.Order) {
	board.EachOrder(w.v, "", func(o *board.Order) bool { list = append(list, o); return true })
	return list
}

func (w *world) cards() (ids []string) {
	board.EachCard(w.v, board.GetBoard(w.v, slug), func(c *board.Card) bool { ids = append(ids, c.ID); return true })
	return ids
}

// add files a card; its payload are the fields of [board.CardAdd].
func (w *world) add(st *Step, r *result) (*board.Error, error) {
	args := map[string]any{"board": slug}
	for k, v := range st.Payload {
		args[k] = v
	}
	for _, key := range []string{"after", "subtask_of"} {
		v, err := w.refer(args[key])
		if err != nil {
			return nil, err
		}
		if v != nil {
			args[key] = v
		}
	}
	req, err := w.sender(st, "")
	if err != nil {
		return nil, err
	}
	data, denied := w.exec(req, board.VCardAdd, args)
	r.card, _ = data["id"].(string)
	return denied, nil
}

// refer turns names of cards into ids.
func (w *world) refer(v any) (any, error) {
	switch x := v.(type) {
	case string:
		return w.id(x)
	case []any:
		ids := make([]any, 0, len(x))
		for _, name := range x {
			id, err := w.id(fmt.Sprint(name))
			if err != nil {
				return nil, err
			}
			ids = append(ids, id)
		}
		return ids, nil
	}
	return nil, nil
}

// event sends an event of the workflow. A start is placed as the scheduler would place it: where the story says.
func (w *world) event(st *Step, card string) (*board.Error, error) {
	req, err := w.sender(st, card)
	if err != nil {
		return nil, err
	}
	node := w.first
	if st.Machine != "" {
		if node = nodeID(st.Machine); w.nodes[node] == nil {
			return nil, fmt.Errorf("there is no machine %s", st.Machine)
		}
	}
	verb, args := w.request(st, card, node)
	req.Place = node
	if verb == board.VAdopt {
		req.Vouch = w.vouch(card, node, st)
	}
	_, denied := w.exec(req, verb, args)
	return denied, nil
}

// request is what a step stands for.
func (w *world) request(st *Step, card, node string) (string, any) {
	switch st.Event {
	case w.wf.Dispatch.Start:
		return board.VStart, board.Start{Card: card, Node: node, Profile: st.Profile, Force: st.Force, Why: st.Why}
	case "adopt":
		return board.VAdopt, board.Adopt{Card: card, Session: adopted + card, Profile: st.Profile}
	}
	return board.VEvent, board.FireEvent{Card: card, Event: st.Event, Payload: clone(st.Payload), Force: st.Force, Why: st.Why}
}

// adopted names the session that a person of a story already has, with the card it becomes.
const adopted = "session-of-a-person-on-"

// vouch is the word of the machine that has the session.
func (w *world) vouch(card, node string, st *Step) *board.Vouch {
	v := &board.Vouch{Node: node, Session: adopted + card, PID: 200, Surface: "headless"}
	profile := st.Profile
	if c := board.GetCard(w.v, card); c != nil {
		profile = orElse(profile, c.Assignee)
		v.SecretHash = secretHash(board.RunID(card, c.Runs+1))
	}
	if p := w.wf.Profile(profile); p != nil {
		v.Harness, v.Surface = p.Harness, p.Surface
	} else if len(w.wf.Profiles) > 0 {
		v.Harness = w.wf.Profiles[keys(w.wf.Profiles)[0]].Harness
	}
	return v
}

func clone(m map[string]any) map[string]any {
	raw, err := json.Marshal(m)
	if err != nil || m == nil {
		return nil
	}
	var c map[string]any
	_ = json.Unmarshal(raw, &c) // it was just written
	return c
}

// sender is who says a step: the platform, a person, or the run that plays a role.
func (w *world) sender(st *Step, card string) (board.Request, error) {
	by := st.By
	if by == "" {
		by = "manager"
		if st.Event == w.wf.Dispatch.Start || slices.Contains(workflow.PlatformEvents, st.Event) {
			by = "platform"
		}
	}
	switch by {
	case "platform":
		return board.Request{Actor: board.Platform()}, nil
	case "manager":
		return w.person(), nil
	case "member":
		req := w.person()
		req.Actor.Name, req.Secret = "ben@"+w.nodes[w.first].Name, memberSecret
		return req, nil
	}
	run := w.playing(by, card)
	if run == "" {
		return board.Request{}, fmt.Errorf("nobody plays %s on card %s now; by is platform, manager, member, or the role of the card's run", by, orElse(st.Card, "(new)"))
	}
	return board.Request{Actor: board.Actor{Kind: board.ActorRun, Name: run, Run: run, Node: board.GetRun(w.v, run).Node}, Secret: secretOf(run)}, nil
}

// playing is the run that has the role on a card: the card's own, or that of the card it is a part of. On no card
// it is the newest run of that role.
func (w *world) playing(role, card string) (run string) {
	plays := func(c *board.Card, role string) {
		if c == nil || c.Run == "" {
			return
		}
		if r := board.GetRun(w.v, c.Run); r != nil && (role == "" || r.Role == role) {
			run = r.ID
		}
	}
	c := board.GetCard(w.v, card)
	if c == nil {
		for _, id := range w.cards() {
			plays(board.GetCard(w.v, id), role)
		}
		return run
	}
	if plays(c, role); run == "" && role == "implementer" && c.SubtaskOf != "" {
		plays(board.GetCard(w.v, c.SubtaskOf), "")
	}
	return run
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

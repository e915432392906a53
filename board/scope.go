package board

import (
	"strings"

	"muster/board/rule"
	"muster/board/workflow"
)

// Scope is what the expressions of a workflow see of a card (workflow.md,
// "Scope"). It is filled as expressions ask: an event that reads one field
// costs one field, and what is costly (parents_done, subtasks_open, context)
// costs nothing where nobody reads it.
//
// Times are seconds since the epoch, durations seconds. What is not there is
// nil. A Scope is used by one goroutine and only as long as its View is open.
type Scope struct {
	view    View
	ws      *Workflows
	flow    *flow
	wf      *workflow.Workflow
	params  map[string]any
	board   *Board
	card    *Card
	body    *string // of a card that is not stored yet
	now     int64
	nodes   func(id string) Reading
	actor   Actor
	payload map[string]any
	run     *Run // nil: the card's current one, else its newest
	noRun   bool // run was looked for and there is none

	planned *workflow.Profile // of the start that is planned
	surface bool              // run.surface and run.machine are those of the planned start
	node    *Node             // of the start that is planned
	slot    string            // its slot
	reading *Reading          // host.*, of the same node
	started *int64            // tick.local_started; nil: counted when it is read
	item    any
	session map[string]any
	texts   map[string]any // what is given as text: prompt, brief
	busy    bool           // doors are being written: they read no doors

	vars rule.Scope
}

// NewScope is the scope of a card as the platform sees it, without a planned
// start; see [Scope.From] and [Scope.At]. The workflow is the one in force.
func NewScope(v View, ws *Workflows, b *Board, c *Card, now int64, nodes func(id string) Reading) (*Scope, error) {
	f := ws.flow(v, b.Slug, b.Workflow, b.Params)
	if f.err != nil {
		return nil, f.err
	}
	return newScope(v, ws, f, b, c, now, nodes), nil
}

func newScope(v View, ws *Workflows, f *flow, b *Board, c *Card, now int64, nodes func(id string) Reading) *Scope {
	return &Scope{view: v, ws: ws, flow: f, wf: f.wf, params: f.params, board: b, card: c, now: now, nodes: nodes, actor: Platform(), vars: rule.Scope{}}
}

// Workflow is the workflow of the scope, with Params its parameters in force.
func (s *Scope) Workflow() *workflow.Workflow { return s.wf }

// Params are the parameters in force. Do not change them.
func (s *Scope) Params() map[string]any { return s.params }

// From sets who says what.
func (s *Scope) From(a Actor, payload map[string]any) *Scope {
	s.actor, s.payload = a, payload
	s.forget()
	return s
}

// At plans a start on a node (nil: anywhere): machine, host and
// tick.local_started are those of that node (M-15, EXP-10). started is the
// number of starts on it in the last round.
func (s *Scope) At(n *Node, r Reading, started int64) *Scope {
	s.node, s.reading, s.started = n, &r, &started
	if n == nil {
		s.reading = nil
	}
	s.forget()
	return s
}

// Playing sets the profile of a start that is planned; run.surface is its surface (EXP-07).
func (s *Scope) Playing(p *workflow.Profile) *Scope {
	s.planned, s.surface = p, p != nil
	s.forget()
	return s
}

// forget drops what was filled, after something it was read from has changed.
func (s *Scope) forget() {
	if len(s.vars) > 0 {
		s.vars = rule.Scope{}
	}
}

// copy is the same scope, to be changed by itself.
func (s *Scope) copy() *Scope {
	c := *s
	c.vars = rule.Scope{}
	return &c
}

// Eval gives an expression's value in the scope.
func (s *Scope) Eval(e *rule.Expr) (any, error) {
	s.need(e.Reads())
	return e.Eval(s.vars)
}

// Holds is the truth of a guard (EXP-01): an absent one holds.
func (s *Scope) Holds(e *rule.Expr) (bool, error) {
	s.need(e.Reads())
	return e.Holds(s.vars)
}

// Number is the value of a limit or a maximum (EXP-11); false: none.
func (s *Scope) Number(e *rule.Expr) (float64, bool, error) {
	s.need(e.Reads())
	return e.Number(s.vars)
}

// Render gives a template's text.
func (s *Scope) Render(t *rule.Text) (string, error) {
	s.need(t.Reads())
	return t.Render(s.vars)
}

// Thresholds are the moments and ages at which an expression may change its answer.
func (s *Scope) Thresholds(e *rule.Expr) []rule.Threshold {
	s.need(e.Reads())
	return e.Thresholds(s.vars)
}

// Role is the profile that plays a role for the card: the role's expression,
// else the card's assignee; "" is nobody (WFL-12, WFL-13).
func (s *Scope) Role(role string) (string, error) {
	s.need(s.wf.Roles[role].Reads())
	s.member("card", "assignee")
	return s.wf.RoleProfile(role, s.vars)
}

// Limits evaluates the limits of a run.
func (s *Scope) Limits(l workflow.Limits) (workflow.Times, error) {
	for _, e := range []*rule.Expr{l.Runtime, l.Working, l.Age, l.Stale, l.Grace, l.Lease, l.Kill, l.Leave} {
		s.need(e.Reads())
	}
	return l.Values(s.vars)
}

// Finished says that nothing more is to be done on the card (BRD-12).
func (s *Scope) Finished() bool { return Finished(s.wf.StoredAs(s.card.Status)) }

// ParentsDone says that all cards it waits for are done (BRD-10, BRD-12).
func (s *Scope) ParentsDone() bool { return len(Waiting(s.view, s.ws, s.card.ID)) == 0 }

// Finished says whether a stored status counts as finished (BRD-12).
func Finished(stored string) bool {
	return stored == "done" || stored == "cancelled" || stored == "archived"
}

// Waiting are the cards that a card still waits for. Only done satisfies, or
// archived after done; a cancelled card does not (BRD-12).
func Waiting(v View, ws *Workflows, card string) (open []string) {
	for _, id := range Parents(v, card) {
		if p := GetCard(v, id); p == nil || !satisfied(v, ws, p) {
			open = append(open, id)
		}
	}
	return open
}

func satisfied(v View, ws *Workflows, p *Card) bool {
	if p.Stored != "archived" {
		return p.Stored == "done"
	}
	if b := GetBoard(v, p.Board); b != nil {
		if wf, err := ws.Of(v, b); err == nil {
			return wf.StoredAs(p.Previous) == "done"
		}
	}
	return p.Previous == "done"
}

// AlwaysOn says whether a machine counts as always on (M-36): the label
// always-on decides, else a machine without a battery is.
func AlwaysOn(n *Node) bool {
	if l, ok := n.Labels["always-on"]; ok {
		return l == "true"
	}
	return n.AlwaysOn || !n.Battery
}

// need fills what the reads ask for.
func (s *Scope) need(reads []rule.Read) {
	for i := range reads {
		name, member, _ := strings.Cut(reads[i].Name, ".")
		s.member(name, member)
	}
}

func (s *Scope) member(name, member string) {
	if !isRecord(name) {
		if _, done := s.vars[name]; !done {
			s.vars[name] = s.variable(name)
		}
		return
	}
	rec, done := s.vars[name].(map[string]any)
	if !done {
		if _, absent := s.vars[name]; absent {
			return
		}
		if !s.present(name) {
			s.vars[name] = nil
			return
		}
		rec = map[string]any{}
		s.vars[name] = rec
	}
	if member == "" {
		for _, m := range rule.Members(name) {
			s.member(name, m)
		}
		return
	}
	if _, done := rec[member]; !done {
		rec[member] = s.recordMember(name, member)
	}
}

func isRecord(name string) bool {
	switch name {
	case "card", "run", "machine", "host", "tick", "actor", "board":
		return true
	}
	return false
}

func (s *Scope) present(name string) bool {
	switch name {
	case "run":
		return s.theRun() != nil || s.surface
	case "machine":
		return s.machine() != nil
	case "host", "tick":
		return s.reading != nil
	}
	return true
}

// variable is the value of a variable that is no record.
func (s *Scope) variable(name string) any {
	switch name {
	case "params":
		return s.params
	case "payload":
		return mapOrNil(s.payload)
	case "profile":
		if p := s.theProfile(); p != nil {
			return p.Scope()
		}
	case "now":
		return seconds(s.now)
	case "item":
		return s.item
	case "session":
		return mapOrNil(s.session)
	case "context":
		return s.contextText(s.card, maxContext)
	case "arc_context":
		return s.arcText()
	case "news":
		return s.newsText()
	case "doors":
		if s.busy {
			return nil
		}
		return s.doorsText()
	case "where":
		return whereText
	case "prompt", "brief":
		return s.texts[name]
	}
	return nil
}

func (s *Scope) recordMember(name, member string) any {
	switch name {
	case "card":
		return s.cardMember(member)
	case "run":
		return s.runMember(member)
	case "machine":
		return s.machineMember(member)
	case "host":
		return s.hostMember(member)
	case "tick":
		if s.started == nil {
			n := startedOn(s.view, s.node.ID, s.now-roundOf(s.params))
			s.started = &n
		}
		return *s.started
	case "actor":
		switch member {
		case "kind":
			return text(s.actor.Kind)
		case "role":
			return text(s.actor.Role)
		case "name":
			return text(s.actor.Name)
		}
	case "board":
		switch member {
		case "id":
			return s.board.Slug
		case "label":
			return text(s.board.Label)
		case "home":
			return text(s.board.Home)
		case "zone":
			return text(s.board.Zone)
		case "prefix":
			return s.board.Prefix
		}
	}
	return nil
}

// theRun is the current run, else the newest.
func (s *Scope) theRun() *Run {
	if s.run == nil && !s.noRun {
		if s.card.Run != "" {
			s.run = GetRun(s.view, s.card.Run)
		}
		if s.run == nil {
			s.run = LastRun(s.view, s.card)
		}
		s.noRun = s.run == nil
	}
	return s.run
}

// theProfile is that of the planned start, else of the run (as the workflow in force describes it).
func (s *Scope) theProfile() *workflow.Profile {
	if s.planned != nil {
		return s.planned
	}
	if r := s.theRun(); r != nil {
		return s.wf.Profile(r.Profile)
	}
	return nil
}

// machine is that of the planned start, else of the run.
func (s *Scope) machine() *Node {
	if s.node == nil && s.reading == nil {
		if r := s.theRun(); r != nil {
			return GetNode(s.view, r.Node)
		}
	}
	return s.node
}

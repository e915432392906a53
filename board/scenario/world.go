package scenario

import (
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"

	"muster/board"
	"muster/board/workflow"
)

const (
	slug   = "scenario"
	prefix = "t"
	// A story that never comes to rest is wrong; these bound the work between two steps.
	maxDue    = 1000
	maxOrders = 1000
)

// world is the state of one story and what drives it.
type world struct {
	v     *board.MemView
	flows *board.Workflows
	took  func(*workflow.Transition)
	wf    *workflow.Workflow
	s     *Scenario
	now   int64
	ids   map[string]string // the story's names of cards to their ids
	names map[string]string // and back
	nodes map[string]*Machine
	first string // id of the first machine
}

// newWorld makes the fleet, the board and the cards of a story.
func newWorld(source []byte, s *Scenario, flows *board.Workflows, took func(*workflow.Transition)) (*world, error) {
	w := &world{v: board.NewMemView(), flows: flows, s: s, now: s.At, ids: map[string]string{}, names: map[string]string{}, nodes: map[string]*Machine{}}
	if err := w.board(source); err != nil {
		return nil, err
	}
	if err := w.machines(); err != nil {
		return nil, err
	}
	for _, k := range keys(s.Params) {
		raw, err := json.Marshal(s.Params[k])
		if err != nil {
			return nil, err
		}
		set := board.BoardSet{Board: slug, Set: map[string]json.RawMessage{"params." + k: raw}}
		if _, err := w.exec(w.person(), board.VBoardSet, set); err != nil {
			return nil, told(err)
		}
	}
	if s.Zone != "" {
		raw, _ := json.Marshal(s.Zone)
		if _, err := w.exec(w.person(), board.VBoardSet, board.BoardSet{Board: slug, Set: map[string]json.RawMessage{"zone": raw}}); err != nil {
			return nil, told(err)
		}
	}
	wf, err := flows.Of(w.v, board.GetBoard(w.v, slug))
	if err != nil {
		return nil, err
	}
	w.wf = wf
	for i := range s.Cards {
		if err := w.plant(&s.Cards[i]); err != nil {
			return nil, fmt.Errorf("%s: card %s: %w", s.Cards[i].Pos, s.Cards[i].ID, err)
		}
	}
	w.took = took
	return w, nil
}

// told turns Exec's error into one with its hint.
func told(err *board.Error) error {
	if err.Hint != "" {
		return fmt.Errorf("%s (%s)", err.Message, err.Hint)
	}
	return fmt.Errorf("%s", err.Message)
}

func (w *world) env() *board.Env {
	return &board.Env{Now: w.now, Seq: w.v.Seq() + 1, Workflows: w.flows, Nodes: w.reading, Took: w.took}
}

func (w *world) reading(id string) board.Reading {
	m := w.nodes[id]
	if m == nil {
		return board.Reading{State: board.NodeUnknown}
	}
	state := board.NodeOnline
	if m.Offline {
		state = board.NodeOffline
	}
	return board.Reading{State: state, Slots: m.Slots, Pressure: m.Pressure, FreeMB: 8 << 10}
}

// exec asks the board one thing.
func (w *world) exec(req board.Request, verb string, args any) (map[string]any, *board.Error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, board.Errorf(board.Invalid, "%v", err)
	}
	req.Verb, req.Args = verb, raw
	txn, res := board.Exec(w.v, &req, w.env())
	if res.Err != nil {
		return nil, res.Err
	}
	if !txn.Empty() {
		w.v.Apply(&txn)
	}
	data := map[string]any{}
	if len(res.Data) > 0 {
		_ = json.Unmarshal(res.Data, &data) // what is no object is nothing a story asks for
	}
	return data, nil
}

func (w *world) person() board.Request {
	return board.Request{Actor: board.Actor{Kind: board.ActorPerson, Name: "ann@" + w.nodes[w.first].Name, Node: w.first}}
}

const memberSecret = "member"

func (w *world) board(source []byte) error {
	if len(w.s.Machines) == 0 {
		w.s.Machines = []Machine{{Name: "atlas", AlwaysOn: true, Slots: 4, Pressure: "normal", Labels: map[string]string{"os": "linux"}, Tools: []string{"git", "sh"}}}
	}
	m := &w.s.Machines[0]
	w.first = nodeID(m.Name)
	w.nodes[w.first] = m
	platform := board.Request{Actor: board.Platform()}
	node := board.NodeUp{ID: w.first, Name: m.Name, Slots: m.Slots}
	if _, err := w.exec(platform, board.VFleetInit, board.FleetInit{ID: "scenario", EraTag: "s", Node: node}); err != nil {
		return told(err)
	}
	if w.s.Profiles != nil { // over the workflow, as another board would extend it
		if _, err := w.exec(w.person(), board.VBoardCreate, board.BoardCreate{Slug: "workflow", Prefix: "w", YAML: string(source)}); err != nil {
			return told(err)
		}
		var err error
		if source, err = json.Marshal(map[string]any{"version": 1, "name": slug, "extends": "board:workflow", "profiles": w.s.Profiles}); err != nil {
			return err
		}
	}
	if _, err := w.exec(w.person(), board.VBoardCreate, board.BoardCreate{Slug: slug, Prefix: prefix, YAML: string(source)}); err != nil {
		return told(err)
	}
	token := board.TokenCreate{ID: board.HashSecret(memberSecret), Role: "member", Name: "ben"}
	_, err := w.exec(w.person(), board.VTokenCreate, token)
	if err != nil {
		return told(err)
	}
	return nil
}

func nodeID(name string) string { return "node-" + name }

// machines joins what the story has; each says what it is as a node does at its start.
func (w *world) machines() error {
	wf, err := w.flows.Of(w.v, board.GetBoard(w.v, slug))
	if err != nil {
		return err
	}
	for i := range w.s.Machines {
		m := &w.s.Machines[i]
		id := nodeID(m.Name)
		if i > 0 && w.nodes[id] != nil {
			return fmt.Errorf("%s: there are two machines %s", m.Pos, m.Name)
		}
		w.nodes[id] = m
		if !m.HarnessesGiven {
			m.Harnesses = keys(wf.Harnesses)
		}
		up := board.NodeUp{ID: id, Name: m.Name, Slots: m.Slots, Labels: m.Labels, Tools: m.Tools, Harnesses: m.Harnesses, Battery: !m.AlwaysOn, OS: "linux", Generation: 1}
		if i > 0 {
			secret := "join-" + m.Name
			if _, err := w.exec(w.person(), board.VTokenCreate, board.TokenCreate{ID: board.HashSecret(secret), Role: "node"}); err != nil {
				return told(err)
			}
			up.Generation = 0
			if _, err := w.exec(nodeSays(id), board.VNodeJoin, board.NodeJoin{Node: up, Secret: secret}); err != nil {
				return told(err)
			}
		}
		if _, err := w.exec(nodeSays(id), board.VNodeUp, up); err != nil {
			return told(err)
		}
	}
	return nil
}

func nodeSays(id string) board.Request {
	return board.Request{Actor: board.Actor{Kind: board.ActorNode, Node: id}}
}

// plant puts a card where the story has it.
func (w *world) plant(c *Card) error {
	if w.ids[c.ID] != "" {
		return fmt.Errorf("there are two cards of that name")
	}
	seed := &board.Seed{Body: c.Body, Card: board.Card{
		Status: c.Status, Previous: c.Previous, Title: c.Title, Assignee: c.Assignee, Machine: c.Machine, Kind: c.Kind, LastError: c.LastError,
		Priority: c.Priority, Failures: c.Failures, MaxRetries: c.MaxRetries, MaxRuntime: c.MaxRuntime, GoalMaxTurns: c.GoalTurns, Goal: c.Goal,
		Labels: c.Labels, Blocks: c.Blocks, Creator: w.creator(c.Creator),
	}}
	if seed.Card.Title == "" {
		seed.Card.Title = "card " + c.ID
	}
	if c.StartAfter != nil {
		seed.Card.StartAfter = w.now + *c.StartAfter*1000
	}
	for _, name := range c.After {
		id, err := w.id(name)
		if err != nil {
			return err
		}
		seed.After = append(seed.After, id)
	}
	if c.SubtaskOf != "" {
		id, err := w.id(c.SubtaskOf)
		if err != nil {
			return err
		}
		seed.Card.SubtaskOf = id
	}
	if c.Run != nil {
		if err := w.run(c, seed); err != nil {
			return err
		}
	}
	id, txn, err := board.Plant(w.v, w.env(), slug, seed)
	if err != nil {
		return told(err)
	}
	w.v.Apply(&txn)
	w.name(c.ID, id)
	return w.obey()
}

func (w *world) run(c *Card, seed *board.Seed) error {
	r := c.Run
	if r.Source != "" && w.wf.Statuses[r.Source] == nil {
		return fmt.Errorf("its run comes from a status %q that the workflow does not have", r.Source)
	}
	node := w.first
	if r.Machine != "" {
		if node = nodeID(r.Machine); w.nodes[node] == nil {
			return fmt.Errorf("there is no machine %s", r.Machine)
		}
	}
	seed.Source, seed.Run = r.Source, &board.SeedRun{Role: r.Role, Profile: r.Profile, Node: node}
	if r.Profile == "" && c.Assignee == "" && len(w.wf.Profiles) > 0 {
		seed.Run.Profile = keys(w.wf.Profiles)[0]
	}
	if seed.Card.Assignee == "" && w.follows(c) { // as the start before it would have left the card (DSP-08)
		seed.Card.Assignee = seed.Run.Profile
	}
	return nil
}

// follows says that who plays the run's role is the card's assignee.
func (w *world) follows(c *Card) bool {
	role := c.Run.Role
	if st := w.wf.Statuses[c.Status]; role == "" && st != nil && st.Run != nil {
		role = st.Run.Role
	}
	e := w.wf.Roles[role]
	return e == nil || slices.Contains(e.Names(), "card.assignee")
}

func (w *world) creator(kind string) board.Actor {
	switch kind {
	case "platform":
		return board.Platform()
	case "run":
		return board.Actor{Kind: board.ActorRun, Name: "another session"}
	}
	return board.Actor{Kind: board.ActorPerson, Role: "manager", Name: "ann"}
}

func (w *world) name(name, id string) { w.ids[name], w.names[id] = id, name }

// id is the id of a card of the story; an id itself is taken, too.
func (w *world) id(name string) (string, error) {
	if id := w.ids[name]; id != "" {
		return id, nil
	}
	if board.GetCard(w.v, name) != nil {
		return name, nil
	}
	return "", fmt.Errorf("there is no card %q in this story; there are %v", name, keys(w.ids))
}

// secretOf is the secret of a run of a story.
func secretOf(run string) string { return "s-" + run }

func secretHash(run string) []byte {
	b, _ := hex.DecodeString(board.HashSecret(secretOf(run)))
	return b
}

// obey lets the machines do what they are ordered, until there is nothing left to do.
func (w *world) obey() error {
	for range maxOrders {
		report := w.nextReport()
		if report == nil {
			return nil
		}
		r := board.GetRun(w.v, report.Run)
		if _, err := w.exec(nodeSays(r.Node), board.VReport, report); err != nil {
			return fmt.Errorf("run %s: %s: %w", r.ID, report.Kind, told(err))
		}
	}
	return fmt.Errorf("the machines never come to rest: the workflow orders more and more (over %d)", maxOrders)
}

// nextReport is what a machine has to say next: about an order, or about a session that leaves by itself.
func (w *world) nextReport() (next *board.Report) {
	board.EachOrder(w.v, "", func(o *board.Order) bool {
		switch {
		case o.Kind == board.OrderStart && o.State == board.OrderPending:
			next = &board.Report{Kind: board.ReportTaken, Run: o.Run, Order: o.ID}
		case o.Kind == board.OrderStart && o.State == board.OrderTaken:
			next = &board.Report{Kind: board.ReportLaunched, Run: o.Run, Order: o.ID, PID: 100, SecretHash: secretHash(o.Run), Session: w.sessionOf(o.Run)}
		case o.Kind == board.OrderStop:
			next = &board.Report{Kind: board.ReportGone, Run: o.Run, Order: o.ID}
		}
		return next == nil
	})
	if next != nil {
		return next
	}
	board.EachHeld(w.v, "", func(h *board.Held) bool {
		if h.Ended && !h.Stopping && h.Surface != "pane" {
			zero := int64(0)
			next = &board.Report{Kind: board.ReportExited, Run: h.Run, Code: &zero}
		}
		return next == nil
	})
	return next
}

// sessionOf is the id that a launched session says it has: the one it takes up again, or a new one; a plain command has none.
func (w *world) sessionOf(run string) string {
	r := board.GetRun(w.v, run)
	if h := w.wf.Harnesses[r.Harness]; h == nil || h.Session.From == "" || h.Session.From == "none" {
		return ""
	}
	return orElse(r.SessionID, "session-"+run)
}

// pass lets time go by; what becomes due on the way is done when its time comes, as the leader does it.
func (w *world) pass(seconds float64) error {
	until := w.now + int64(seconds*1000)
	for range maxDue {
		var at int64
		var due []string
		board.EachDue(w.v, until, func(key string, d *board.Due) bool {
			if len(due) > 0 && d.At > at {
				return false
			}
			at = d.At
			due = append(due, key)
			return true
		})
		if len(due) == 0 {
			w.now = until
			return nil
		}
		w.now = max(w.now, at)
		if _, err := w.exec(board.Request{Actor: board.Platform()}, board.VDue, board.DueArgs{Keys: due}); err != nil {
			return told(err)
		}
		if err := w.obey(); err != nil {
			return err
		}
	}
	return fmt.Errorf("more than %d due times in %s seconds", maxDue, strconv.FormatFloat(seconds, 'f', -1, 64))
}

package board

import "muster/board/workflow"

// Seed is a card as a scenario begins with it: in any status, with a run where the status has one.
type Seed struct {
	Card   Card // ID, Board and Stored are filled in; Status may have a run
	Body   string
	After  []string // cards it waits for
	Run    *SeedRun // nil: none
	Source string   // status the run was started from; "" is the card's own
}

// SeedRun is the run of a seeded card: claimed as a start claims it, past caps and guards.
type SeedRun struct {
	Role, Profile string // "": those of the status and the role
	Node          string // id
}

// Plant writes a card that came to its status by no event: for `workflow test`, never in a fleet. Its run goes the
// way of every claim, so that order, slot and due times are as they would be; the caller's node takes the order.
func Plant(v View, env *Env, slug string, s *Seed) (id string, txn Txn, err *Error) {
	t := newTx(v, &Request{Verb: "plant", Actor: Platform()}, env)
	b := GetBoard(t, slug)
	if b == nil {
		return "", Txn{}, Errorf(NotFound, "no board %q", slug)
	}
	fl, err := t.flow(b)
	if err != nil {
		return "", Txn{}, err
	}
	status := fl.wf.Statuses[s.Card.Status]
	switch {
	case status == nil:
		return "", Txn{}, Errorf(Invalid, "the workflow has no status %q", s.Card.Status).WithCheck("status")
	case status.Run == nil && s.Run != nil:
		return "", Txn{}, Errorf(Invalid, "status %q has no run", s.Card.Status).WithCheck("run_status")
	case status.Run != nil && s.Run == nil:
		return "", Txn{}, Errorf(Invalid, "status %q has a run: say whose (run: {role: %s})", s.Card.Status, status.Run.Role).WithCheck("run_status")
	}
	c := t.mintCard(b)
	planted := s.Card
	planted.ID, planted.Board, planted.Created, planted.LastEvent = c.ID, c.Board, c.Created, c.LastEvent
	planted.Stored = status.StoredAs
	*c = planted
	t.putBody(c.ID, s.Body)
	t.putCard(c)
	for _, parent := range s.After {
		if err := t.addLink(c.ID, parent); err != nil {
			return "", Txn{}, err
		}
	}
	t.putDue(c.StartAfter, DueCard, c.ID)
	if s.Run != nil {
		if err := t.plantRun(fl, b, c, s); err != nil {
			return "", Txn{}, err
		}
	}
	t.putCard(c)
	return c.ID, t.txn(), nil
}

func (t *tx) plantRun(fl *flow, b *Board, c *Card, s *Seed) *Error {
	to := c.Status
	c.Status = orElse(s.Source, to)
	c.Stored = fl.wf.StoredAs(c.Status)
	st := &step{t: t, wf: fl.wf, b: b, c: c, from: c.Status, to: to,
		f: firing{Event: "planted", Actor: Platform(), Force: true, Start: &startCtx{Node: s.Run.Node, Profile: s.Run.Profile}}}
	if err := st.begin(fl); err != nil {
		return err
	}
	st.ev = t.event(c, Event{Kind: "planted", Actor: Platform(), To: to})
	runs := c.Runs
	if err := st.claimRun(&workflow.Claim{Role: s.Run.Role}); err != nil {
		return err
	}
	if c.Runs == runs {
		return Errorf(Internal, "card %s: no run came of it", c.ID)
	}
	c.Previous, c.Status, c.Stored = orElse(s.Source, c.Previous), to, fl.wf.StoredAs(to)
	st.s.forget()
	return st.writeClaim()
}

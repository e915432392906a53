package board

import (
	"fmt"

	"muster/board/workflow"
)

// A slot is a lineage of sessions on a card (SES-03): the next start in it goes
// on with the session before, unless that was let go. The board never replaces
// a session on its own account (INV-02, SES-13, SES-14).

// The modes of a session (SES-01).
const (
	ModeFresh  = "fresh"  // a new session
	ModeResume = "resume" // the slot's session in a new process
	ModeAdopt  = "adopt"  // the slot's session as it stands, its process included
)

// going is how a start goes on with what its slot did before.
type going struct {
	mode     string
	session  string   // id of the session that goes on
	replaces string   // of a fresh one: the session that was let go (SES-14)
	rec      *SlotRec // nil: the slot is new
	from     *Run     // of ModeAdopt: the run that has the session
	lost     string   // why the session can not go on although nobody let it go (SES-13)
}

// goOn decides how a start of the profile on the planned node goes on in the slot.
func (s *Scope) goOn(slot string, p *workflow.Profile) going {
	rec := GetSlot(s.view, s.card.ID, slot)
	switch {
	case rec == nil || rec.SessionID == "":
		return going{mode: ModeFresh}
	case rec.Forgotten != 0, s.sessionless(rec.Harness): // of a plain command only a person knows a session: nothing of it is left to go on with
		return going{mode: ModeFresh, replaces: rec.SessionID}
	}
	g := going{mode: ModeResume, session: rec.SessionID, rec: rec}
	if from := keepable(s.view, rec); from != nil && rec.Harness == p.Harness && s.keeps(from) {
		g.mode, g.from = ModeAdopt, from
		return g
	}
	g.lost = s.cannotResume(rec, p)
	return g
}

// keeps says that the run's pane is on the planned node, lives as far as is
// known, and is young enough to go on (SES-06): no reading, no verdict.
func (s *Scope) keeps(from *Run) bool {
	if s.node == nil || from.Node != s.node.ID || s.readingOf(s.node).State != NodeOnline || from.MissingSince != 0 {
		return false
	}
	return from.Session.Age == 0 || s.now-from.Session.Born <= from.Session.Age
}

// keepable is the run that has the slot's session, if that may be kept: an open
// pane that no run works in, not closed, not let go, and under no order to stop (M-35).
func keepable(v View, rec *SlotRec) *Run {
	if rec.Closed != 0 || rec.Forgotten != 0 {
		return nil
	}
	r := GetRun(v, rec.Run)
	if r == nil || r.Surface != "pane" || r.SessionID != rec.SessionID {
		return nil
	}
	if !leaseRun(v, r).MayKeep() {
		return nil
	}
	return r
}

// cannotResume says why a session can not be taken up again, "" when it can.
func (s *Scope) cannotResume(rec *SlotRec, p *workflow.Profile) string {
	switch {
	case rec.NotResumable:
		return "taking it up again was tried, and it never came up"
	case rec.Harness != p.Harness:
		return fmt.Sprintf("it is a session of %s, and profile %q is of %s", rec.Harness, p.Name, p.Harness)
	case !s.resumes(p):
		return fmt.Sprintf("%s does not take up a session again (surface %s)", p.Harness, p.Surface)
	}
	return ""
}

// sessionless: the harness knows no sessions, as a plain command.
func (s *Scope) sessionless(harness string) bool {
	h := s.wf.Harnesses[harness]
	return h != nil && h.Session.From != "minted" && h.Session.From != "reported" && (h.Headless == nil || h.Headless.Resume == nil) && (h.Pane == nil || h.Pane.Resume == nil)
}

func (s *Scope) resumes(p *workflow.Profile) bool {
	h := s.wf.Harnesses[p.Harness]
	if h == nil {
		return false
	}
	l := h.Headless
	if p.Surface == "pane" {
		l = h.Pane
	}
	return l != nil && l.Resume != nil
}

// tied is the machine that holds what the start goes on with, and what that is:
// the slot's session, or a workspace whose work is nowhere else (M-05, SES-12).
// A session that cannot go on anyway ties nothing.
func (s *Scope) tied(p *workflow.Profile) (node, why string) {
	if s.slot != "" {
		rec := GetSlot(s.view, s.card.ID, s.slot)
		if rec != nil && rec.SessionID != "" && rec.Forgotten == 0 && (s.cannotResume(rec, p) == "" || keepable(s.view, rec) != nil) {
			return rec.Node, fmt.Sprintf("where its session is (slot %s)", s.slot)
		}
	}
	if s.card.WorkNode != "" {
		return s.card.WorkNode, "where its workspace has " + s.card.WorkLeft + " work"
	}
	return "", ""
}

// torn refuses a start whose session or work is on another machine than the one
// that the card names: only a person decides what is left behind (SES-12).
func (s *Scope) torn(p *workflow.Profile) *Error {
	node, why := s.tied(p)
	ref, named := s.named(p)
	if node == "" || ref == "" {
		return nil
	}
	if n, err := FindNode(s.view, ref); err == nil && n.ID != node {
		return Errorf(Refused, "card %s: it is to run on %s (%s), and not on %s, %s", s.card.ID, n.Name, named, s.nodeName(node), why).WithCheck("machine").
			WithHint("leave it behind: muster move %s --machine %s", s.card.ID, n.Name)
	}
	return nil
}

// StillHeld says which session of a card holds up a start in the slot: every one
// that is not gone does (M-35; the card's workspace is shared by its slots, one
// run at a time), but an open pane of another slot that no run works in, and the
// slot's own pane if it may be kept. slot "" names none.
func StillHeld(v View, c *Card, slot string) (err *Error) {
	EachHeld(v, c.ID, func(h *Held) bool {
		if idlePane(h) {
			if h.Slot != slot {
				return true
			}
			if rec := GetSlot(v, c.ID, slot); rec != nil && rec.Run == h.Run && keepable(v, rec) != nil {
				return true
			}
		}
		err = stillHeld(v, h)
		return false
	})
	return err
}

func stillHeld(v View, h *Held) *Error {
	name := h.Node
	if n := GetNode(v, h.Node); n != nil {
		name = n.Name
	}
	if h.Manual && h.Ended && !h.Stopping {
		return Errorf(Refused, "the session that a person attached is still open on %s (run %s)", name, h.Run).WithCheck("session_open").
			WithHint("end it there; or have it ended: muster forget %s", h.Card)
	}
	return Errorf(Refused, "previous session on %s is still stopping (run %s)", name, h.Run).WithCheck("session_not_gone").
		WithHint("see: muster runs %s", h.Card)
}

// idlePane: its run ended by its own word, nothing stops it, and it stays open: a pane, or a session that a person
// attached, which is that person's to end.
func idlePane(h *Held) bool { return (h.Surface == "pane" || h.Manual) && h.Ended && !h.Stopping }

// cameUp makes the session that a node reported the slot's (SES-05).
func (t *tx) cameUp(r *Run) {
	rec := &SlotRec{Card: r.Card, Slot: r.Slot, Run: r.ID, Node: r.Node, SessionID: r.SessionID, Harness: r.Harness}
	if old := GetSlot(t, r.Card, r.Slot); old != nil && r.SessionID != "" && old.SessionID == r.SessionID {
		rec.Lost, rec.LostBefore = old.Lost, old.LostBefore
	}
	t.putSlot(rec)
}

// slotOfRun is the slot's record while it is the run's session that it names.
func (t *tx) slotOfRun(r *Run) *SlotRec {
	if rec := GetSlot(t, r.Card, r.Slot); rec != nil && rec.Run == r.ID {
		return rec
	}
	return nil
}

// sessionEvent is how the card's events call a session that came up (SES-17).
func sessionEvent(r *Run) string {
	switch {
	case r.Mode == ModeAdopt:
		return "session_adopted"
	case r.Mode == ModeResume:
		return "session_resumed"
	case r.Session.Replaces != "":
		return "session_replaced"
	}
	return "session_started"
}

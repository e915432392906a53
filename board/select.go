package board

import (
	"fmt"
	"slices"
	"strings"

	"muster/board/rule"
	"muster/board/workflow"
)

// pick is the selection of WFL-06: the first transition in order whose by
// admits the sender and whose guard holds. nil: none takes the event.
func (s *Scope) pick(event string, roles []string) (*workflow.Transition, *Error) {
	for _, tr := range s.wf.Transitions(s.card.Status, event) {
		if !tr.Admits(roles...) {
			continue
		}
		ok, err := s.Holds(tr.Guard)
		if err != nil {
			return nil, s.broken(tr, "guard", err)
		}
		if ok {
			return tr, nil
		}
	}
	return nil, nil
}

// validate refuses a chosen transition with a reason for people (WFL-08);
// until is when it may let go by time alone (ms), 0 when that is not known.
func (s *Scope) validate(tr *workflow.Transition) (refusal *Error, until int64) {
	for i := range tr.Validators {
		v := &tr.Validators[i]
		if v.Check != "" { // respawn_guard is the only named check
			if err, until := s.guard(); err != nil {
				return err, until
			}
			continue
		}
		bad, err := s.Holds(v.When)
		if err != nil {
			return s.broken(tr, "validator", err), 0
		}
		if !bad {
			continue
		}
		why, err := s.Render(v.Refuse)
		if err != nil {
			return s.broken(tr, "refuse", err), 0
		}
		return Errorf(Refused, "card %s: %s", s.card.ID, why).WithCheck("validator"), s.turns(v.When)
	}
	return nil, 0
}

// target is where a transition leads; without a target, or with an empty one, the card stays (WFL-07).
func (s *Scope) target(tr *workflow.Transition) (string, *Error) {
	to, err := s.Render(tr.Target)
	if err != nil {
		return "", s.broken(tr, "target", err)
	}
	if to = strings.TrimSpace(to); to == "" {
		return s.card.Status, nil
	}
	if s.wf.Statuses[to] == nil {
		return "", s.broken(tr, "target", fmt.Errorf("%q is no status of this workflow", clip(to, 60)))
	}
	return to, nil
}

// broken is the refusal of an event whose transition cannot be evaluated.
func (s *Scope) broken(tr *workflow.Transition, part string, err error) *Error {
	return ruleError(fmt.Sprintf("card %s: event %q: %s (workflow %s)", s.card.ID, tr.Event, part, tr.Pos), err)
}

// StartPlan is what a start by the platform would do (DSP-02): computed from
// the target status, with guards and without validators.
type StartPlan struct {
	Transition *workflow.Transition
	Target     string
	Stored     string
	Role, Slot string
	Profile    *workflow.Profile
}

// PlanStart plans a start of the scope's card by the platform (DSP-02, DSP-03).
// Errors are refusals with a Check: NoTransition when no guard holds or the
// status starts nothing, "no_run" when the target runs nothing (WFL-16),
// "unassigned", "profile". The scope has no planned profile yet.
func (s *Scope) PlanStart() (*StartPlan, *Error) { return s.planStart([]string{"platform"}, "") }

func (s *Scope) planStart(roles []string, profile string) (*StartPlan, *Error) {
	start := s.wf.Dispatch.Start
	tr, err := s.pick(start, roles)
	if err != nil {
		return nil, err
	}
	if tr == nil {
		return nil, s.notStartable(roles)
	}
	to, err := s.target(tr)
	if err != nil {
		return nil, err
	}
	spec := s.wf.Statuses[to].Run
	if tr.Target == nil || spec == nil {
		return nil, Errorf(Refused, "card %s: %q runs nothing", s.card.ID, to).WithCheck("no_run")
	}
	p := &StartPlan{Transition: tr, Target: to, Stored: s.wf.StoredAs(to), Role: claimRole(tr, spec)}
	if profile != "" {
		p.Profile, err = s.profileNamed(profile)
	} else {
		p.Profile, err = s.profileOf(p.Role)
	}
	if err != nil {
		return nil, err
	}
	var rerr error
	if p.Slot, rerr = s.slotOf(spec); rerr != nil {
		return nil, s.broken(tr, "session", rerr)
	}
	s.slot = p.Slot
	return p, nil
}

// Check holds the validators of a planned start against the card; until is when a named one lets go (ms), 0 when that is not known.
func (s *Scope) Check(p *StartPlan) (refusal *Error, until int64) { return s.validate(p.Transition) }

// Candidate is the planned start on a node, as caps see it.
func (s *Scope) Candidate(p *StartPlan, node string) *Candidate {
	model := s.card.Model
	if model == "" {
		model = p.Profile.Model
	}
	return &Candidate{Card: s.card.ID, Board: s.board.Slug, Node: node, Slot: p.Slot, Profile: p.Profile.Name, Harness: p.Profile.Harness,
		Model: model, Status: p.Target, Stored: p.Stored, Role: p.Role, Surface: p.Profile.Surface, Account: p.Profile.Account}
}

// claimRole is the role a start is claimed for: the claim's, else the entered status's.
func claimRole(tr *workflow.Transition, spec *workflow.RunSpec) string {
	for _, a := range tr.Do {
		if c, ok := a.(*workflow.Claim); ok && c.Role != "" {
			return c.Role
		}
	}
	return spec.Role
}

// profileOf is the profile that plays a role for the card (WFL-12, WFL-13, DSP-06).
func (s *Scope) profileOf(role string) (*workflow.Profile, *Error) {
	name, err := s.Role(role)
	if err != nil {
		return nil, ruleError("card "+s.card.ID, err)
	}
	if name == "" {
		if s.followsAssignee(role) {
			return nil, Errorf(Refused, "card %s: it is assigned to no profile, and its board gives none by default", s.card.ID).WithCheck("unassigned").
				WithHint("give it one: muster card edit %s --assignee PROFILE; or for the whole board: muster board set %s params.default_assignee=PROFILE", s.card.ID, s.board.Slug)
		}
		return nil, Errorf(Refused, "card %s: its board names no profile for the work of its %s", s.card.ID, role).WithCheck("unassigned").
			WithHint("see under roles: muster workflow show %s", s.board.Slug)
	}
	return s.profileNamed(name)
}

// followsAssignee tells that who plays the role depends on whom the card is assigned to.
func (s *Scope) followsAssignee(role string) bool {
	return s.wf.Roles[role] == nil || slices.ContainsFunc(s.wf.Roles[role].Reads(), func(r rule.Read) bool { return r.Name == "card.assignee" })
}

func (s *Scope) profileNamed(name string) (*workflow.Profile, *Error) {
	if p := s.wf.Profile(name); p != nil {
		return p, nil
	}
	return nil, Errorf(Refused, "card %s: this board has no profile %q", s.card.ID, clip(name, 60)).WithCheck("profile").
		WithHint("profiles are: %s", strings.Join(sortedKeys(s.wf.Profiles), ", "))
}

// Bound is the machine a start of the profile is tied to, as it is written
// (name or id), and what ties it; "" is any machine (M-05). What the card has
// there comes first; see [Scope.tied]. A pane runs on the card's machine; a
// headless session on the board's home when it names one, else on the card's machine.
func (s *Scope) Bound(p *workflow.Profile) (ref, why string) {
	if ref, why := s.tied(p); ref != "" {
		return ref, why
	}
	return s.named(p)
}

func (s *Scope) named(p *workflow.Profile) (ref, why string) {
	if p.Surface != "pane" && s.board.Home != "" {
		return s.board.Home, "home of board " + s.board.Slug
	}
	if s.card.Machine != "" {
		return s.card.Machine, "named by the card"
	}
	return "", ""
}

// Fits says whether the profile may run on the planned node (see [Scope.At]):
// bound there, not left or draining, no ESTOP, the harness is there, and
// requires holds. None of it is passed by force (M-14, M-16).
func (s *Scope) Fits(p *workflow.Profile) *Error {
	n, id := s.node, s.card.ID
	if p.Surface == "pane" && !n.Panes {
		return Errorf(Refused, "card %s: profile %q works in a terminal pane, and %s opens none", id, p.Name, n.Name).WithCheck("surface")
	}
	if err := s.torn(p); err != nil {
		return err
	}
	ref, why := s.Bound(p)
	if ref == "" && p.Placement == "named" {
		return Errorf(Refused, "card %s: profile %q runs only on a machine that the card names, and it names none", id, p.Name).WithCheck("machine").
			WithHint("muster card edit %s --machine M", id)
	}
	if ref != "" {
		want, err := FindNode(s.view, ref)
		if err != nil {
			return Errorf(Refused, "card %s: %s (%s)", id, err.Message, why).WithCheck("machine").WithHint("see: muster node list")
		}
		if want.ID != n.ID {
			return Errorf(Refused, "card %s: it runs on %s (%s), not on %s", id, want.Name, why, n.Name).WithCheck("machine")
		}
	}
	switch r := s.readingOf(n); {
	case n.State == NodeLeft:
		return Errorf(Refused, "card %s: %s has left the fleet", id, n.Name).WithCheck("machine")
	case n.Draining:
		return Errorf(Refused, "card %s: %s is draining: it takes nothing new", id, n.Name).WithCheck("drain").WithHint("muster node undrain %s", n.Name)
	case r.Estop:
		return Errorf(Refused, "card %s: %s starts nothing: there is an ESTOP file", id, n.Name).WithCheck("estop")
	case r.NoSpace:
		return Errorf(Refused, "card %s: %s starts nothing: NOSPACE: its disk is nearly full", id, n.Name).WithCheck("nospace").WithHint("free space on %s", n.Name)
	}
	if len(n.Boards) > 0 && !contains(n.Boards, s.board.Slug) {
		return Errorf(Refused, "card %s: %s does not take board %s, says its own file", id, n.Name, s.board.Slug).WithCheck("boards").WithHint("who owns %s can change it: boards in node.yaml of its data folder, then muster restart there", n.Name)
	}
	if p.Harness == "command" && len(n.Harnesses) > 0 && !contains(n.Harnesses, p.Harness) {
		return Errorf(Refused, "card %s: %s runs no plain commands, says its own file", id, n.Name).WithCheck("harness").WithHint("who owns %s can change it: harnesses in node.yaml of its data folder, then muster restart there", n.Name)
	}
	if h := s.wf.Harnesses[p.Harness]; h != nil && h.Preset && p.Harness != "command" && !contains(n.Harnesses, p.Harness) {
		return Errorf(Refused, "card %s: %s has no %s", id, n.Name, p.Harness).WithCheck("harness").WithHint("install it there, or give the card another profile")
	}
	return s.requires(p)
}

func (s *Scope) requires(p *workflow.Profile) *Error {
	mine := s.copy()
	mine.planned, mine.surface = p, true
	ok, err := mine.Holds(p.Requires)
	if err != nil {
		return ruleError(fmt.Sprintf("card %s: profile %q: requires", s.card.ID, p.Name), err)
	}
	if !ok {
		return Errorf(Refused, "card %s: %s does not meet what profile %q requires (%s)", s.card.ID, s.node.Name, p.Name, clip(p.Requires.Source(), 200)).WithCheck("requires")
	}
	return nil
}

package board

// PlanStartAs plans a start by somebody else than the platform: the same as
// [Scope.PlanStart], with the transitions that this sender may take.
func (s *Scope) PlanStartAs(a Actor) (*StartPlan, *Error) {
	roles := []string{a.Role}
	if a.Kind == ActorPerson && a.Role == "" {
		roles = []string{"manager"} // its role is found by Exec, from the state; a plan for too much is refused there
		a.Role = "manager"
	}
	s.From(a, nil)
	return s.planStart(roles)
}

// Round is how long a start counts in `starts` and tick.local_started, in ms (M-15).
func (s *Scope) Round() int64 { return roundOf(s.params) }

// Held is the number of sessions on a node that are not gone, with those that were taken.
func (r *Room) Held(node string) (n int64) {
	for _, h := range r.held {
		if h.Node == node {
			n++
		}
	}
	return n
}

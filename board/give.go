package board

import "strings"

// mayGive says whether a sender may give a card to a profile: people by the
// profile's who; a session only its own and what params.session_profiles lists
// (invariant 24). own is the profile of the sender's run.
func mayGive(fl *flow, a Actor, own, profile string) *Error {
	p := fl.wf.Profile(profile)
	if p == nil {
		return Errorf(NotFound, "this board has no profile %q", clip(profile, 60)).WithCheck("profile").
			WithHint("profiles are: %s", strings.Join(sortedKeys(fl.wf.Profiles), ", "))
	}
	switch a.Kind {
	case ActorRun:
		list, _ := fl.params["session_profiles"].([]any)
		for _, x := range list {
			if x == profile {
				return nil
			}
		}
		if profile != own {
			return Errorf(Refused, "a session gives cards to its own profile (%s), not to %q", own, profile).WithCheck("who").
				WithHint("a manager can allow more: params.session_profiles")
		}
	case ActorPerson:
		if !contains(p.Who, a.Role) && !(a.Role == "manager" && contains(p.Who, "member")) {
			return Errorf(Refused, "a %s may not give cards to profile %q", a.Role, profile).WithCheck("who").WithHint("it may be given by: %s", strings.Join(p.Who, ", "))
		}
	}
	return nil
}

// maySet holds a field that a sender's words decide against what the sender may
// decide: a session chooses no profile, machine or workspace beyond its card's (invariant 24).
func (st *step) maySet(field string, v any) *Error {
	s, _ := v.(string)
	if s == "" {
		return nil
	}
	a := st.f.Actor
	own := ""
	if a.Kind == ActorRun {
		if r := GetRun(st.t, a.Run); r != nil {
			own = r.Profile
		}
	}
	switch field {
	case "assignee":
		if s == st.c.Assignee {
			return nil
		}
		return mayGive(st.s.flow, a, own, s)
	case "machine", "workspace":
		if mine := map[string]string{"machine": st.c.Machine, "workspace": st.c.Workspace}[field]; a.Kind == ActorRun && s != mine {
			return Errorf(Refused, "card %s: a session chooses no %s beyond its card's", st.c.ID, field).WithCheck("who")
		}
	}
	return nil
}

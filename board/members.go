package board

// Members of the records of a scope, one switch each: the names are those of
// rule.Members, which a test holds against these.

func (s *Scope) cardMember(name string) any {
	c := s.card
	switch name {
	case "id":
		return c.ID
	case "board":
		return c.Board
	case "title":
		return text(c.Title)
	case "body":
		if s.body != nil {
			return text(*s.body)
		}
		return text(GetBody(s.view, c.ID))
	case "assignee":
		return text(c.Assignee)
	case "machine":
		return text(c.Machine)
	case "priority":
		return c.Priority
	case "labels":
		return dictValue(c.Labels)
	case "skills":
		return texts(c.Skills)
	case "model":
		return text(c.Model)
	case "max_runtime":
		return number(c.MaxRuntime)
	case "max_retries":
		return number(c.MaxRetries)
	case "goal_mode":
		return c.Goal
	case "goal_max_turns":
		return number(c.GoalMaxTurns)
	case "workspace":
		return text(c.Workspace)
	case "branch":
		return text(c.Branch)
	case "tenant":
		return text(c.Tenant)
	case "provider":
		return text(c.Provider)
	case "effort":
		return text(c.Effort)
	case "kind":
		return text(c.Kind)
	case "harness":
		if p := s.theProfile(); p != nil {
			return text(p.Harness)
		}
	default:
		return s.cardState(name)
	}
	return nil
}

// cardState are the members that the workflow keeps, not people.
func (s *Scope) cardState(name string) any {
	c := s.card
	switch name {
	case "status":
		return text(c.Status)
	case "stored":
		return text(s.wf.StoredAs(c.Status))
	case "previous":
		return text(c.Previous)
	case "finished":
		return s.Finished()
	case "parents_done":
		return s.ParentsDone()
	case "due":
		return c.StartAfter <= s.now
	case "subtasks_open":
		return s.subtasksOpen()
	case "subtask_of":
		return text(c.SubtaskOf)
	case "creator":
		return text(c.Creator.Kind)
	case "run":
		return text(c.Run)
	case "runs":
		return int64(c.Runs - c.Skipped)
	case "failures":
		return c.Failures
	case "blocks":
		out := make(map[string]any, len(c.Blocks))
		for k, n := range c.Blocks {
			out[k] = n
		}
		return out
	case "block_kind":
		return text(c.BlockKind)
	case "block_reason":
		return text(c.BlockReason)
	case "last_outcome":
		return text(c.LastOutcome)
	case "last_error":
		return text(c.LastError)
	case "session_live":
		return s.sessionLive()
	case "start_after":
		return moment(c.StartAfter)
	case "started_at":
		return moment(c.Started)
	case "created_at":
		return moment(c.Created)
	case "updated_at":
		return moment(c.Updated)
	case "entered_at":
		return moment(s.enteredAt())
	}
	return nil
}

func (s *Scope) runMember(name string) any {
	if s.surface {
		switch name {
		case "surface":
			return text(s.planned.Surface)
		case "machine":
			if s.node != nil {
				return text(s.node.Name)
			}
			return nil
		case "profile":
			return text(s.planned.Name)
		case "harness":
			return text(s.planned.Harness)
		}
	}
	r := s.theRun()
	if r == nil {
		return nil
	}
	switch name {
	case "id":
		return r.ID
	case "role":
		return text(r.Role)
	case "slot":
		return text(r.Slot)
	case "surface":
		return text(r.Surface)
	case "machine":
		if n := GetNode(s.view, r.Node); n != nil {
			return text(n.Name)
		}
		return text(r.Node)
	case "source":
		return text(r.Source)
	case "outcome":
		return text(r.Outcome)
	case "profile":
		return text(r.Profile)
	case "harness":
		return text(r.Harness)
	case "started_at":
		return moment(r.Claimed)
	case "ended_at":
		return moment(r.Ended)
	}
	return nil
}

func (s *Scope) machineMember(name string) any {
	n := s.machine()
	switch name {
	case "id":
		return n.ID
	case "name":
		return text(n.Name)
	case "labels":
		return dictValue(n.Labels)
	case "tools":
		return texts(n.Tools)
	case "always_on":
		return AlwaysOn(n)
	case "online":
		return s.readingOf(n).State == NodeOnline
	case "age":
		if r := s.readingOf(n); r.State == NodeOnline || r.State == NodeOffline {
			return seconds(r.AgeMS)
		}
	}
	return nil
}

// oldReading is the age at which a node's pressure says nothing any more (M-15).
const oldReading = 60_000

func (s *Scope) hostMember(name string) any {
	r := *s.reading
	known := r.State == NodeOnline && r.AgeMS < oldReading
	switch name {
	case "memory_pressure":
		if !known || r.Pressure == "" {
			return NodeUnknown
		}
		return r.Pressure
	case "slots":
		if known {
			return r.Slots
		}
		if s.node != nil {
			return s.node.Slots
		}
	case "load":
		if known {
			return r.Load
		}
	case "free_mb":
		if known {
			return r.FreeMB
		}
	}
	return nil
}

func (s *Scope) readingOf(n *Node) Reading {
	if s.reading != nil && s.node != nil && s.node.ID == n.ID {
		return *s.reading
	}
	if s.nodes == nil {
		return Reading{State: NodeUnknown}
	}
	return s.nodes(n.ID)
}

// subtasksOpen counts the card's parts that are not finished. It reads the
// whole board: only where an expression asks for it.
func (s *Scope) subtasksOpen() (n int64) {
	EachGlance(s.view, s.board, func(c *Glance) bool {
		if c.SubtaskOf == s.card.ID && !Finished(c.Stored) {
			n++
		}
		return true
	})
	return n
}

// sessionLive says that a session of the card runs on a node that was heard: no reading, no verdict (EXP-02).
func (s *Scope) sessionLive() bool {
	live := false
	EachHeld(s.view, s.card.ID, func(h *Held) bool {
		live = s.nodes != nil && s.nodes(h.Node).State == NodeOnline
		return !live
	})
	return live
}

// maxLookBack bounds a walk over a card's events.
const maxLookBack = 200

// enteredAt is when the card came into its status.
func (s *Scope) enteredAt() int64 {
	at, left := s.card.Created, maxLookBack
	CardEvents(s.view, s.card, func(e *Event) bool {
		if e.To != "" && e.To != e.From {
			at = e.At
			return false
		}
		left--
		return left > 0
	})
	return at
}

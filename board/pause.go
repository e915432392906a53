package board

import "muster/board/workflow"

// Pause and drain govern claims (M-16): nothing is claimed after their index,
// whatever the way in; a start by force passes a pause, never a drain. What was
// ordered before is launched.

// pause stops claims of the fleet or of a board until somebody resumes.
func pause(t *tx) (any, *Error) {
	a, err := args[Pause](t)
	switch {
	case err != nil:
		return nil, err
	case a.Why == "":
		return nil, Errorf(Invalid, "a pause says why").WithHint("use: muster pause --why TEXT")
	}
	return t.setPause(a.Board, a.Why)
}

// resume ends a pause; without one it does nothing.
func resume(t *tx) (any, *Error) {
	a, err := args[Pause](t)
	if err != nil {
		return nil, err
	}
	return t.setPause(a.Board, "")
}

func (t *tx) setPause(slug, why string) (any, *Error) {
	by, at, kind := t.req.Actor.Name, t.env.Now, "paused"
	why = clip(why, 500)
	if why == "" {
		by, at, kind = "", 0, "resumed"
	}
	payload := jsonOf(map[string]any{"why": why})
	if slug == "" {
		f := GetFleet(t)
		if f == nil {
			return nil, Errorf(NotFound, "there is no fleet yet")
		}
		if f.PausedBy == by && f.PausedWhy == why && (at == 0) == (f.PausedAt == 0) {
			return nil, nil
		}
		f.PausedBy, f.PausedWhy, f.PausedAt = orElse(by, whoPaused(at)), why, at
		t.putFleet(f)
		t.event(nil, Event{Kind: kind, Payload: payload})
		return map[string]any{"paused": at != 0}, nil
	}
	b := GetBoard(t, slug)
	if b == nil {
		return nil, Errorf(NotFound, "no board %q", clip(slug, 40)).WithHint("see: muster board list")
	}
	if b.PausedBy == by && b.PausedWhy == why && (at == 0) == (b.PausedAt == 0) {
		return nil, nil
	}
	b.PausedBy, b.PausedWhy, b.PausedAt = orElse(by, whoPaused(at)), why, at
	t.putBoard(b)
	t.event(nil, Event{Kind: kind, Board: b.Slug, Payload: payload})
	return map[string]any{"board": b.Slug, "paused": at != 0}, nil
}

func whoPaused(at int64) string {
	if at == 0 {
		return ""
	}
	return "somebody"
}

// drain lets a node finish what it runs and take nothing new; undrain ends that.
func drain(t *tx) (any, *Error) {
	a, err := args[Drain](t)
	if err != nil {
		return nil, err
	}
	n, err := FindNode(t, a.Node)
	switch {
	case err != nil:
		return nil, err
	case n.State == NodeLeft:
		return nil, Errorf(Refused, "%s has left the fleet", n.Name)
	case a.End && (a.EndSessions || a.Why != ""):
		return nil, Errorf(Invalid, "the end of a drain has no reason and ends no sessions")
	}
	if a.End == n.Draining || n.DrainWhy != clip(a.Why, 500) {
		n.Draining, n.DrainBy, n.DrainWhy, n.DrainAt = !a.End, t.req.Actor.Name, clip(a.Why, 500), t.env.Now
		kind := "node_draining"
		if a.End {
			n.DrainBy, n.DrainAt, kind = "", 0, "node_undrained"
		}
		t.putNode(n)
		t.event(nil, Event{Kind: kind, Payload: jsonOf(map[string]any{"node": n.Name, "why": n.DrainWhy})})
	}
	if a.EndSessions {
		t.endSessions(n)
	}
	left := 0
	EachHeld(t, "", func(h *Held) bool {
		if h.Node == n.ID {
			left++
		}
		return true
	})
	return map[string]any{"node": n.ID, "sessions": left}, nil
}

// endSessions takes the runs of a node away as a manager's reclaim does, and
// stops what the workflow would not let go of.
func (t *tx) endSessions(n *Node) {
	var runs []string
	EachHeld(t, "", func(h *Held) bool {
		if h.Node == n.ID && !h.Stopping {
			runs = append(runs, h.Run)
		}
		return true
	})
	why := n.Name + " is draining"
	for _, id := range runs {
		r := GetRun(t, id)
		if r == nil {
			continue
		}
		if c := GetCard(t, r.Card); c != nil && c.Run == r.ID {
			f := t.fork()
			if _, err := f.fire(GetBoard(t, c.Board), c, firing{Event: "reclaim", Actor: t.req.Actor, Payload: map[string]any{"why": why}, Run: GetRun(t, id)}); err == nil {
				t.join(f)
				continue
			}
		}
		t.closeSession(r, workflow.CloseSession)
	}
}

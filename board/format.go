package board

// The state has a format (architecture.md §7): what may stand in it. Formats are
// raised by the leader, one transaction, when every voter and every node seen
// within [FormatSeen] can; a node below the state's stores it, serves reads, and
// neither leads, executes nor launches. A table or a field that a build does not
// know is stored and told as it came. To add to the state: raise Format, and write
// what is new only where the fleet's record says that its format is reached.

// FormatSeen is how long a node that is away holds up the format, ms.
const FormatSeen = 30 * 24 * 3600 * 1000

// VFormat is the verb of the leader that raises the format, with FormatRaise.
const VFormat = "fleet.format"

// FormatRaise is the format that the state shall have.
type FormatRaise struct {
	Format uint64 `json:"format"`
}

// TooNew says that this build is below the state's format, and what to do; nil when it is not.
func TooNew(v View) *Error {
	f := GetFleet(v)
	if f == nil || f.Format <= Format {
		return nil
	}
	return Errorf(Unavailable, "this muster is too old for its fleet: the state has format %d, and it knows %d; it stores and shows the state, and neither leads nor starts anything", f.Format, Format).
		WithCheck("format").WithHint("start this node with a newer muster: muster restart --binary F")
}

// NextFormat is the format that the state may be raised to by who can do can:
// have, when none. online tells of a node that it is in contact.
func NextFormat(have, can uint64, nodes []Node, now int64, online func(id string) bool) uint64 {
	to := can
	for i := range nodes {
		n := &nodes[i]
		here := online(n.ID)
		switch {
		case n.Role == RoleVoter && !here:
			return have
		case !here && n.State != NodeOnline && n.OfflineSince > 0 && now-n.OfflineSince > FormatSeen:
			continue
		}
		to = min(to, max(n.Format, 1))
	}
	return max(have, to)
}

// raiseFormat writes the state's format: it only rises, and never beyond what this build can.
func raiseFormat(t *tx) (any, *Error) {
	a, err := args[FormatRaise](t)
	if err != nil {
		return nil, err
	}
	f := GetFleet(t)
	switch {
	case f == nil:
		return nil, Errorf(NotFound, "there is no fleet yet")
	case a.Format > Format:
		return nil, Errorf(Refused, "format %d is beyond what this leader knows (%d)", a.Format, Format)
	case a.Format <= f.Format:
		return nil, nil
	}
	was := f.Format
	f.Format = a.Format
	t.putFleet(f)
	if was < FormatDirectory && a.Format >= FormatDirectory {
		t.sweepAgents()
	}
	t.event(nil, Event{Kind: "format_raised", Payload: jsonOf(map[string]any{"format": a.Format})})
	return map[string]any{"format": a.Format}, nil
}

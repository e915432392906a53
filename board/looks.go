package board

// Look is what a node tells of a person who looks at one of its terminals (PAN): a session's
// pane, or a shell. A look has three words at most, and a node says few of them in an hour.
type Look struct {
	Word     string `json:"word"` // LookBegan, LookTyped, LookEnded
	Who      string `json:"who"`
	At       string `json:"at"` // id of the node whose door they used
	Shell    bool   `json:"shell,omitempty"`
	ReadOnly bool   `json:"read_only,omitempty"`
	Seconds  int64  `json:"seconds,omitempty"` // of ended: how long it was
	Typed    int64  `json:"typed,omitempty"`   // bytes
	Why      string `json:"why,omitempty"`     // of ended: left, ended, lost
	More     int64  `json:"more,omitempty"`    // words before this one that were not told: too many
}

// Words of a [Look].
const (
	LookBegan = "began"
	LookTyped = "typed"
	LookEnded = "ended"
)

// looked records who looks at a terminal. It changes nothing else: a look needs no leader to
// begin, and ends when it ends.
func (t *tx) looked(a *Report) *Error {
	l := a.Look
	if l == nil || l.Who == "" {
		return Errorf(Invalid, "a look of nobody")
	}
	var r *Run
	if a.Run != "" {
		var err *Error
		if r, err = t.findRun(a.Run); err != nil {
			return err
		}
		if r.Node != t.req.Actor.Node {
			return Errorf(Refused, "run %s is not on %s", r.ID, t.nodeName(t.req.Actor.Node))
		}
	}
	p := map[string]any{"machine": t.nodeName(t.req.Actor.Node)}
	setIf(p, "why", clip(l.Why, 40))
	if l.ReadOnly {
		p["read_only"] = true
	}
	if l.Word == LookEnded {
		p["seconds"], p["typed"] = max(l.Seconds, 0), max(l.Typed, 0)
	}
	if l.More > 0 {
		p["more"] = l.More
	}
	e := Event{Actor: Actor{Kind: ActorPerson, Name: clip(l.Who, 130), Node: l.At}, Payload: jsonOf(p)}
	if r != nil {
		e.Run = r.ID
	}
	switch {
	case l.Word == LookBegan && l.Shell:
		e.Kind = "shell_opened"
	case l.Word == LookEnded && l.Shell:
		e.Kind = "shell_closed"
	case l.Word == LookBegan:
		e.Kind = "attached"
	case l.Word == LookTyped:
		e.Kind = "typed"
	case l.Word == LookEnded:
		e.Kind = "detached"
	default:
		return Errorf(Invalid, "a look has no word %q", clip(l.Word, 40))
	}
	var c *Card
	if r != nil {
		c = GetCard(t, r.Card)
	}
	t.event(c, e)
	if c != nil {
		t.putCard(c)
	}
	return nil
}

package document

// Options say what becomes of what does not go by itself.
type Options struct {
	Prefer string // "dir" or "board": whose word counts where both sides changed; "" neither's
	Put    bool   // statuses are put as the files have them, past the workflow
}

// A Change is one field that one side has changed since the base. Field "" is a whole card or file.
type Change struct {
	File  string `json:"file"`
	Card  string `json:"card,omitempty"`
	Field string `json:"field,omitempty"`
	From  any    `json:"from,omitempty"`
	To    any    `json:"to,omitempty"`
}

// A Conflict is one field that cannot be taken back as it stands.
type Conflict struct {
	File  string `json:"file"`
	Card  string `json:"card,omitempty"`
	Field string `json:"field"`
	Dir   any    `json:"dir,omitempty"`
	Board any    `json:"board,omitempty"`
	Why   string `json:"why"`
	Hint  string `json:"hint,omitempty"`
}

// Plan is what becomes of a folder that is taken back.
type Plan struct {
	Changes   []Change   `json:"changes"`   // of the folder: they go to the board
	Incoming  []Change   `json:"incoming"`  // of the board: they come to the folder
	Conflicts []Conflict `json:"conflicts"` // nothing is done before these are settled

	Steps []Step `json:"-"` // in order; empty where there are conflicts

	says []Step // come last: a comment that was made leaves its file at once
	o    Options
	now  *Board
	dir  *Board
	base *Base
}

// Compare holds the folder's board against the board as it is, by the base that both come from.
func Compare(base *Base, dir, now *Board, o Options) *Plan {
	p := &Plan{Changes: []Change{}, Incoming: []Change{}, Conflicts: []Conflict{}, o: o, now: now, dir: dir, base: base}
	set := p.values("", base.Values, dir.Values, now.Values, boardFile, func(name string) bool { return boardField[name].own })
	steps := p.boardSteps(set)
	var edits []Step
	for _, c := range dir.Cards {
		if c.New == "" {
			edits = append(edits, p.card(c)...)
		}
	}
	for _, c := range now.Cards {
		if dir.Card(c.ID()) == nil {
			p.absent(c)
		}
	}
	steps = append(append(append(steps, p.filed()...), edits...), p.says...)
	if len(p.Conflicts) == 0 {
		p.Steps = steps
	}
	return p
}

func boardFile(name string) string {
	if name == fieldWorkflow {
		return WorkflowFile
	}
	return BoardFile
}

// values compares field by field and gives those that the folder changes.
func (p *Plan) values(card string, base map[string]string, dir, now Values, file func(string) string, own func(string) bool) (changed []string) {
	names := map[string]bool{}
	for _, v := range []Values{dir, now} {
		for n := range v {
			names[n] = true
		}
	}
	for _, name := range sorted(names) {
		d, n := dir[name], now[name]
		c := Conflict{File: file(name), Card: card, Field: name, Dir: d, Board: n}
		switch was := base[name]; {
		case same(d, n):
		case hashOf(d) == was:
			p.Incoming = append(p.Incoming, Change{c.File, card, name, nil, n})
		case own(name):
			c.Why = "that is the board's own word"
			p.settle(c, false)
		case name == fieldStatus && !p.o.Put:
			c.Why, c.Hint = "a status is changed by an event of the workflow", "muster event "+card+" EVENT, or apply with --put to move it past the workflow"
			p.settle(c, false)
		case hashOf(n) != was:
			c.Why = "both sides have changed it"
			if !p.settle(c, true) {
				continue
			}
			fallthrough
		default:
			changed = append(changed, name)
			p.Changes = append(p.Changes, Change{c.File, card, name, n, d})
		}
	}
	return changed
}

// hashOf is a value's hash, "" of none: so it stands in a base.
func hashOf(v any) string {
	if v == nil {
		return ""
	}
	return Hash(v)
}

// settle applies what the caller prefers; true: the folder's word counts.
func (p *Plan) settle(c Conflict, may bool) (dir bool) {
	switch {
	case p.o.Prefer == "dir" && may:
		return true
	case p.o.Prefer == "board":
		p.Incoming = append(p.Incoming, Change{c.File, c.Card, c.Field, c.Dir, c.Board})
		return false
	}
	p.Conflicts = append(p.Conflicts, c)
	return false
}

// card compares one card.
func (p *Plan) card(c *Card) []Step {
	id := c.ID()
	now, base := p.now.Card(id), p.base.Cards[id]
	if now == nil {
		p.settle(Conflict{File: c.File, Card: id, Field: fieldID, Dir: id, Why: "the board has no such card", Hint: "to file a new card leave its id out, under another file name"}, false)
		return nil
	}
	changed := p.values(id, base, c.Values, now.Values, func(string) string { return c.File }, func(name string) bool { return fieldNamed[name].own })
	said, has := c.thread(), now.thread()
	switch was := base[fieldSaid]; {
	case same(said, has):
	case Hash(said) == was:
		p.Incoming = append(p.Incoming, Change{c.File, id, fieldSaid, nil, len(now.Said)})
	default:
		p.settle(Conflict{File: c.File, Card: id, Field: fieldSaid, Why: "what was said is not changed or taken away", Hint: "write a new comment below the line " + markSay}, false)
	}
	steps := p.edit(c, now, changed)
	for _, text := range c.Fresh {
		p.Changes = append(p.Changes, Change{c.File, id, "comment", nil, text})
		p.says = append(p.says, comment(id, text))
	}
	return steps
}

// absent is a card of the board whose file is not there.
func (p *Plan) absent(now *Card) {
	id := now.ID()
	if p.base.Cards[id] == nil {
		p.Incoming = append(p.Incoming, Change{File: now.File, Card: id, To: now.Values["title"]})
		return
	}
	p.settle(Conflict{File: now.File, Card: id, Field: fieldID, Board: id, Why: "its file is gone, and a card is not deleted", Hint: "muster archive " + id + "; --prefer board brings the file back"}, false)
}

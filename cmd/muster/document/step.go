package document

import (
	"maps"
	"slices"
	"strings"

	"muster/board"
)

// Step is one request to the fleet. What names a card may name one that an earlier step files.
type Step struct {
	Verb  string         `json:"verb"`
	Card  string         `json:"card,omitempty"`
	After []string       `json:"after,omitempty"`
	Args  map[string]any `json:"args,omitempty"`
	Files string         `json:"files,omitempty"` // the new card that it files: its file's name
}

// newCard is how a step names a card that is still to be filed.
const newCard = "new:"

// Resolve gives the step's args; ids are of the cards that were filed, by their files' names.
func (s *Step) Resolve(ids map[string]string) map[string]any {
	name := func(ref string) string {
		if stem, ok := strings.CutPrefix(ref, newCard); ok {
			return ids[stem]
		}
		return ref
	}
	args := maps.Clone(s.Args)
	if args == nil {
		args = map[string]any{}
	}
	if s.Card != "" {
		args["card"] = name(s.Card)
	}
	if len(s.After) > 0 {
		list := make([]string, len(s.After))
		for i, ref := range s.After {
			list[i] = name(ref)
		}
		args["after"] = list
	}
	return args
}

// File is the file that the step is about; ids are of new cards that are filed.
func (s *Step) File(ids map[string]string) string {
	stem, isNew := strings.CutPrefix(s.Card, newCard)
	switch id := ids[stem]; {
	case s.Files != "":
		return cardFile(s.Files)
	case isNew && id != "":
		return cardFile(id)
	case s.Card != "":
		return cardFile(stem)
	case s.Verb == board.VBoardApply:
		return WorkflowFile
	}
	return BoardFile
}

// Says is the comment that the step makes; "" of any other.
func (s *Step) Says() string {
	p, _ := s.Args["payload"].(map[string]any)
	if s.Verb != board.VEvent {
		return ""
	}
	return text(p["text"])
}

func comment(card, text string) Step {
	return Step{Verb: board.VEvent, Card: card, Args: map[string]any{"event": "comment", "payload": map[string]any{"text": text}}}
}

// boardSteps are what the board itself is told: its workflow first, since cards are given to its profiles.
func (p *Plan) boardSteps(changed []string) (steps []Step) {
	set, was := map[string]any{}, map[string]any{}
	for _, name := range changed {
		if name == fieldWorkflow {
			steps = append(steps, Step{Verb: board.VBoardApply, Args: map[string]any{"board": p.now.Slug(), "yaml": p.dir.Values.text(name), "was": p.now.Version}})
			continue
		}
		set[name], was[name] = p.dir.Values[name], p.now.Values[name]
		switch param := strings.HasPrefix(name, paramPrefix); {
		case set[name] != nil:
		case param:
			p.Conflicts = append(p.Conflicts, Conflict{File: BoardFile, Field: name, Board: was[name], Why: "a parameter that was set stays set", Hint: "give the value of the workflow, or null"})
		case name == "keep":
			p.Conflicts = append(p.Conflicts, Conflict{File: BoardFile, Field: name, Board: was[name], Why: "a board keeps its events for a number of days", Hint: "give a number"})
		}
	}
	if len(set) > 0 {
		steps = append(steps, Step{Verb: board.VBoardSet, Args: map[string]any{"board": p.now.Slug(), "set": set, "was": was}})
	}
	return steps
}

// edit are the steps that change a card that is there.
func (p *Plan) edit(c, now *Card, changed []string) (steps []Step) {
	id := c.ID()
	set, was := map[string]any{}, map[string]any{}
	for _, name := range changed {
		switch name {
		case fieldStatus:
			steps = append(steps, Step{Verb: board.VCardPut, Card: id, Args: map[string]any{"status": c.Values.text(name), "why": "the card's document says so"}})
			continue
		case fieldAfter:
			steps = append(steps, p.relink(c, now)...)
			continue
		}
		if c.Values[name] == nil && fieldNamed[name].opt {
			p.Conflicts = append(p.Conflicts, Conflict{File: c.File, Card: id, Field: name, Board: now.Values[name], Why: "it cannot be taken away", Hint: "give another value"})
			continue
		}
		set[name], was[name] = argument(name, c.Values[name]), argument(name, now.Values[name])
		if name == "labels" {
			set[name], was[name] = changedLabels(c.Values.dict(name), now.Values.dict(name))
		}
	}
	if len(set) > 0 {
		set["was"] = was
		steps = append([]Step{{Verb: board.VCardEdit, Card: id, Args: set}}, steps...)
	}
	return steps
}

// argument is a value as `card.edit` takes it; of an absent one, what takes it away.
func argument(name string, v any) any {
	if v != nil {
		return v
	}
	switch f := fieldNamed[name]; f.kind {
	case intKind, timeKind:
		return int64(0)
	case flagKind:
		return false
	case listKind:
		return []string{}
	case dictKind:
		return map[string]string{}
	}
	return ""
}

func changedLabels(dir, now map[string]string) (set, was map[string]string) {
	set, was = map[string]string{}, map[string]string{}
	for _, m := range []map[string]string{dir, now} {
		for k := range m {
			if dir[k] != now[k] {
				set[k], was[k] = dir[k], now[k]
			}
		}
	}
	return set, was
}

// relink are the steps that make a card wait for what its file says.
func (p *Plan) relink(c, now *Card) (steps []Step) {
	var more, less []string
	want, has := c.Values.list(fieldAfter), now.Values.list(fieldAfter)
	for _, ref := range want {
		if !slices.Contains(has, ref) {
			more = append(more, p.ref(c, ref))
		}
	}
	for _, id := range has {
		if !slices.Contains(want, id) {
			less = append(less, id)
		}
	}
	if len(more) > 0 {
		steps = append(steps, Step{Verb: board.VCardLink, Card: c.ID(), After: more})
	}
	if len(less) > 0 {
		steps = append(steps, Step{Verb: board.VCardUnlink, Card: c.ID(), After: less})
	}
	return steps
}

// ref is what a file names: a card's id, or a new card's file.
func (p *Plan) ref(c *Card, name string) string {
	for _, x := range p.dir.Cards {
		if x.New != "" && x.New == name {
			return newCard + name
		}
	}
	if !idRE.MatchString(name) {
		p.Conflicts = append(p.Conflicts, Conflict{File: c.File, Card: c.ID(), Field: fieldAfter, Dir: name, Why: Show(name) + " is neither a card's id nor a new file's name"})
	}
	return name
}

// filed are the steps that file new cards, each after those it waits for.
func (p *Plan) filed() (steps []Step) {
	var wait []*Card
	for _, c := range p.dir.Cards {
		if c.New != "" {
			wait = append(wait, c)
			p.Changes = append(p.Changes, Change{File: c.File, To: c.Values["title"]})
		}
	}
	done := map[string]bool{}
	for len(wait) > 0 {
		var later []*Card
		for _, c := range wait {
			s := p.file(c)
			if slices.ContainsFunc(append(slices.Clone(s.After), text(s.Args["subtask_of"])), func(ref string) bool { return strings.HasPrefix(ref, newCard) && !done[ref] }) {
				later = append(later, c)
				continue
			}
			done[newCard+c.New] = true
			steps = append(steps, s)
			for _, say := range c.Fresh {
				p.says = append(p.says, comment(newCard+c.New, say))
			}
		}
		if len(later) == len(wait) {
			for _, c := range later {
				p.Conflicts = append(p.Conflicts, Conflict{File: c.File, Field: fieldAfter, Why: "new cards wait for each other in a circle"})
			}
			return nil
		}
		wait = later
	}
	return steps
}

func text(v any) string { s, _ := v.(string); return s }

// file is the step that files one new card.
func (p *Plan) file(c *Card) Step {
	s := Step{Verb: board.VCardAdd, Files: c.New, Args: map[string]any{"board": p.now.Slug()}}
	bad := func(name, why string) {
		x := Conflict{File: c.File, Field: name, Dir: c.Values[name], Why: why, Hint: "leave it out"}
		if !slices.ContainsFunc(p.Conflicts, func(y Conflict) bool { return y.File == x.File && y.Field == x.Field }) {
			p.Conflicts = append(p.Conflicts, x)
		}
	}
	for _, name := range sorted(c.Values) {
		switch {
		case name == fieldAfter:
			for _, ref := range c.Values.list(name) {
				s.After = append(s.After, p.ref(c, ref))
			}
		case name == fieldStatus && c.Values.text(name) == "triage":
			s.Args["triage"] = true
		case name == fieldStatus:
			bad(name, "a new card begins where its workflow says")
		case name == "subtask_of":
			s.Args[name] = c.Values[name]
		case fieldNamed[name].own:
			bad(name, "that is the board's own word")
		default:
			s.Args[name] = c.Values[name]
		}
	}
	if len(c.Said) > 0 {
		bad(fieldSaid, "nobody has said anything on a new card yet")
	}
	return s
}

package mirror

import (
	"bytes"
	"context"
	"fmt"
	"path"
	"slices"
	"strings"

	"muster/board"
	"muster/cmd/muster/document"
)

const (
	pageEvents = 500  // of one reading of the state
	scanEvents = 5000 // that it walks, other boards' among them
)

// page makes the commits of some events; more tells that there may be others.
func (m *Mirror) page(ctx context.Context) (more bool, err error) {
	fleet := ""
	if err := m.Source.View(func(v board.View) error {
		if f := board.GetFleet(v); f != nil {
			fleet = f.ID
		}
		return nil
	}); err != nil {
		return false, err
	}
	from := m.walked
	if from == "" {
		if from, err = m.cursor(ctx, fleet); err != nil {
			return false, err
		}
	}
	p := &page{m: m, fleet: fleet, walked: from}
	if err := m.Source.View(func(v board.View) error {
		if from == "" {
			return p.whole(v)
		}
		return p.read(v, from)
	}); err != nil {
		return false, err
	}
	if len(p.commits) == 0 { // other boards': the next reading begins behind them
		m.walked = p.walked
		return p.more, nil
	}
	m.walked = "" // until the commits stand
	in := p.stream(m.git.at(ctx, m.ref()))
	if _, err := m.git.run(ctx, in, "fast-import", "--quiet", "--date-format=raw"); err != nil {
		return false, err
	}
	m.Commits += len(p.commits)
	m.walked = p.walked
	return p.more, nil
}

// commit is one event with the files that it changed.
type commit struct {
	event string // key
	by    board.Actor
	at    int64 // ms
	text  string
	files map[string][]byte // nil content: the file goes
}

type page struct {
	m       *Mirror
	fleet   string
	commits []commit
	walked  string // key of the last event that was looked at
	more    bool
}

// whole is the first commit: the board as it is, at its newest event.
func (p *page) whole(v board.View) error {
	b := board.GetBoard(v, p.m.Board)
	if b == nil { // not yet, or no more
		return nil
	}
	newest, at := board.EventKey(0, 0), b.Created
	if key, _ := v.Last(board.TEvent, ""); key != "" {
		if e := board.GetEvent(v, key); e != nil {
			newest, at = key, e.At
		}
	}
	p.walked = newest
	doc, err := document.Collect(func(emit func([]byte) error) error { return board.ExportLive(v, b, emit) })
	if err != nil {
		return err
	}
	p.commits = append(p.commits, commit{event: newest, by: board.Platform(), at: at, text: "board " + p.m.Board + ": as it is", files: doc.Mirrored()})
	return nil
}

// read makes a commit of each event behind the cursor. What a card was between two of them is told by the events:
// its status, its thread, whether somebody had it. What another field was before its last change is not known to the state any more.
func (p *page) read(v board.View, from string) error {
	b := board.GetBoard(v, p.m.Board)
	if b == nil { // not yet, or no more
		return nil
	}
	var events []*board.Event
	walked, cards := 0, []string{}
	board.EachEvent(v, from, func(key string, e *board.Event) bool {
		if key <= from {
			return true
		}
		walked++
		p.walked = key
		if e.Board == b.Slug && e.Origin == "" {
			events = append(events, e)
			if e.Card != "" && !slices.Contains(cards, e.Card) {
				cards = append(cards, e.Card)
			}
		}
		p.more = len(events) >= pageEvents || walked >= scanEvents
		return !p.more
	})
	if len(events) == 0 {
		return nil
	}
	doc, err := document.Collect(func(emit func([]byte) error) error { return board.ExportLiveCards(v, b, cards, emit) })
	if err != nil {
		return err
	}
	was := map[string]past{} // of each card after the event that is looked at, going back
	for _, c := range doc.Cards {
		was[c.ID()] = past{c.Status(), c.Assignee()}
	}
	if p.more { // events behind this page moved cards on
		for _, id := range cards {
			if c := board.GetCard(v, id); c != nil {
				board.CardEvents(v, c, func(e *board.Event) bool {
					if e.ID <= events[len(events)-1].ID {
						return false
					}
					was[id] = was[id].before(e)
					return true
				})
			}
		}
	}
	after := make([]past, len(events))
	for i, e := range slices.Backward(events) {
		after[i] = was[e.Card]
		was[e.Card] = after[i].before(e)
	}
	for i, e := range events {
		p.event(doc, e, after[i])
	}
	return nil
}

// past is what is known of a card as it was after one of its events.
type past struct{ status, assignee string }

// before is the card before an event.
func (p past) before(e *board.Event) past {
	if e.To != "" {
		p.status = e.From
	}
	if e.Kind == "assigned" && !bytes.Contains(e.Payload, []byte(`"fallback of `)) { // who has nobody is given somebody by a start
		p.assignee = ""
	}
	return p
}

func (p *page) event(doc *document.Board, e *board.Event, then past) {
	x := commit{event: e.ID, by: e.Actor, at: e.At, text: e.Kind, files: map[string][]byte{}}
	if c := doc.Card(e.Card); c != nil {
		name, raw := c.AsOf(then.status, then.assignee, e.ID)
		x.files[name], x.text = raw, e.Card+": "+e.Kind
	} else if e.Card == "" {
		x.files, x.text = doc.Settings(), "board "+p.m.Board+": "+e.Kind
	}
	if e.To != "" && e.From != e.To {
		x.text += ", " + e.To
	}
	p.commits = append(p.commits, x)
}

// stream is what git's fast-import reads. Nothing in it is of this machine or of this moment.
func (p *page) stream(parent string) []byte {
	var b bytes.Buffer
	data := func(raw []byte) { fmt.Fprintf(&b, "data %d\n%s\n", len(raw), raw) }
	for i, c := range p.commits {
		date := fmt.Sprintf("%d +0000", c.at/1000)
		fmt.Fprintf(&b, "commit %s\nauthor %s %s\ncommitter muster <muster@%s> %s\n", p.m.ref(), person(c.by), date, word(p.fleet), date)
		data(fmt.Appendf(nil, "%s\n\nMuster-Board: %s/%s\nMuster-Event: %s\n", strings.Map(line, c.text), p.fleet, p.m.Board, board.EventID(c.event)))
		if i == 0 && parent != "" {
			fmt.Fprintf(&b, "from %s\n", parent)
		}
		for _, name := range sortedNames(c.files) {
			if c.files[name] == nil {
				fmt.Fprintf(&b, "D %s\n", path.Join(p.m.Folder, name))
				continue
			}
			fmt.Fprintf(&b, "M 100644 inline %s\n", path.Join(p.m.Folder, name))
			data(c.files[name])
		}
		b.WriteByte('\n')
	}
	return b.Bytes()
}

func sortedNames(m map[string][]byte) []string {
	var list []string
	for k := range m {
		list = append(list, k)
	}
	slices.Sort(list)
	return list
}

// person is an actor as git names an author.
func person(a board.Actor) string {
	name := a.Name
	if name == "" {
		name = a.Kind
	}
	user, host, ok := strings.Cut(name, "@")
	if !ok {
		host = "muster"
	}
	return fmt.Sprintf("%s <%s@%s>", strings.TrimSpace(strings.Map(line, user)), word(user), word(host))
}

// line keeps what git takes in a name on one line.
func line(r rune) rune {
	if r < 0x20 || r == 0x7f || r == '<' || r == '>' {
		return '_'
	}
	return r
}

// word is text as a part of an address.
func word(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '.', r == '-', r == '_', r == ':':
			return r
		}
		return '_'
	}, s)
	if s == "" {
		return "muster"
	}
	return s
}

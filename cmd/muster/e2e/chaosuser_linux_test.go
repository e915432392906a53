package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/history"
)

// people are the users of a fleet under faults: what they asked and were told is
// kept, for the judge of package history.
type people struct {
	f     *fleet
	doors []*api.Client
	book  *book
	long  bool

	mu    sync.Mutex
	ops   []history.Op
	open  []asking // without an outcome so far
	work  []string // cards that sessions work at
	cards []string // cards that are spoken of
	acked int
	last  time.Time     // a write was acknowledged
	gap   time.Duration // the longest between two
}

// asking is a request of which somebody may still want to know.
type asking struct {
	verb, id string
	args     any
	op       history.Op
}

func newPeople(f *fleet, b *book, long bool) *people {
	p := &people{f: f, book: b, long: long}
	for _, m := range f.machines {
		p.doors = append(p.doors, &api.Client{Socket: m.api.Socket, Timeout: 3 * time.Second})
	}
	return p
}

// errNoOutcome says that nobody knows the outcome.
var errNoOutcome = errors.New("no outcome so far")

// ask asks under one id at one door after the other until there is an outcome, or
// patience ends. sure says that no copy of it was executed or will be.
func (p *people) ask(rng *rand.Rand, q *asking, patient time.Duration) (data json.RawMessage, sure bool, err error) {
	sent := q.id != "" // who asks again: a copy is out
	for end := time.Now().Add(patient); time.Now().Before(end); pauseFor(rng, 20, 150) {
		door := p.doors[rng.IntN(len(p.doors))]
		if q.id == "" {
			if q.id, err = door.Mint(context.Background()); err != nil {
				q.id = ""
				continue
			}
		}
		a, err := door.Do(context.Background(), q.verb, q.args, q.id, sent)
		var e *board.Error
		switch {
		case err == nil:
			return a.Data, true, nil
		case !errors.As(err, &e):
			return nil, false, err
		case e.Code == board.UnknownOutcome:
			sent = true
		case e.Code != board.Unavailable:
			return nil, true, err
		}
	}
	return nil, !sent, errNoOutcome
}

func pauseFor(rng *rand.Rand, least, most int) {
	<-time.After(time.Duration(least+rng.IntN(most-least)) * time.Millisecond)
}

// say has one operation done and keeps what came of it.
func (p *people) say(rng *rand.Rand, op history.Op, verb string, args any) {
	q := asking{verb: verb, args: args, op: op}
	q.op.Call = time.Now()
	data, sure, err := p.ask(rng, &q, 8*time.Second)
	switch {
	case errors.Is(err, errNoOutcome) && sure:
		return
	case errors.Is(err, errNoOutcome):
		p.mu.Lock()
		p.open = append(p.open, q)
		p.mu.Unlock()
		return
	}
	p.keep(q, data, err)
	if err == nil && rng.IntN(10) == 0 {
		p.again(rng, q, data)
	}
}

// keep writes an outcome into the history.
func (p *people) keep(q asking, data json.RawMessage, err error) {
	now := time.Now()
	p.mu.Lock()
	defer p.mu.Unlock()
	q.op.Ret, q.op.Refused = now, err != nil
	if q.op.Kind != "add" {
		p.ops = append(p.ops, q.op)
	}
	if err != nil {
		return
	}
	var card struct{ ID string }
	if q.op.Kind == "add" && json.Unmarshal(data, &card) == nil {
		p.work = append(p.work, card.ID)
	}
	p.acked++
	if !p.last.IsZero() {
		p.gap = max(p.gap, now.Sub(p.last))
	}
	p.last = now
}

// restart begins a new count of the time without an acknowledged event.
func (p *people) restart() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.last = time.Time{}
}

// again asks for the outcome of what was acknowledged, elsewhere: it is the same.
func (p *people) again(rng *rand.Rand, q asking, data json.RawMessage) {
	op := history.Op{User: q.op.User, Kind: "copy", Card: q.id, Text: string(data), Call: q.op.Call, Ret: time.Now()}
	called := time.Now()
	second, _, err := p.ask(rng, &q, 8*time.Second)
	if errors.Is(err, errNoOutcome) {
		return
	}
	text := string(second)
	if err != nil {
		text = "refused: " + err.Error()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ops = append(p.ops, op, history.Op{User: q.op.User, Kind: "copy", Card: q.id, Text: text, Call: called, Ret: time.Now()})
}

// look is a consistent read at a door.
func (p *people) look(user int, door *api.Client, card string) (history.Op, error) {
	op := history.Op{User: user, Kind: "read", Card: card, Call: time.Now()}
	c, err := api.Decode[api.CardDetail](door.Get(context.Background(), "/v1/cards/"+card, url.Values{"consistent": {"true"}}))
	if err != nil {
		return op, err
	}
	var said []string
	for _, m := range c.Comments {
		if strings.HasPrefix(m.Text, "u") {
			said = append(said, m.Text)
		}
	}
	slices.Sort(said)
	op.Text, op.Prio, op.Ret = strings.Join(said, " "), c.Priority, time.Now()
	p.mu.Lock()
	p.ops = append(p.ops, op)
	p.mu.Unlock()
	return op, nil
}

// life is what one of them does until it is over.
func (p *people) life(user int, seed uint64, over <-chan struct{}) {
	rng := rand.New(rand.NewPCG(seed, uint64(1000+user)))
	for i := 0; ; i++ {
		select {
		case <-over:
			return
		default:
		}
		p.mu.Lock()
		recent := p.cards[max(0, len(p.cards)-6):]
		card := recent[rng.IntN(len(recent))]
		p.mu.Unlock()
		switch k := rng.IntN(100); {
		case k < 45:
			text := fmt.Sprintf("u%d.%d", user, i)
			p.say(rng, history.Op{User: user, Kind: "comment", Card: card, Text: text}, board.VEvent, board.FireEvent{Card: card, Event: "comment", Payload: map[string]any{"text": text}})
		case k < 65:
			prio := int64(rng.IntN(1000))
			p.say(rng, history.Op{User: user, Kind: "priority", Card: card, Prio: prio}, board.VCardEdit, board.CardEdit{Card: card, CardFields: board.CardFields{Priority: &prio}})
		case k < 92:
			_, _ = p.look(user, p.doors[rng.IntN(len(p.doors))], card) // one that has no answer says nothing
		case k < 97:
			p.file(rng, user, i)
		default:
			p.topic(rng, user, i)
		}
		pauseFor(rng, 30, 200)
	}
}

// file files a card for a session.
func (p *people) file(rng *rand.Rand, user, i int) {
	count := 1 + rng.IntN(6)
	if p.long && rng.IntN(2) == 0 {
		count = 10 + rng.IntN(40) // long enough to be there when its machine is lost
	}
	p.say(rng, history.Op{User: user, Kind: "add"}, board.VCardAdd, cardAdd(fmt.Sprintf("work %d.%d", user, i), p.book.script(count), nil))
}

// topic files a card to speak of.
func (p *people) topic(rng *rand.Rand, user, i int) {
	title := fmt.Sprintf("topic %d.%d", user, i)
	q := asking{verb: board.VCardAdd, args: board.CardAdd{Board: "default", Triage: true, CardFields: board.CardFields{Title: &title}}}
	data, _, err := p.ask(rng, &q, 8*time.Second)
	var card struct{ ID string }
	if err == nil && json.Unmarshal(data, &card) == nil && card.ID != "" {
		p.mu.Lock()
		p.cards = append(p.cards, card.ID)
		p.mu.Unlock()
	}
}

// settle gives every request an outcome that has none yet, and reads every card once more.
func (p *people) settle(t *testing.T, seed uint64) {
	rng := rand.New(rand.NewPCG(seed, 2000))
	for _, q := range p.open {
		data, _, err := p.ask(rng, &q, patience)
		if errors.Is(err, errNoOutcome) {
			t.Errorf("request %s (%s) has no outcome after everything was healed", q.id, q.verb)
			continue
		}
		p.keep(q, data, err)
	}
	for _, card := range p.cards {
		for end := time.Now().Add(patience); ; pauseFor(rng, 50, 100) {
			if _, err := p.look(99, p.doors[rng.IntN(len(p.doors))], card); err == nil {
				break
			} else if time.Now().After(end) {
				t.Errorf("no consistent read of %s after everything was healed: %v", card, err)
				break
			}
		}
	}
}

// lostWords counts, by the last read of each card, the acknowledged words that are not
// there, and those that are there more than once.
func lostWords(ops []history.Op) (gone, twice int) {
	last := map[string]history.Op{}
	for _, o := range ops {
		if o.Kind == "read" && o.Ret.After(last[o.Card].Ret) {
			last[o.Card] = o
		}
	}
	for _, o := range ops {
		if o.Kind != "comment" || o.Refused || o.Open {
			continue
		}
		n := 0
		for _, text := range strings.Fields(last[o.Card].Text) {
			if text == o.Text {
				n++
			}
		}
		switch {
		case n == 0:
			gone++
		case n > 1:
			twice++
		}
	}
	return gone, twice
}

// What is lost or there twice is counted.
func TestChaosLost(t *testing.T) {
	at := func(s int64) time.Time { return time.Unix(s, 0) }
	ops := []history.Op{
		{Kind: "comment", Card: "c", Text: "u1", Ret: at(1)}, {Kind: "comment", Card: "c", Text: "u2", Ret: at(2)}, {Kind: "comment", Card: "c", Text: "u3", Ret: at(3)},
		{Kind: "comment", Card: "c", Text: "u4", Ret: at(3), Refused: true},
		{Kind: "read", Card: "c", Text: "u1 u2 u3", Ret: at(4)}, {Kind: "read", Card: "c", Text: "u1 u3 u3", Ret: at(5)},
	}
	if gone, twice := lostWords(ops); gone != 1 || twice != 1 {
		t.Errorf("%d lost and %d twice, want 1 and 1", gone, twice)
	}
}

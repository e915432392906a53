package demo

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"muster/cmd/muster/api"
)

// beat is how often the picture is drawn anew.
const beat = 150 * time.Millisecond

// now is the fleet as one of its nodes shows it.
type now struct {
	status   api.Status
	cards    map[string]api.Card
	sessions map[string][]string // node -> cards
	done     int
}

// now asks the first node that answers.
func (s *show) now(ctx context.Context) (*now, error) {
	var last error
	for _, m := range s.machines {
		if !m.up() {
			continue
		}
		n, err := s.ask(ctx, m)
		if err == nil {
			return n, nil
		}
		last = err
	}
	return nil, fmt.Errorf("no node answers: %w", last)
}

func (s *show) ask(ctx context.Context, m *machine) (*now, error) {
	n := &now{cards: map[string]api.Card{}, sessions: map[string][]string{}}
	var err error
	if n.status, err = api.Decode[api.Status](m.client.Get(ctx, "/v1/status", nil)); err != nil {
		return nil, err
	}
	list, err := api.Decode[[]api.Card](m.client.Get(ctx, "/v1/cards", url.Values{"all": {"true"}, "board": {"primes"}}))
	if err != nil && len(s.ids) > 0 {
		return nil, err
	}
	for _, c := range list {
		n.cards[c.ID] = c
		if c.Status == "done" {
			n.done++
		}
	}
	running, err := api.Decode[[]api.Session](m.client.Get(ctx, "/v1/sessions", nil))
	if err != nil {
		return nil, err
	}
	for _, r := range running {
		n.sessions[r.Node] = append(n.sessions[r.Node], r.Card)
	}
	return n, nil
}

// tick waits a beat, and shows what is.
func (s *show) tick(ctx context.Context) (*now, error) {
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(beat):
	}
	n, err := s.now(ctx)
	if err != nil {
		return nil, err
	}
	s.screen.draw(s.look(n))
	return n, nil
}

// until watches until a condition holds. A blocked card ends the wait: nothing
// will come of it.
func (s *show) until(ctx context.Context, limit time.Duration, what string, cond func(*now) bool) error {
	deadline := time.Now().Add(limit)
	for {
		n, err := s.tick(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err == nil && cond(n):
			return nil
		case time.Now().After(deadline):
			if err != nil {
				return fmt.Errorf("after %s not %s: %w", limit, what, err)
			}
			return fmt.Errorf("after %s not %s: %s", limit, what, open(n))
		case err == nil:
			for _, c := range n.cards {
				if c.Status == "blocked" {
					return fmt.Errorf("card %s (%s) is blocked: %s", c.ID, c.Title, attention(c))
				}
			}
		}
	}
}

func attention(c api.Card) string {
	if c.Attention != nil {
		return c.Attention.Text
	}
	return "see its log"
}

// open says what is not done, and why.
func open(n *now) string {
	var words []string
	for id, c := range n.cards {
		if c.Status == "done" {
			continue
		}
		why := ""
		if c.Reason != nil {
			why = ": " + c.Reason.Text
		}
		words = append(words, id+" "+c.Status+why)
	}
	return fmt.Sprintf("%d cards open, %d voters; %s", len(words), n.status.Voters, strings.Join(words, ", "))
}

// look is the picture of now.
func (s *show) look(n *now) look {
	l := look{done: n.done, all: len(s.deck)}
	for _, m := range s.machines {
		x := nodeLook{name: m.name, dead: s.dead[m.name], sessions: n.sessions[m.name], slots: 4, role: "joining"}
		for _, st := range n.status.Nodes {
			if st.Name == m.name {
				x.role = st.Role
				if n.status.Leader == m.name {
					x.role = "leader"
				}
			}
		}
		if m.up() || x.dead != "" {
			l.nodes = append(l.nodes, x)
		}
	}
	for _, k := range kinds {
		r := row{kind: k}
		for i, c := range s.deck {
			if c.kind == k {
				id := ""
				if i < len(s.ids) {
					id = s.ids[i]
				}
				r.cells = append(r.cells, cellOf(n.cards[id]))
			}
		}
		l.rows = append(l.rows, r)
	}
	return l
}

func cellOf(c api.Card) cell {
	switch {
	case c.Status == "done":
		return done
	case c.Status == "blocked":
		return stuck
	case c.Run != nil:
		return runs
	}
	return waits
}

// evidence gathers what the show has left behind.
func (s *show) evidence(ctx context.Context) (e Evidence, err error) {
	if e.States, err = s.states(ctx); err != nil {
		return e, err
	}
	n, err := s.now(ctx)
	if err != nil {
		return e, err
	}
	for i, c := range s.deck {
		e.Acked = append(e.Acked, Ack{s.ids[i], c.title})
	}
	for id, c := range n.cards {
		e.Cards = append(e.Cards, Ack{id, c.Title})
	}
	names := map[string]string{}
	for _, x := range n.status.Nodes {
		names[x.ID] = x.Name
	}
	for _, m := range s.machines {
		list, err := m.sessions(names)
		if err != nil {
			return e, err
		}
		e.Started = append(e.Started, list...)
	}
	if e.Claims, err = s.claims(ctx, n); err != nil {
		return e, err
	}
	b, err := os.ReadFile(filepath.Join(s.dir, "work", "words"))
	if err != nil {
		return e, fmt.Errorf("the sessions' words: %w", err)
	}
	for line := range strings.Lines(string(b)) {
		w := strings.Fields(line)
		if len(w) != 3 {
			return e, fmt.Errorf("the sessions' words hold a broken line %q", line)
		}
		e.Words = append(e.Words, Word{w[0], w[1], w[2]})
	}
	return e, nil
}

// claims are the runs of all cards, with the Seq of the transaction that made each.
func (s *show) claims(ctx context.Context, n *now) (list []Claim, err error) {
	m := s.machines[0]
	where := map[string]string{}
	for id := range n.cards {
		runs, err := api.Decode[[]api.Run](m.client.Get(ctx, "/v1/cards/"+id+"/runs", nil))
		if err != nil {
			return nil, err
		}
		for _, r := range runs {
			where[r.ID] = r.Node
		}
	}
	since := ""
	for {
		events, err := api.Decode[[]api.Event](m.client.Get(ctx, "/v1/events", url.Values{"since": {since}, "board": {"primes"}}))
		if err != nil || len(events) == 0 {
			return list, err
		}
		for _, v := range events {
			since = v.ID
			if v.Kind != "claimed" {
				continue
			}
			at, _, _ := strings.Cut(v.ID, ".")
			seq, err := strconv.ParseUint(at, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("event id %q: %w", v.ID, err)
			}
			list = append(list, Claim{Run: v.Run, Node: where[v.Run], Seq: seq})
		}
	}
}

// states waits until all nodes have applied the same Seq, and takes their hashes.
func (s *show) states(ctx context.Context) (list []StateAt, err error) {
	deadline := time.Now().Add(20 * time.Second)
	for {
		list = list[:0]
		for _, m := range s.machines {
			st, err := api.Decode[api.Status](m.client.Get(ctx, "/v1/status", nil))
			if err != nil {
				return nil, err
			}
			hash, at, _ := strings.Cut(st.Hash, "@")
			seq, err := strconv.ParseUint(at, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("%s: hash %q: %w", m.name, st.Hash, err)
			}
			list = append(list, StateAt{m.name, hash, seq})
		}
		same := true
		for _, x := range list {
			same = same && x.Seq == list[0].Seq
		}
		if same || time.Now().After(deadline) {
			return list, nil
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(beat):
		}
	}
}

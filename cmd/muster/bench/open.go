package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"go.etcd.io/bbolt"
	"golang.org/x/sync/errgroup"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/mesh"
	"muster/raftstore"
)

// A large fleet is one node, stopped, whose state holds many cards.
type large struct {
	fleet *Fleet
	node  *FleetNode
	copy  string  // of its state, to open beside it
	json  float64 // bytes of all cards with their texts
	empty float64 // RssAnon of the node before the cards
}

// settle is how long a started node is left alone before its memory is read.
const settle = 2 * time.Second

// newLarge makes a node, and files cards into its state with the node stopped:
// through the same executor, log and state, but without a door.
func newLarge(ctx context.Context, env Env) (*large, error) {
	f, err := StartFleet(ctx, env, 1)
	if err != nil {
		return nil, err
	}
	l := &large{fleet: f, node: f.Nodes[0], copy: filepath.Join(env.Dir, "state.copy")}
	if l.empty, err = l.memory(ctx, settle); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	l.node.Stop()
	from := time.Now()
	if err := l.fill(ctx, env.Cards, env.Body); err != nil {
		return nil, fmt.Errorf("fill a state with %d cards: %w", env.Cards, err)
	}
	fmt.Fprintf(env.Log, "  %d cards filed in %s, %.0f MB as JSON\n", env.Cards, time.Since(from).Round(time.Millisecond), l.json/1e6)
	state, err := os.ReadFile(filepath.Join(l.node.Data, "raft", "state.db"))
	if err != nil {
		return nil, fmt.Errorf("copy the state: %w", err)
	}
	return l, os.WriteFile(l.copy, state, 0o600)
}

// fill opens the node's store, leads as its only voter, and files cards.
func (l *large) fill(ctx context.Context, cards, body int) (err error) {
	ident, err := mesh.LoadOrCreateIdentity(l.node.Data)
	if err != nil {
		return err
	}
	var saved struct {
		Store string `json:"store"`
	}
	b, err := os.ReadFile(filepath.Join(l.node.Data, "node.json"))
	if err != nil {
		return err
	}
	if err := json.Unmarshal(b, &saved); err != nil {
		return err
	}
	c := raftstore.DefaultConfig()
	c.Dir, c.Server = filepath.Join(l.node.Data, "raft"), string(ident.ID)+"/"+saved.Store
	c.Exec, c.Workflows = board.Exec, board.NewWorkflows()
	c.Nodes = func(string) board.Reading { return board.Reading{State: board.NodeUnknown} }
	if c.Listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return err
	}
	s, err := raftstore.Open(c)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	for _, ok := s.LeaderTerm(); !ok; _, ok = s.LeaderTerm() {
		select {
		case <-s.LeaderChanged():
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if err := file(ctx, s, string(ident.ID), cards, body); err != nil {
		return err
	}
	return s.View(func(v board.View) (err error) {
		board.EachCard(v, nil, func(c *board.Card) bool {
			var text []byte
			text, err = json.Marshal(api.DetailOf(v, c))
			l.json += float64(len(text))
			return err == nil
		})
		return err
	})
}

// file files cards with texts of so many bytes, many at a time.
func file(ctx context.Context, s *raftstore.Store, node string, cards, size int) error {
	g, ctx := errgroup.WithContext(ctx)
	var next atomic.Int64
	body := strings.Repeat("b", size)
	for range 256 {
		g.Go(func() error {
			for n := next.Add(1); n <= int64(cards); n = next.Add(1) {
				title := fmt.Sprintf("card number %d of many", n)
				args, err := json.Marshal(board.CardAdd{Triage: true, CardFields: board.CardFields{Title: &title, Body: &body}})
				if err != nil {
					return err
				}
				res := s.Do(ctx, &board.Request{Actor: board.Actor{Kind: board.ActorPerson, Name: "bench", Node: node}, Verb: board.VCardAdd, Args: args})
				if res.Err != nil {
					return res.Err
				}
			}
			return nil
		})
	}
	return g.Wait()
}

// starts is a side: how long from the start of the process until its API
// answers; then it has opened its state, leads and has recorded its start.
func (l *large) starts() Side {
	return Side{Name: "start of the node -> its API answers", Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		var all []time.Duration
		end := time.Now().Add(window)
		for len(all) == 0 || time.Now().Before(end) {
			from := time.Now()
			if err := l.fleet.Start(ctx, l.node); err != nil {
				return Sample{}, err
			}
			all = append(all, time.Since(from))
			l.node.Stop()
		}
		return sampleOf(LatencyOf(all)), nil
	}}
}

// scans is the least that an opening costs: bbolt.Open, and every key once.
func (l *large) scans() Side {
	return Side{Name: "bbolt.Open and one full scan of the same state", Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		keys := 0
		sample, err := p50(ctx, window, func() error {
			db, err := bbolt.Open(l.copy, 0o600, &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType, Timeout: time.Second})
			if err != nil {
				return err
			}
			keys = 0
			err = db.View(func(tx *bbolt.Tx) error {
				return tx.ForEach(func(_ []byte, b *bbolt.Bucket) error {
					return b.ForEach(func(_, _ []byte) error { keys++; return nil })
				})
			})
			return errors.Join(err, db.Close())
		})
		sample.Counters = map[string]float64{"keys": float64(keys)}
		return sample, err
	}}
}

// memory starts the node if need be, lets it settle, and reads its RssAnon.
func (l *large) memory(ctx context.Context, wait time.Duration) (float64, error) {
	if l.node.ended == nil {
		if err := l.fleet.Start(ctx, l.node); err != nil {
			return 0, err
		}
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	n, err := anonymous(l.node.cmd.Process.Pid)
	return float64(n), err
}

// grown is a side: the node's own memory beyond that of an empty node.
func (l *large) grown() Side {
	return Side{Name: "RssAnon of the node beyond an empty one's", Run: func(ctx context.Context, _ time.Duration) (Sample, error) {
		n, err := l.memory(ctx, settle)
		l.node.Stop()
		return Sample{
			Value:    max(n-l.empty, 1) / 1e6,
			Counters: map[string]float64{"RssAnon, MB": n / 1e6, "RssAnon of the empty node, MB": l.empty / 1e6},
		}, err
	}}
}

func (l *large) text() Side {
	return Side{Name: "all cards with their texts as JSON", Run: func(context.Context, time.Duration) (Sample, error) {
		return Sample{Value: l.json / 1e6}, nil
	}}
}

// open measures a node with many cards: its start (P10) and its memory (P8).
func open(ctx context.Context, env Env) ([]Result, error) {
	l, err := newLarge(ctx, env)
	if err != nil {
		return nil, err
	}
	defer l.node.Stop()
	r, err := Pair(ctx, env.Config("open", "ms", Goal{Name: "gate", AtMost: 4}, Goal{Name: "target", AtMost: 2}, Goal{Name: "moonshot", AtMost: 1.2}), l.starts(), l.scans())
	all := []Result{r}
	if err != nil {
		return all, err
	}
	c := env.Config("memory", "MB", Goal{Name: "gate", AtMost: 1}, Goal{Name: "target", AtMost: 0.3}, Goal{Name: "moonshot", AtMost: 0.1})
	c.Warmup = 0
	r, err = Pair(ctx, c, l.grown(), l.text())
	return append(all, r), err
}

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

// loads are the numbers of clients of the throughput benches.
var loads = []int{1, 16, 64, 256}

// eventText is what an event says: P1's 256 bytes.
const eventText = 256

// comments says what clients send: each comments on a card of its own. The node
// mints the request's id, as for any caller that will not retry.
func comments(f *Fleet, cards []string) (Posts, error) {
	bodies := make([][]byte, len(cards))
	for i, card := range cards {
		args, err := json.Marshal(board.FireEvent{Card: card, Event: "comment", Payload: map[string]any{"text": strings.Repeat("e", eventText)}})
		if err != nil {
			return Posts{}, err
		}
		if bodies[i], err = json.Marshal(api.Do{Verb: board.VEvent, Args: args}); err != nil {
			return Posts{}, err
		}
	}
	return Posts{
		Path: "/v1/do",
		Body: func(client, _ int) []byte { return bodies[client%len(bodies)] },
		OK: func(status int, answer []byte) error {
			if status != http.StatusOK {
				return fmt.Errorf("event: %d %s", status, answer)
			}
			return nil
		},
		Counters: f.counted,
	}, nil
}

// withFleet measures a fleet with a card for each client.
func withFleet(ctx context.Context, env Env, nodes int, measure func(f *Fleet, p Posts) ([]Result, error)) ([]Result, error) {
	f, err := StartFleet(ctx, env, nodes)
	if err != nil {
		return nil, err
	}
	cards, err := f.Cards(ctx, slices.Max(loads))
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	p, err := comments(f, cards)
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	r, err := measure(f, p)
	return r, errors.Join(err, f.Close())
}

func (f *Fleet) doors() []string {
	var list []string
	for _, n := range f.Nodes {
		list = append(list, n.Socket())
	}
	return list
}

// eventsOf is P1 for one number of clients.
func eventsOf(clients int) func(context.Context, Env) ([]Result, error) {
	return func(ctx context.Context, env Env) ([]Result, error) {
		return eventsThree(ctx, env, "events", StartEtcd, []int{clients})
	}
}

// eventsTLSOf is the same with TLS on both sides: etcd's members have it, too.
func eventsTLSOf(clients int) func(context.Context, Env) ([]Result, error) {
	return func(ctx context.Context, env Env) ([]Result, error) {
		return eventsThree(ctx, env, "events-tls", StartEtcdTLS, []int{clients})
	}
}

// eventsAll is P1 for all numbers of clients.
func eventsAll(ctx context.Context, env Env) ([]Result, error) {
	return eventsThree(ctx, env, "events", StartEtcd, loads)
}

// eventsThree is P1: events of three nodes against the puts of the etcd that begin starts.
func eventsThree(ctx context.Context, env Env, name string, begin func(context.Context, string) (*Etcd, error), loads []int) ([]Result, error) {
	e, err := begin(ctx, env.Dir)
	if err != nil {
		return nil, err
	}
	r, err := withFleet(ctx, env, 3, func(f *Fleet, p Posts) ([]Result, error) {
		var all []Result
		for _, n := range loads {
			var goals []Goal
			if n == 64 {
				goals = []Goal{{Name: "gate", AtLeast: 1}, {Name: "target", AtLeast: 1.5}, {Name: "moonshot", AtLeast: 3}}
			}
			ours := HTTPPosts(fmt.Sprintf("events of three nodes, %d B, %d clients at all nodes", eventText, n), "unix", f.doors(), n, p)
			r, err := Pair(ctx, env.Config(fmt.Sprintf("%s-%d", name, n), "1/s", goals...), ours, e.Puts(n, eventText, 0))
			all = append(all, r)
			if err != nil {
				return all, err
			}
		}
		return all, nil
	})
	return r, errors.Join(err, e.Close())
}

// eventsOne is a fleet of one, against what its disk can sync one by one.
func eventsOne(ctx context.Context, env Env) ([]Result, error) {
	return withFleet(ctx, env, 1, func(f *Fleet, p Posts) ([]Result, error) {
		var all []Result
		for _, n := range loads {
			ours := HTTPPosts(fmt.Sprintf("events of one node, %d B, %d clients", eventText, n), "unix", f.doors(), n, p)
			r, err := Pair(ctx, env.Config(fmt.Sprintf("events-one-%d", n), "1/s"), ours, syncsPerSecond(env.Dir))
			all = append(all, r)
			if err != nil {
				return all, err
			}
		}
		return all, nil
	})
}

// syncsPerSecond is how often a second this disk syncs one small write after the other.
func syncsPerSecond(dir string) Side {
	return Side{Name: "fdatasync 4 KiB, one after the other", Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		f, err := newSyncFile(dir)
		if err != nil {
			return Sample{}, err
		}
		defer f.close()
		l, err := ClosedLoop(ctx, window, 1, func(context.Context, int, int) error { return f.appendAndSync() })
		return Sample{Value: l.PerSecond(), Latency: &l.Latency}, err
	}}
}

// eventAck is P2: one client at the leader of three nodes, against the least a
// durable answer can cost, and against etcd where it is.
func eventAck(ctx context.Context, env Env) ([]Result, error) {
	return withFleet(ctx, env, 3, func(f *Fleet, p Posts) ([]Result, error) {
		leader, other, err := f.Sort(ctx)
		if err != nil {
			return nil, err
		}
		at := func(n *FleetNode, where string) Side {
			return HTTPAck("event of three nodes, one client at "+where, "unix", n.Socket(), p)
		}
		r, err := Pair(ctx, env.Config("ack", "ms", Goal{Name: "gate", AtMost: 6}, Goal{Name: "target", AtMost: 4.5}, Goal{Name: "moonshot", AtMost: 2}),
			at(leader, "the leader"), SyncAndRTT(env.Dir))
		all := []Result{r}
		if err != nil {
			return all, err
		}
		r, err = Pair(ctx, env.Config("ack-hop", "ms"), at(other, "another node"), at(leader, "the leader"))
		all = append(all, r)
		if err != nil {
			return all, err
		}
		e, err := StartEtcd(ctx, env.Dir)
		if err != nil {
			return all, err
		}
		r, err = Pair(ctx, env.Config("ack-etcd", "ms", Goal{Name: "gate", AtMost: 1.1}, Goal{Name: "target", AtMost: 0.9}), at(leader, "the leader"), e.Ack(eventText))
		return append(all, r), errors.Join(err, e.Close())
	})
}

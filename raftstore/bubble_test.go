package raftstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// bubble runs fn in fake time. Raft leaves futures unanswered when it is shut
// down: who waits for one stays behind, and the bubble says so at its end.
func bubble(t *testing.T, fn func(t *testing.T)) {
	t.Helper()
	defer func() {
		if p := recover(); p != nil && !strings.Contains(fmt.Sprint(p), "blocked goroutines remain") {
			panic(p)
		}
	}()
	synctest.Test(t, fn)
}

// pass lets fake time pass.
func pass(d time.Duration) { <-time.After(d) }

var errLink = errors.New("link is cut")

// links is a network in fake time: each direction of each pair by itself.
type links struct {
	mu    sync.Mutex
	rng   *rand.Rand
	cut   map[[2]string]bool
	slow  float64                         // chance that something travels for up to two seconds
	peers map[string]*raft.InmemTransport // by node, those that are up
}

func newLinks(seed int64) *links {
	return &links{rng: rand.New(rand.NewSource(seed)), cut: map[[2]string]bool{}, peers: map[string]*raft.InmemTransport{}}
}

func (l *links) chance(p float64) bool { l.mu.Lock(); defer l.mu.Unlock(); return l.rng.Float64() < p }
func (l *links) upTo(n int) int        { l.mu.Lock(); defer l.mu.Unlock(); return l.rng.Intn(n) }

func (l *links) set(from, to string, cut bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut[[2]string{from, to}] = cut
}

func (l *links) heal() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut, l.slow = map[[2]string]bool{}, 0
}

// travel takes the time of one way; false if it does not arrive.
func (l *links) travel(from, to string) bool {
	if from == to {
		return true
	}
	l.mu.Lock()
	d := time.Duration(200+l.rng.Intn(2000)) * time.Microsecond
	if l.rng.Float64() < l.slow {
		d += time.Duration(l.rng.Intn(2000)) * time.Millisecond
	}
	cut := l.cut[[2]string{from, to}]
	l.mu.Unlock()
	pass(d)
	return !cut
}

// over runs a call from one node to another across both ways.
func (l *links) over(ctx context.Context, from, to string, call func() error) error {
	if !l.travel(from, to) {
		select { // nobody says no on a cut link
		case <-ctx.Done():
		case <-time.After(150 * time.Millisecond):
		}
		return errLink
	}
	err := call()
	if !l.travel(to, from) {
		return errLink
	}
	return err
}

// bubbleTransport is Raft's in-memory transport across links.
type bubbleTransport struct {
	*raft.InmemTransport
	links *links
	me    string
}

// plug connects a node's transport with all that are up.
func (l *links) plug(node string) *bubbleTransport {
	_, t := raft.NewInmemTransportWithTimeout(raft.ServerAddress(node), 400*time.Millisecond)
	l.mu.Lock()
	defer l.mu.Unlock()
	for name, p := range l.peers {
		p.Connect(raft.ServerAddress(node), t)
		t.Connect(raft.ServerAddress(name), p)
	}
	l.peers[node] = t
	return &bubbleTransport{InmemTransport: t, links: l, me: node}
}

func (l *links) unplug(node string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.peers, node)
	for _, p := range l.peers {
		p.Disconnect(raft.ServerAddress(node))
	}
}

func (t *bubbleTransport) over(target raft.ServerAddress, call func() error) error {
	return t.links.over(context.Background(), t.me, string(target), call)
}

func (t *bubbleTransport) AppendEntriesPipeline(raft.ServerID, raft.ServerAddress) (raft.AppendPipeline, error) {
	return nil, raft.ErrPipelineReplicationNotSupported
}

func (t *bubbleTransport) AppendEntries(id raft.ServerID, a raft.ServerAddress, q *raft.AppendEntriesRequest, r *raft.AppendEntriesResponse) error {
	return t.over(a, func() error { return t.InmemTransport.AppendEntries(id, a, q, r) })
}

func (t *bubbleTransport) RequestVote(id raft.ServerID, a raft.ServerAddress, q *raft.RequestVoteRequest, r *raft.RequestVoteResponse) error {
	return t.over(a, func() error { return t.InmemTransport.RequestVote(id, a, q, r) })
}

func (t *bubbleTransport) RequestPreVote(id raft.ServerID, a raft.ServerAddress, q *raft.RequestPreVoteRequest, r *raft.RequestPreVoteResponse) error {
	return t.over(a, func() error { return t.InmemTransport.RequestPreVote(id, a, q, r) })
}

func (t *bubbleTransport) InstallSnapshot(id raft.ServerID, a raft.ServerAddress, q *raft.InstallSnapshotRequest, r *raft.InstallSnapshotResponse, d io.Reader) error {
	return t.over(a, func() error { return t.InmemTransport.InstallSnapshot(id, a, q, r, d) })
}

func (t *bubbleTransport) TimeoutNow(id raft.ServerID, a raft.ServerAddress, q *raft.TimeoutNowRequest, r *raft.TimeoutNowResponse) error {
	return t.over(a, func() error { return t.InmemTransport.TimeoutNow(id, a, q, r) })
}

package node

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/raftstore"
)

// peerTime is how long a peer is waited for when a person asks how it answers.
const peerTime = 2 * time.Second

// Peers asks every other node of the list, all at once, for its clock: how long
// the answer takes, and how far the clock is from this machine's.
func (b backend) Peers(ctx context.Context) api.Peers {
	n := b.n
	names := map[string]string{}
	_ = n.store.View(func(v board.View) error {
		board.EachNode(v, func(x *board.Node) bool { names[x.ID] = x.Name; return true })
		return nil
	})
	delete(names, string(n.ident.ID))
	out := api.Peers{Timers: n.cfg.Timers, Peers: []api.Peer{}}
	var mu sync.Mutex
	var wg sync.WaitGroup
	for id, name := range names {
		wg.Go(func() {
			p := n.askPeer(ctx, id)
			p.ID, p.Name = id, name
			mu.Lock()
			defer mu.Unlock()
			out.Peers = append(out.Peers, p)
		})
	}
	wg.Wait()
	slices.SortFunc(out.Peers, func(a, b api.Peer) int { return strings.Compare(a.Name, b.Name) })
	return out
}

func (n *Node) askPeer(ctx context.Context, id string) (p api.Peer) {
	ctx, cancel := context.WithTimeout(ctx, peerTime)
	defer cancel()
	best := time.Duration(-1)
	for range 3 { // the first may have to dial
		var ms int64
		sent := time.Now()
		if err := n.call(ctx, id, "clock", nil, &ms); err != nil {
			if best < 0 {
				p.Error = err.Error()
			}
			break
		}
		if took := time.Since(sent); best < 0 || took < best {
			best = took
			p.RTTMS = float64(took.Microseconds()) / 1000
			p.ClockOffMS = ms - n.cfg.Wall().Add(-took/2).UnixMilli()
		}
	}
	return p
}

// LookFolder is a quick look at a stopped node's own files: not at every entry and value, as CheckFolder with a store's report.
func LookFolder(dir string) []string {
	var r raftstore.Report
	f := CheckFolder(dir, &r)
	if f.Copied != "" {
		f.Faults = append(f.Faults, "this folder is a copy, or was put back: "+f.Copied)
	}
	return slices.DeleteFunc(f.Faults, func(s string) bool { return strings.HasPrefix(s, "the log is missing") })
}

// Memory is what this machine has free and in all, MB; 0, 0 when it does not say.
func Memory() (free, total int64) {
	free, total, ok := memory()
	if !ok {
		return 0, 0
	}
	return free, total
}

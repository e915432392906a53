package mesh

import (
	"context"
	"log/slog"
	"sync"
	"testing"
)

func benchPair(b *testing.B) (from, to *Node) {
	var ids [2]*Identity
	var dirs [2]string
	trusted := make(map[NodeID]bool)
	for i := range ids {
		dirs[i] = b.TempDir()
		id, err := LoadOrCreateIdentity(dirs[i])
		if err != nil {
			b.Fatal(err)
		}
		ids[i] = id
		trusted[id.ID] = true
	}
	var nodes [2]*Node
	for i := range nodes {
		c := DefaultConfig()
		c.Dir, c.Identity, c.FleetID, c.Listen = dirs[i], ids[i], "bench", "127.0.0.1:0"
		c.Logger = slog.New(slog.DiscardHandler)
		c.Trust = func(id NodeID) bool { return trusted[id] }
		c.Handler = func(_ context.Context, _ NodeID, _ string, body []byte) ([]byte, error) { return body, nil }
		n, err := New(c)
		if err != nil {
			b.Fatal(err)
		}
		if err := n.Open(); err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { _ = n.Close() })
		nodes[i] = n
	}
	nodes[0].SetPeer(nodes[1].Self(), nodes[1].Addr().String())
	return nodes[0], nodes[1]
}

// BenchmarkCall is the round trip of one call at a time.
func BenchmarkCall(b *testing.B) {
	from, to := benchPair(b)
	body := make([]byte, 256)
	b.ReportAllocs()
	for b.Loop() {
		if _, err := from.Call(b.Context(), to.Self(), "m", body); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkCallPipelined is the cost of a call with 64 under way.
func BenchmarkCallPipelined(b *testing.B) {
	from, to := benchPair(b)
	body := make([]byte, 256)
	work := make(chan struct{})
	var wg sync.WaitGroup
	for range 64 {
		wg.Go(func() {
			for range work {
				if _, err := from.Call(b.Context(), to.Self(), "m", body); err != nil {
					b.Error(err)
				}
			}
		})
	}
	b.ReportAllocs()
	for b.Loop() {
		work <- struct{}{}
	}
	close(work)
	wg.Wait()
}

// BenchmarkDial is a new connection: TCP, TLS with both keys, greeting.
func BenchmarkDial(b *testing.B) {
	from, to := benchPair(b)
	go func() {
		for {
			c, err := to.RaftListener().Accept()
			if err != nil {
				return
			}
			_ = c.Close()
		}
	}()
	for b.Loop() {
		c, err := from.Dial(b.Context(), to.Self(), ALPNRaft)
		if err != nil {
			b.Fatal(err)
		}
		_ = c.Close()
	}
}

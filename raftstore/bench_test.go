package raftstore

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/board"
)

// benchState is a state with n cards of 250 bytes and bodies of 600.
func benchState(b *testing.B, n int) *state {
	b.Helper()
	s := openMapped(b, defaultMmap, nil)
	var c tallies
	card, body := bytes.Repeat([]byte("c"), 250), bytes.Repeat([]byte("b"), 600)
	for at := 0; at < n; {
		var t board.Txn
		for ; len(t.Ops) < 2000 && at < n; at++ {
			id := fmt.Sprintf("web-%06d", at)
			t.Ops = append(t.Ops, board.Op{Table: board.TCard, Key: id, Val: card}, board.Op{Table: board.TText, Key: id, Val: body})
		}
		m := s.now()
		applyAll(b, s, &c, command(m.Applied+1, 1, entry{Term: 1, Seq: m.Seq + 1, Txns: []board.Txn{t}}))
	}
	return s
}

// benchEvent is what one event of the workflow writes: a card, an event, a request id.
func benchEvent(i, cards int) board.Txn {
	val := bytes.Repeat([]byte("v"), 250)
	return board.Txn{Time: int64(i), Ops: []board.Op{
		{Table: board.TCard, Key: fmt.Sprintf("web-%06d", i*7919%cards), Val: val},
		{Table: board.TEvent, Key: board.EventKey(uint64(i), 0), Val: val[:150]},
		{Table: board.TRequest, Key: fmt.Sprintf("1.%d.%016x", i, i*7919), Val: val[:60]},
	}}
}

func BenchmarkApply(b *testing.B) {
	for _, cards := range []int{1_000, 100_000} {
		for _, batch := range []int{1, 64} {
			b.Run(fmt.Sprintf("cards=%d/batch=%d", cards, batch), func(b *testing.B) {
				s := benchState(b, cards)
				var c tallies
				n := 0
				b.ReportAllocs()
				for b.Loop() {
					m := s.now()
					e := entry{Term: 1, Seq: m.Seq + 1}
					for range batch {
						e.Txns = append(e.Txns, benchEvent(n, cards))
						n++
					}
					applyAll(b, s, &c, command(m.Applied+1, 1, e))
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(n), "us/event")
			})
		}
	}
}

// BenchmarkRequests is one node: requests through the executor, log and state,
// from 1 and 64 callers, beside one write and fdatasync of the same disk.
func BenchmarkRequests(b *testing.B) {
	for _, callers := range []int{1, 64} {
		b.Run(fmt.Sprintf("callers=%d", callers), func(b *testing.B) {
			_, s := single(b, func(c *Config) { c.MmapSize = defaultMmap })
			before := s.Stats()
			var wg sync.WaitGroup
			next := make(chan int)
			for range callers {
				wg.Go(func() {
					for i := range next {
						if r := s.Do(b.Context(), withID(toy(verbAdd, fmt.Sprint("k", i%500)), fmt.Sprint(i))); r.Err != nil {
							b.Error(r.Err)
						}
					}
				})
			}
			i := 0
			for b.Loop() {
				next <- i
				i++
			}
			close(next)
			wg.Wait()
			after := s.Stats()
			b.ReportMetric(float64(after.Txns-before.Txns)/float64(max(after.Entries-before.Entries, 1)), "requests/entry")
			b.ReportMetric(float64(syncTime(b).Microseconds()), "us/fdatasync")
		})
	}
}

// syncTime is the median of writes with sync on the disk of the benchmark.
func syncTime(b *testing.B) time.Duration {
	f, err := os.CreateTemp(b.TempDir(), "sync")
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	var all []int64
	for range 50 {
		begin := time.Now()
		if _, err := f.Write(make([]byte, 4096)); err != nil {
			b.Fatal(err)
		}
		if err := f.Sync(); err != nil {
			b.Fatal(err)
		}
		all = append(all, int64(time.Since(begin)))
	}
	return time.Duration(lowerMedian(all))
}

// BenchmarkOpen opens a state of 100,000 cards as a start does: checked whole, then put in use.
func BenchmarkOpen(b *testing.B) {
	s := benchState(b, 100_000)
	if err := s.close(true); err != nil {
		b.Fatal(err)
	}
	var check, use time.Duration
	for b.Loop() {
		t0 := time.Now()
		if _, err := verifyFile(b.Context(), s.path()); err != nil {
			b.Fatal(err)
		}
		t1 := time.Now()
		if err := s.use(); err != nil {
			b.Fatal(err)
		}
		check, use = check+t1.Sub(t0), use+time.Since(t1)
		if err := s.close(false); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(check.Milliseconds())/float64(b.N), "ms/check")
	b.ReportMetric(float64(use.Milliseconds())/float64(b.N), "ms/use")
}

// BenchmarkMemory is the anonymous memory that a state of 100,000 cards costs; the mapped file is the kernel's to drop.
func BenchmarkMemory(b *testing.B) {
	for b.Loop() {
		before := anonMemory()
		s := benchState(b, 100_000)
		after := anonMemory()
		info, err := os.Stat(s.path())
		if err != nil {
			b.Fatal(err)
		}
		b.ReportMetric(float64(after-before)/1024, "MB-anon")
		b.ReportMetric(float64(info.Size())/(1<<20), "MB-file")
	}
}

// anonMemory is RssAnon in kB, after a collection; the heap in use where the system does not tell it.
func anonMemory() int {
	runtime.GC()
	debug.FreeOSMemory()
	text, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(text)) {
		var kb int
		if n, _ := fmt.Sscanf(line, "RssAnon: %d kB", &kb); n == 1 {
			return kb
		}
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int(m.HeapInuse >> 10)
}

// BenchmarkSnapshot writes a snapshot of 100,000 cards, checked, and restores it.
func BenchmarkSnapshot(b *testing.B) {
	s, to := benchState(b, 100_000), openMapped(b, defaultMmap, nil)
	for b.Loop() {
		snap := takeSnapshot(b, s)
		to.m = meta{} // so that it is newer each time
		to.publish()
		if kept, err := to.restore(bytes.NewReader(snap)); kept || err != nil {
			b.Fatal(kept, err)
		}
		b.SetBytes(int64(len(snap)))
	}
}

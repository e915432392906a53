package logstore

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	"golang.org/x/sys/unix"
)

// BenchmarkAppend is one append of 1 or 64 entries of 300 bytes on both kinds, beside one write and fdatasync of as
// many bytes to the same disk in the same run: the least an append can cost.
func BenchmarkAppend(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprintf("disk-%dx300", n), func(b *testing.B) { benchDisk(b, n*300) })
		for _, kind := range []Kind{WAL, Bolt} {
			b.Run(fmt.Sprintf("%s-%dx300", kind, n), func(b *testing.B) { benchAppend(b, kind, n) })
		}
	}
}

func benchAppend(b *testing.B, kind Kind, n int) {
	l, err := Open(kind, b.TempDir(), Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	batch := make([]*raft.Log, n)
	next := uint64(1)
	b.ResetTimer()
	for b.Loop() {
		for i := range batch {
			batch[i] = &raft.Log{Index: next, Term: 1, Data: payload[:]}
			next++
		}
		if err := l.StoreLogs(batch); err != nil {
			b.Fatal(err)
		}
	}
	s := l.Stats()
	b.ReportMetric(float64(s.P50.Microseconds()), "p50-us")
	b.ReportMetric(float64(s.P99.Microseconds()), "p99-us")
	b.ReportMetric(float64(s.Syncs)/float64(s.Appends), "syncs/append")
}

var payload [300]byte

func benchDisk(b *testing.B, size int) {
	f, err := os.Create(filepath.Join(b.TempDir(), "f"))
	if err != nil {
		b.Fatal(err)
	}
	defer f.Close()
	const span = 16 << 20
	if err := unix.Fallocate(int(f.Fd()), 0, 0, span); err != nil {
		b.Skipf("needs linux: fallocate: %v", err)
	}
	buf, off := make([]byte, size), int64(0)
	var h histogram
	b.ResetTimer()
	for b.Loop() {
		begin := b.Elapsed()
		if _, err := f.WriteAt(buf, off); err != nil {
			b.Fatal(err)
		}
		if err := unix.Fdatasync(int(f.Fd())); err != nil {
			b.Fatal(err)
		}
		h.add(b.Elapsed() - begin)
		off = (off + int64(size)) % (span - int64(size))
	}
	b.ReportMetric(float64(h.quantile(0.5).Microseconds()), "p50-us")
	b.ReportMetric(float64(h.quantile(0.99).Microseconds()), "p99-us")
}

// BenchmarkOpen is the start of a node: a log of 10,000 entries of 600 bytes, all of them read.
func BenchmarkOpen(b *testing.B) {
	for _, kind := range []Kind{WAL, Bolt} {
		b.Run(string(kind), func(b *testing.B) {
			dir := b.TempDir()
			l, err := Open(kind, dir, Options{})
			if err != nil {
				b.Fatal(err)
			}
			for i := uint64(1); i <= 10_000; i += 100 {
				var batch []*raft.Log
				for j := i; j < i+100; j++ {
					batch = append(batch, &raft.Log{Index: j, Data: make([]byte, 600)})
				}
				if err := l.StoreLogs(batch); err != nil {
					b.Fatal(err)
				}
			}
			l.Close()
			for b.Loop() {
				l, err := Open(kind, dir, Options{})
				if err != nil {
					b.Fatal(err)
				}
				l.Close()
			}
		})
	}
}

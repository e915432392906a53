package launcher

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"muster/board"
)

// BenchmarkStart is the way from a pushed order to the session's first
// instruction: journal, folder, workspace, keeper, gate. Beside it a bare
// fork/exec of the same program, to its first instruction.
func BenchmarkStart(b *testing.B) {
	f, err := newFleet("")
	if err != nil {
		b.Fatal(err)
	}
	exe, _ := os.Executable()
	cfg := f.config(b.TempDir(), exe)
	r, err := New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	if err := r.Open(b.Context()); err != nil {
		b.Fatal(err)
	}
	defer r.Close()
	stamp := filepath.Join(b.TempDir(), "stamp")
	first := func() time.Duration { // modification time of a file the session makes
		st, err := os.Stat(stamp)
		if err != nil {
			b.Fatal(err)
		}
		return time.Since(st.ModTime())
	}
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	var all, bare []time.Duration
	for b.Loop() {
		os.Remove(stamp)
		run, err := f.file("agent", ": > "+stamp)
		if err != nil {
			b.Fatal(err)
		}
		var o board.Order
		_ = f.view(func(v board.View) error {
			board.EachOrder(v, testNode, func(x *board.Order) bool { o = *x; return x.Run != run })
			return nil
		})
		var spec board.StartSpec
		if err := json.Unmarshal(o.Spec, &spec); err != nil {
			b.Fatal(err)
		}
		begin := time.Now()
		r.Push(1, o)
		for f.run(run).Gone == "" {
			r.Wake()
			<-tick.C
		}
		all = append(all, time.Since(begin)-first())

		os.Remove(stamp)
		begin = time.Now()
		if err := exec.Command("sh", "-c", ": > "+stamp).Run(); err != nil {
			b.Fatal(err)
		}
		bare = append(bare, time.Since(begin)-first())
	}
	median := func(l []time.Duration) float64 {
		slices.Sort(l)
		return float64(l[len(l)/2].Microseconds()) / 1000
	}
	b.ReportMetric(median(all), "ms/start(p50)")
	b.ReportMetric(median(bare), "ms/bare(p50)")
}

package bench

import (
	"context"
	"os"
	"runtime"
	"testing"
	"time"
)

// Quiet sessions have a keeper each, whose figures are read; they end with the bench's end of their pipe.
func fleetQuiet(t *testing.T, env Env) {
	if runtime.GOOS != "linux" {
		t.Skip("needs linux: processes are read from /proc")
	}
	ctx := context.Background()
	f, err := StartFleet(ctx, env, 1)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	q, err := newQuiet(ctx, f, 3, "quiet")
	if err != nil {
		t.Fatal(err)
	}
	defer q.pipe.Close()
	keepers, err := q.keepers()
	if err != nil || len(keepers) != 3 {
		t.Errorf("keepers %v of 3 sessions: %v", keepers, err)
	}
	sample, err := q.side(f.Nodes[0], "the node").Run(ctx, env.Window)
	c := sample.Counters
	if err != nil || sample.Value <= 0 || c["private MB of a keeper (mean)"] < 0.1 || c["RssAnon of the node, MB"] < 1 {
		t.Errorf("quiet node: %+v, %v", sample, err)
	}
	if err := q.pipe.Close(); err != nil {
		t.Error(err)
	}
	for end := time.Now().Add(20 * time.Second); len(keepers) > 0 && time.Now().Before(end); <-time.After(20 * time.Millisecond) {
		if keepers, err = q.keepers(); err != nil {
			t.Fatal(err)
		}
	}
	if len(keepers) > 0 {
		t.Errorf("sessions of %v outlive their pipe", keepers)
	}
	if _, err := q.side(f.Nodes[0], "the node").Run(ctx, env.Window); err == nil {
		t.Error("a window without its sessions was counted")
	}
}

func TestFiguresOfAProcess(t *testing.T) {
	text := []byte("Name:\tx\nPPid:\t17\nPrivate_Dirty:     12 kB\n")
	for name, want := range map[string]int64{"PPid": 17, "Private_Dirty": 12} {
		if got, err := fieldOf(text, name); err != nil || got != want {
			t.Errorf("%s: %d, %v", name, got, err)
		}
	}
	if n, err := fieldOf(text, "Pid"); err == nil {
		t.Errorf("a field that is not there is %d", n)
	}
	if runtime.GOOS != "linux" {
		t.Skip("needs linux: the rest is read from /proc")
	}
	me := os.Getpid()
	n, err1 := switches(me)
	m, err2 := private(me)
	if err1 != nil || err2 != nil || n < 1 || m < 1<<20 {
		t.Errorf("this process: %d switches, %d bytes of its own; %v %v", n, m, err1, err2)
	}
}

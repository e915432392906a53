package bench

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// buildMuster builds muster, whose nodes the fleet's sides measure.
func buildMuster(t *testing.T) string {
	t.Helper()
	goTool, err := exec.LookPath("go")
	if err != nil {
		t.Skip("needs go: builds the program whose nodes are measured")
	}
	path := filepath.Join(t.TempDir(), "muster")
	if out, err := exec.Command(goTool, "build", "-o", path, "muster/cmd/muster").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	return path
}

// TestFleet runs the sides on real nodes, of one program that is built once.
func TestFleet(t *testing.T) {
	program := buildMuster(t)
	t.Run("sides", func(t *testing.T) { fleetSides(t, tiny(t, program)) })
	t.Run("quiet", func(t *testing.T) { fleetQuiet(t, tiny(t, program)) })
	t.Run("large", func(t *testing.T) { fleetLarge(t, tiny(t, program)) })
}

// tiny is a folder with a short name (sockets live in it) and a machine that never drifts.
func tiny(t *testing.T, program string) Env {
	t.Helper()
	dir, err := os.MkdirTemp("", "mb")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return Env{Dir: dir, Windows: 1, Window: 300 * time.Millisecond, Program: program, Cards: 300, Body: 600, Log: new(bytes.Buffer)}
}

// What the sides count must be of this fleet: an event of one client alone is
// one entry of the log and one sync of it on the only node.
func fleetSides(t *testing.T, env Env) {
	ctx := context.Background()
	_, err := withFleet(ctx, env, 1, func(f *Fleet, p Posts) ([]Result, error) {
		sample, err := HTTPAck("event", "unix", f.Nodes[0].Socket(), p).Run(ctx, env.Window)
		if err != nil {
			return nil, err
		}
		c := sample.Counters
		if sample.Value <= 0 || c["entries per 1,000"] < 900 || c["log syncs a node per 1,000"] < 900 || c["entries per 1,000"] > 2000 {
			t.Errorf("one client: %+v", sample)
		}
		if c["keys written per 1,000"] < 2000 || c["log bytes a node per 1,000"] < eventText*1000 {
			t.Errorf("an event of %d bytes writes: %+v", eventText, c)
		}
		many, err := HTTPPosts("events", "unix", f.doors(), 32, p).Run(ctx, env.Window)
		if err != nil {
			return nil, err
		}
		if many.Counters["entries per 1,000"] > 500 {
			t.Errorf("32 clients at once do not share entries: %+v", many.Counters)
		}
		s, err := newStarter(ctx, f)
		if err != nil {
			return nil, err
		}
		defer s.pipe.Close()
		started, err := s.side().Run(ctx, time.Millisecond)
		if err != nil {
			return nil, err
		}
		if started.Value <= 0 || started.Counters["starts measured in the window"] != 1 {
			t.Errorf("one start: %+v", started)
		}
		claimed, err := newClaims(ctx, f)
		if err != nil {
			return nil, err
		}
		if sample, err := claimed.side().Run(ctx, time.Millisecond); err != nil || sample.Counters["starts measured in the window"] != startsAtOnce || sample.Counters["entries per 1,000"] > 500 {
			t.Errorf("starts of one round do not share entries: %+v, %v", sample, err)
		}
		refused := p
		refused.Body = func(int, int) []byte { return []byte(`{"verb":"event","args":{"card":"none-1","event":"comment"}}`) }
		if _, err := HTTPAck("refused", "unix", f.Nodes[0].Socket(), refused).Run(ctx, env.Window); err == nil || !strings.Contains(err.Error(), "404") {
			t.Errorf("an event of no card was counted: %v", err)
		}
		return nil, nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A filled state is the node's own: it starts on it and shows the cards.
func fleetLarge(t *testing.T, env Env) {
	ctx := context.Background()
	l, err := newLarge(ctx, env)
	if err != nil {
		t.Fatal(err)
	}
	defer l.node.Stop()
	if least := float64(env.Cards * 600); l.json < least {
		t.Errorf("the cards are %.0f bytes of JSON, at least %.0f were filed", l.json, least)
	}
	scan, err := l.scans().Run(ctx, time.Millisecond)
	if err != nil || scan.Counters["keys"] < float64(2*env.Cards) {
		t.Errorf("a scan of the state: %+v, %v", scan, err)
	}
	if start, err := l.starts().Run(ctx, time.Millisecond); err != nil || start.Value <= 0 {
		t.Errorf("a start: %+v, %v", start, err)
	}
	if err := l.fleet.Start(ctx, l.node); err != nil {
		t.Fatal(err)
	}
	s, err := l.fleet.Status(ctx, l.node)
	if err != nil || len(s.Boards) != 1 || s.Boards[0].Cards["triage"] != env.Cards {
		t.Errorf("the node shows %+v, %v; %d cards were filed", s.Boards, err, env.Cards)
	}
}

func TestFleetThatCannotStartSaysWhy(t *testing.T) {
	env := Env{Dir: t.TempDir(), Program: "/bin/false"}
	_, err := StartFleet(t.Context(), env, 1)
	if err == nil || !strings.Contains(err.Error(), "node a ended") {
		t.Errorf("got %v", err)
	}
	if _, err := StartFleet(t.Context(), Env{Dir: t.TempDir()}, 1); err == nil || !strings.Contains(fmt.Sprint(err), "needs the muster program") {
		t.Errorf("no program: %v", err)
	}
}

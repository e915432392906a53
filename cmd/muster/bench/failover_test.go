package bench

import (
	"context"
	"errors"
	"sync"
	"syscall"
	"testing"
	"time"
)

// paper is a cluster of three without processes: the next member leads from the
// tenth question after a leader's end on.
type paper struct {
	mu    sync.Mutex
	lead  int
	down  int // -1: none
	asked int // since the last end
	ended []int
	early int // events that were done while nobody led
}

func (p *paper) size() int { return 3 }

func (p *paper) leader(context.Context) (int, error) { return p.lead, nil }

func (p *paper) event(_ context.Context, member, _ int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if member == p.down {
		return errors.New("it is down")
	}
	if p.down < 0 {
		return nil
	}
	if p.asked++; p.asked < 10 {
		return errors.New("nobody leads")
	}
	p.lead = (p.down + 1) % 3
	return nil
}

func (p *paper) end(member int, _ syscall.Signal) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended, p.down, p.asked = append(p.ended, member), member, 0
	return nil
}

func (p *paper) back(_ context.Context, member int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.asked < 10 {
		p.early++
	}
	if member != p.down {
		return errors.New("another member is down")
	}
	p.down = -1
	return nil
}

// Each leader is ended once and brought back; what counts is an event that was asked for after the end.
func TestFailoverEndsLeaders(t *testing.T) {
	p := &paper{down: -1}
	x := &failovers{crowd: p, by: syscall.SIGKILL, session: func(context.Context, int) (time.Time, error) { return time.Now(), nil }}
	s, err := x.side("paper").Run(t.Context(), time.Second)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.ended) != killsASecond || p.ended[0] != 0 || p.ended[1] != 1 || p.ended[2] != 2 || p.early != 0 || p.down != -1 {
		t.Errorf("ended %v, %d events counted before somebody led, %d is down", p.ended, p.early, p.down)
	}
	if s.Value <= 0 || s.Counters["leaders ended in the window"] != killsASecond || s.Counters["ms to a started session (median)"] <= 0 {
		t.Errorf("%+v", s)
	}
}

// The same windows are held against the election timeout.
func TestFailoverAgainstTimeout(t *testing.T) {
	r := Result{Unit: "ms"}
	for range leastWindows {
		r.Windows = append(r.Windows, Window{A: Sample{Value: 750}, B: Sample{Value: 1500}, Ratio: 0.5, Counts: true})
	}
	cfg := Config{Name: "failover-timeout", Windows: leastWindows, Goals: []Goal{{Name: "gate", AtMost: 4}, {Name: "moonshot", AtMost: 2}}}
	got := againstTimeout(r, cfg, 300*time.Millisecond)
	if !got.Verdict || got.Ratio != 2.5 || !got.Goals[0].Met || got.Goals[1].Met || r.Windows[0].B.Value != 1500 {
		t.Errorf("%+v", got)
	}
}

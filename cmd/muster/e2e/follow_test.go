package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// follower follows events at a machine's node, as a program does: by the command line, line by line.
type follower struct {
	t    *testing.T
	m    *machine
	most int // lines after which it is killed and begun anew after the last one; 0: never

	mu  sync.Mutex
	ids []string
	cmd *exec.Cmd
	end bool
	wg  sync.WaitGroup
}

func (f *fleet) follower(m *machine, most int) *follower {
	r := &follower{t: f.t, m: m, most: most}
	r.wg.Go(r.follow)
	f.t.Cleanup(r.stop)
	return r
}

func (r *follower) stop() {
	r.mu.Lock()
	r.end = true
	if r.cmd != nil && r.cmd.Process != nil {
		_ = r.cmd.Process.Kill()
	}
	r.mu.Unlock()
	r.wg.Wait()
}

func (r *follower) seen() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.ids)
}

// follow reads until it is stopped; a program that ended is begun again after the last event that it gave.
func (r *follower) follow() {
	for {
		r.mu.Lock()
		since := "0"
		if n := len(r.ids); n > 0 {
			since = r.ids[n-1]
		}
		cmd := exec.Command(binary, "--data", r.m.data, "events", "-f", "--json", "--since", since)
		out, err := cmd.StdoutPipe()
		if err != nil || r.end {
			r.mu.Unlock()
			return
		}
		if err := cmd.Start(); err != nil {
			r.mu.Unlock()
			r.t.Error(err)
			return
		}
		r.cmd = cmd
		r.mu.Unlock()
		lines := bufio.NewScanner(out)
		lines.Buffer(nil, 1<<20)
		for n := 1; lines.Scan(); n++ {
			var env struct {
				Data struct {
					ID string `json:"id"`
				} `json:"data"`
			}
			if json.Unmarshal(lines.Bytes(), &env) != nil || env.Data.ID == "" {
				continue // a line that was cut off, or says that nobody answers
			}
			r.mu.Lock()
			r.ids = append(r.ids, env.Data.ID)
			r.mu.Unlock()
			if r.most > 0 && n >= r.most {
				_ = cmd.Process.Kill()
				break
			}
		}
		_ = cmd.Wait()
	}
}

// TestEventsAreFollowedOnce: whoever follows events misses none and sees none
// twice, while leaders are killed, its own node is, and when it is begun anew itself.
func TestEventsAreFollowedOnce(t *testing.T) {
	f := newFleet(t, 3, 4)
	f.workflow("null, review: false")
	readers := map[string]*follower{}
	for i, m := range f.machines {
		readers["at "+m.name] = f.follower(m, 0)
		readers[fmt.Sprintf("begun anew at %s", m.name)] = f.follower(m, 3+2*i)
	}
	var cards []string
	for round := range 3 {
		lead := f.leader()
		for i := range 4 {
			cards = append(cards, f.add(f.other(lead), fmt.Sprintf("card %d of round %d", i, round), "exit 0", nil))
		}
		lead.kill()
		via := f.leader()
		for i := range 4 {
			cards = append(cards, f.add(via, fmt.Sprintf("card %d after round %d", i, round), "exit 0", nil))
		}
		lead.start()
	}
	lead := f.leader()
	f.eventually(time.Minute, "at rest", func() (bool, string) {
		list, err := lead.cards()
		if err != nil {
			return false, err.Error()
		}
		for _, c := range list {
			if c.Status == "running" || c.Status == "ready" || c.Status == "todo" {
				return false, c.ID + " is " + c.Status
			}
		}
		return len(list) == len(cards), fmt.Sprintf("%d of %d cards", len(list), len(cards))
	})
	f.sameState()
	var want []string
	f.eventually(time.Minute, "told to everybody", func() (bool, string) {
		out, _, code := lead.run("events", "--json", "--since", "0", "--consistent")
		if code != 0 {
			return false, out
		}
		want = want[:0]
		for line := range strings.Lines(out) {
			var env struct {
				Data struct {
					ID string `json:"id"`
				} `json:"data"`
			}
			if err := json.Unmarshal([]byte(line), &env); err != nil {
				return false, err.Error()
			}
			want = append(want, env.Data.ID)
		}
		for name, r := range readers {
			if got := r.seen(); len(got) < len(want) {
				return false, fmt.Sprintf("%s: %d of %d", name, len(got), len(want))
			}
		}
		return len(want) > 50, fmt.Sprintf("%d events", len(want))
	})
	for name, r := range readers {
		if got := r.seen(); !slices.Equal(got, want) {
			t.Errorf("%s: %d events, want %d: %s", name, len(got), len(want), firstOdd(got, want))
		}
	}
}

// firstOdd says where two lists part.
func firstOdd(got, want []string) string {
	for i := range max(len(got), len(want)) {
		switch {
		case i >= len(got):
			return "it misses " + want[i]
		case i >= len(want):
			return "it has " + got[i] + " besides"
		case got[i] != want[i]:
			return fmt.Sprintf("its number %d is %s, not %s", i, got[i], want[i])
		}
	}
	return "the same"
}

package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

// architecture.md §7: three voters of this version are brought to the next one by one, under load, and back as far as
// that goes. The format rises when all know it and not before; what only the next version knows is refused until then,
// and is kept by one that does not know it, which serves reads and neither leads nor starts anything, and says so.
func TestRollingUpgrade(t *testing.T) {
	t.Parallel()
	next := filepath.Join(t.TempDir(), "muster-next")
	if out, err := exec.Command("go", "build", "-tags", "nextformat", "-o", next, "muster/cmd/muster").CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	f := newFleet(t, 3, 2, steady...)
	load := f.load()
	format := func(m *machine) uint64 {
		s, err := m.status()
		if err != nil {
			return 0
		}
		return s.Format
	}
	roll := func(m *machine, to string) {
		t.Helper()
		m.stopInOrder()
		m.binary = to
		m.start()
		f.leader()
		f.eventually(40*time.Second, m.name+" online", func() (bool, string) {
			s, err := f.leader().status()
			if err != nil {
				return false, err.Error()
			}
			for _, n := range s.Nodes {
				if n.Name == m.name {
					return n.State == "online", n.State
				}
			}
			return false, "not listed"
		})
	}
	roll(f.machines[0], next)
	roll(f.machines[0], "") // nothing was raised: it may go back
	roll(f.machines[0], next)
	roll(f.machines[1], next)
	if got := format(f.leader()); got != board.Format {
		t.Errorf("the format is %d while one voter does not know the next", got)
	}
	if _, err := f.try(f.machines[0], "fleet.motto", map[string]string{"text": "early"}, f.mint(f.machines[0])); err == nil {
		t.Error("a request of the next version is taken while one voter does not know it")
	}
	roll(f.machines[2], next)
	f.eventually(60*time.Second, "the next format", func() (bool, string) {
		got := format(f.leader())
		return got == board.Format+1, fmt.Sprint(got)
	})
	f.do(f.leader(), "fleet.motto", map[string]string{"text": "onwards"})

	old := f.machines[2]
	roll(old, "") // too old now
	f.eventually(40*time.Second, "an alarm", func() (bool, string) {
		s, err := old.status()
		text := ""
		if err == nil {
			text = strings.Join(s.Alarms, "; ")
		}
		return strings.Contains(text, "too old for its fleet"), text
	})
	if !strings.Contains(old.lastWords(60), "too old for its fleet") {
		t.Error("a node that is too old does not say so when it starts")
	}
	load.stop(t)
	f.sameState() // it stores what it does not know
	if l := f.leader(); l == old {
		t.Error("a node that is too old leads")
	}
	card := f.do(old, board.VCardAdd, board.CardAdd{Triage: true, CardFields: board.CardFields{Title: &old.name}})["id"].(string)
	if _, err := api.Decode[json.RawMessage](old.api.Get(context.Background(), "/v1/cards/"+card, nil)); err != nil {
		t.Errorf("a node that is too old does not serve reads: %v", err)
	}
	roll(old, next)
	f.eventually(40*time.Second, "without an alarm", func() (bool, string) {
		s, err := old.status()
		return err == nil && !strings.Contains(strings.Join(s.Alarms, ""), "too old"), fmt.Sprint(s, err)
	})
	f.sameState()
	load.check(t, f)
}

// stopInOrder ends a node as `muster stop` does.
func (m *machine) stopInOrder() {
	m.t.Helper()
	if _, err := m.api.Post(context.Background(), "/v1/stop", struct{}{}); err != nil {
		m.t.Fatalf("stop %s: %v", m.name, err)
	}
	_ = m.cmd.Wait()
	m.live.Store(0)
	m.cmd = nil
}

// steadyLoad files cards through any node that answers, and remembers those that were acknowledged.
type steadyLoad struct {
	end   chan struct{}
	tasks sync.WaitGroup
	mu    sync.Mutex
	ids   []string
}

func (f *fleet) load() *steadyLoad {
	l := &steadyLoad{end: make(chan struct{})}
	for i := range 2 {
		l.tasks.Go(func() {
			title := "a card under way"
			for n := i; ; n++ {
				select {
				case <-l.end:
					return
				case <-time.After(20 * time.Millisecond):
				}
				m := f.machines[n%len(f.machines)]
				ctx, cancel := context.WithTimeout(context.Background(), 15*time.Second)
				ans, err := m.api.Do(ctx, board.VCardAdd, board.CardAdd{Triage: true, CardFields: board.CardFields{Title: &title}}, "", false)
				cancel()
				if got, err := api.Decode[struct{ ID string }](ans, err); err == nil && got.ID != "" {
					l.mu.Lock()
					l.ids = append(l.ids, got.ID)
					l.mu.Unlock()
				}
			}
		})
	}
	return l
}

func (l *steadyLoad) stop(t *testing.T) {
	close(l.end)
	l.tasks.Wait()
	t.Logf("%d cards were acknowledged meanwhile", len(l.ids))
}

// check holds what was acknowledged against the state of every machine.
func (l *steadyLoad) check(t *testing.T, f *fleet) {
	if len(l.ids) == 0 {
		t.Error("nothing was acknowledged under the upgrade")
	}
	seen := map[string]bool{}
	for _, id := range l.ids {
		if seen[id] {
			t.Errorf("card %s was given twice", id)
		}
		seen[id] = true
	}
	for _, m := range f.machines {
		list, err := api.Decode[[]api.Card](m.api.Get(context.Background(), "/v1/cards?all=true", nil))
		if err != nil {
			t.Fatal(err)
		}
		has := map[string]bool{}
		for _, c := range list {
			has[c.ID] = true
		}
		for _, id := range l.ids {
			if !has[id] {
				t.Errorf("%s has lost card %s, which was acknowledged", m.name, id)
			}
		}
	}
}

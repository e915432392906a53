package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"muster/board"
	"muster/launcher"
	"muster/launcher/launchertest"
)

// script is what a session of this machine does: by the seed and its run's name.
func (m *Machine) script(s *launcher.Spec) launchertest.Plan {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s.Run))
	rng := rand.New(rand.NewPCG(m.f.cfg.Seed, h.Sum64()))
	after := time.Duration(200+rng.IntN(6000)) * time.Millisecond
	if slices.Contains(s.Argv, "again") {
		m.f.count("session taken up again")
	}
	exit := func(what string, code int64) launchertest.Plan {
		m.f.count("session " + what)
		return launchertest.Plan{After: after, Code: code, Output: what + "\n", Stubborn: rng.IntN(6) == 0}
	}
	switch k := rng.IntN(20); {
	case k == 0:
		return exit("crashes", 1)
	case k == 1:
		return exit("is turned away (rate limit)", 75)
	case k == 2:
		m.f.count("session cannot be started")
		return launchertest.Plan{Fails: "sim: it is not installed"}
	case k == 3:
		m.f.count("session hangs")
		return launchertest.Plan{After: -1, Stubborn: rng.IntN(2) == 0}
	case s.Verdict != "explicit":
		return exit("succeeds", 0)
	case k == 4:
		return exit("says nothing of its work", 0)
	}
	m.f.count("session speaks")
	return launchertest.Plan{Does: func(ctx context.Context) int64 { return m.speak(ctx, s, rng, after) }, Stubborn: rng.IntN(6) == 0}
}

// speak is an agent: it works, comments, and says how it ended.
func (m *Machine) speak(ctx context.Context, s *launcher.Spec, rng *rand.Rand, after time.Duration) int64 {
	secret, err := launcher.ReadSecret(filepath.Dir(env(s, "MUSTER_SECRET_FILE")))
	if err != nil {
		m.f.bug("session of %s has no secret: %v", s.Run, err)
		return 3
	}
	if pass(ctx, after/2) != nil {
		return 1
	}
	if rng.IntN(2) == 0 {
		m.say(ctx, s, secret, "comment", map[string]any{"text": "from " + s.Run})
	}
	if pass(ctx, after/2) != nil {
		return 1
	}
	if m.f.cfg.Wide && rng.IntN(8) == 0 {
		title := "found by " + s.Run
		if m.file(ctx, s, secret, &board.CardAdd{Board: "web", SubtaskOf: s.Card, CardFields: board.CardFields{Title: &title}}) {
			m.f.count("session filed a card")
		}
	}
	event, payload := "request_review", map[string]any{"summary": "done"}
	switch k := rng.IntN(8); {
	case s.Role == "reviewer" && k < 6:
		event = "complete"
	case s.Role == "reviewer":
		event, payload = "request_changes", map[string]any{"text": "again"}
	case k == 0:
		event, payload = "block", map[string]any{"kind": "needs_input", "reason": "what now?"}
	}
	if m.say(ctx, s, secret, event, payload) {
		m.f.count("session said " + event)
		return 0
	}
	if !m.f.cfg.Wide {
		return 0
	}
	event, payload = "specify", map[string]any{"title": "a clear one", "body": "how to see it"} // it was started on an idea
	if rng.IntN(2) == 0 {
		event, payload = "decompose", map[string]any{"children": []any{map[string]any{"title": "one", "body": "b"}, map[string]any{"title": "two"}}}
	}
	if m.say(ctx, s, secret, event, payload) {
		m.f.count("session said " + event)
	}
	return 0
}

// say files an event of a session's card.
func (m *Machine) say(ctx context.Context, s *launcher.Spec, secret *launcher.Secret, event string, payload map[string]any) bool {
	return m.request(ctx, s, secret, board.VEvent, board.FireEvent{Card: s.Card, Event: event, Payload: payload})
}

func (m *Machine) file(ctx context.Context, s *launcher.Spec, secret *launcher.Secret, a *board.CardAdd) bool {
	return m.request(ctx, s, secret, board.VCardAdd, a)
}

// request files one request of a session, as its command line does: under one id, until it has an answer or the session ends.
func (m *Machine) request(ctx context.Context, s *launcher.Spec, secret *launcher.Secret, verb string, what any) bool {
	args, err := json.Marshal(what)
	if err != nil {
		return false
	}
	id := ""
	for retry := false; ctx.Err() == nil; retry = true {
		p := m.up()
		if p == nil || !p.ready.Load() || m.f.net.thawed(ctx, p.id()) != nil {
			_ = pass(ctx, 200*time.Millisecond)
			continue
		}
		door := p.node.Backend()
		if id == "" {
			id = door.MintID()
		}
		ask, cancel := context.WithTimeout(ctx, 10*time.Second)
		res := door.SessionSay(ask, s.Run, secret.Secret, board.Request{ID: id, Verb: verb, Args: args, Retry: retry})
		cancel()
		if res.Err == nil {
			return true
		}
		if res.Err.Code != board.Unavailable && res.Err.Code != board.UnknownOutcome {
			m.f.count("session refused: " + string(res.Err.Code))
			return false
		}
		_ = pass(ctx, 300*time.Millisecond)
	}
	return false
}

func env(s *launcher.Spec, name string) string {
	for _, kv := range s.Env {
		if v, ok := strings.CutPrefix(kv, name+"="); ok {
			return v
		}
	}
	return ""
}

// saw holds the machine's sessions against invariant 2, as they live and end: one a run, ever, and one at a time for a
// card's slot, on the whole fleet.
func (m *Machine) saw(s *launcher.Spec, lives bool) {
	f, slot := m.f, s.Card+"/"+s.Slot
	f.mu.Lock()
	other := f.live[slot]
	n := f.begins[s.Run]
	if lives {
		f.live[slot] = s.Run
		f.begins[s.Run]++
	} else if other == s.Run {
		delete(f.live, slot)
	}
	f.mu.Unlock()
	switch {
	case lives && n > 0:
		f.bug("run %s began %d sessions", s.Run, n+1)
	case lives && other != "" && f.byWord(other):
		f.count("session overlaps one that a manager said is dead")
	case lives && other != "":
		f.bug("session of %s began on %s while that of %s lived%s", s.Run, m.Name, other, f.told(s.Run, other))
	}
}

// byWord tells that a run was declared dead by a manager, who is believed: the one overlap that is not against invariant 2.
func (f *Fleet) byWord(run string) (yes bool) {
	f.runs(run, func(_ *Machine, r *board.Run) { yes = yes || r.Gone == board.GoneWord })
	return yes
}

// told is what the state of each node has of some runs.
func (f *Fleet) told(runs ...string) string {
	var b strings.Builder
	for _, id := range runs {
		f.runs(id, func(m *Machine, r *board.Run) {
			text, _ := json.Marshal(r)
			fmt.Fprintf(&b, "\n  %s knows %s", m.Name, text)
		})
	}
	return b.String()
}

// runs calls fn with a run as each node that is up has it.
func (f *Fleet) runs(id string, fn func(*Machine, *board.Run)) {
	for _, m := range f.machines {
		p := m.up()
		if p == nil || !p.ready.Load() {
			continue
		}
		_ = p.node.Store().View(func(v board.View) error {
			if r := board.GetRun(v, id); r != nil {
				fn(m, r)
			}
			return nil
		})
	}
}

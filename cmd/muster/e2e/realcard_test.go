package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/launcher/fakemodel"
)

// HLS-01, HLS-06, SES-01: real agents work whole cards: each starts with its prompt, runs
// a command of the model, and the model's "muster complete", with the run's
// secret, finishes the card; of each the session's id is known.
func TestRealAgentsWorkCards(t *testing.T) {
	for _, h := range []string{"claude-code", "codex", "opencode", "gemini"} {
		t.Run(h, func(t *testing.T) {
			if short := h == "claude-code" || h == "codex"; !short && !*everyAgent {
				t.Skip("needs -agents: the long form runs this program, too")
			}
			t.Parallel()
			r := newReal(t, h)
			id, word := r.ask(h+"-full", complete, fakemodel.Turn{Say: "done"})
			r.await(r.machine, "done", id)
			x := r.gone(id, 1)
			if x.SessionID == "" || x.Outcome != "completed" || x.ExitCode == nil || *x.ExitCode != 0 {
				t.Errorf("%+v\n%s", x, r.said(x.ID))
			}
			if q := r.turn(word, 0); !strings.Contains(q.Said, word) || !strings.Contains(q.Said, id) {
				t.Errorf("its prompt: %q", q.Said)
			}
		})
	}
}

// HLS-08, SES-02: what a real agent's end means, and what comes of its card.
func TestRealAgents(t *testing.T) {
	if !*everyAgent {
		t.Skip("needs -agents: a long form, of real programs through everything that goes wrong")
	}
	for _, h := range []string{"claude-code", "codex"} {
		t.Run(h, func(t *testing.T) {
			t.Parallel()
			r := newReal(t, h)
			r.story(t, "denied", h, r.denied)
			r.story(t, "limit", h, r.limit)
			r.story(t, "node killed", h, r.nodeKilled)
			r.story(t, "agent killed", h, r.agentKilled)
			r.story(t, "unreachable", h, r.unreachable)
		})
	}
}

// denied: with permissions "ask" a headless session may run muster's verbs and
// little else; that it was denied a tool is the meaning of an end without a word.
func (r *real) denied(t *testing.T, h string) {
	made := filepath.Join(r.home, "made")
	id, word := r.ask(h+"-ask", fakemodel.Turn{Run: "touch " + made}, fakemodel.Turn{Say: "I could not"})
	x := r.gone(id, 1)
	if _, err := os.Stat(made); err == nil {
		t.Errorf("it made what it must not")
	}
	if h == "claude-code" && x.Means != "denied" {
		t.Errorf("%+v\n%s", x, r.said(x.ID))
	}
	if q := r.turn(word, 1); q.Output == "" {
		t.Errorf("the model was not told: %+v", q)
	}
	id, _ = r.ask(h+"-ask", complete, fakemodel.Turn{Say: "done"})
	r.await(r.machine, "done", id)
}

// limit: a rate limit is told with its end; the card waits until then, and its
// session is taken up again.
func (r *real) limit(t *testing.T, h string) {
	resets := time.Now().Add(20 * time.Second).Truncate(time.Second)
	id, word := r.ask(h+"-full", fakemodel.Turn{Limit: &fakemodel.Limit{Resets: resets}}, complete, fakemodel.Turn{Say: "done"})
	x := r.gone(id, 1)
	if x.Means != "rate_limit" || x.Outcome != "rate_limited" {
		t.Fatalf("%+v\n%s", x, r.said(x.ID))
	}
	if x.ResetAt == nil || x.ResetAt.Before(resets.Add(-time.Minute)) || x.ResetAt.After(resets.Add(2*time.Minute)) {
		t.Errorf("it ends at %v, the model said %v\n%s", x.ResetAt, resets, r.said(x.ID))
	}
	r.await(r.machine, "done", id)
	again := r.gone(id, 2)
	if x.ResetAt != nil && again.StartedAt.Before(*x.ResetAt) {
		t.Errorf("it began again at %v, before %v", again.StartedAt, x.ResetAt)
	}
	if again.SessionID != x.SessionID || again.Mode != "resume" {
		t.Errorf("%+v after %+v", again, x)
	}
	r.turn(word, 1)
}

// nodeKilled: the session lives on while its node is dead, and is adopted.
func (r *real) nodeKilled(t *testing.T, h string) {
	let := make(chan struct{})
	id, word := r.ask(h+"-full", fakemodel.Turn{Wait: let, Run: complete.Run}, fakemodel.Turn{Say: "done"})
	x := r.running(id, 1)
	r.turn(word, 0)
	r.kill()
	if !alive(int(x.PID)) {
		t.Error("the session died with its node")
	}
	r.start()
	close(let)
	r.await(r.machine, "done", id)
	if last := r.gone(id, 1); last.ID != x.ID || last.PID != x.PID || last.Outcome != "completed" {
		t.Errorf("%+v, it was %+v", last, x)
	}
}

// agentKilled: a killed agent is a crash; the card's next run takes its session up again,
// and the model hears what was said before.
func (r *real) agentKilled(t *testing.T, h string) {
	never := make(chan struct{})
	defer close(never)
	id, word := r.ask(h+"-full", fakemodel.Turn{Run: "echo once"}, fakemodel.Turn{Wait: never}, complete, fakemodel.Turn{Say: "done"})
	x := r.running(id, 1)
	r.turn(word, 1)
	if err := syscall.Kill(int(x.PID), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.await(r.machine, "done", id)
	again := r.gone(id, 2)
	if again.Mode != "resume" || again.SessionID == "" || again.ID == x.ID {
		t.Errorf("%+v after %+v", again, x)
	}
	q := r.turn(word, 2)
	if q.Earlier == 0 || strings.Contains(q.Said, word) {
		t.Errorf("it was begun anew: %+v", q)
	}
	runs, err := r.runs(id)
	if err != nil || len(runs) != 2 {
		t.Fatalf("%d runs, %v", len(runs), err)
	}
	for _, y := range runs {
		if y.ID == x.ID && (y.Outcome != "crashed" || y.Signal != "SIGKILL") {
			t.Errorf("%+v", y)
		}
	}
}

// unreachable: a service that is down is told as that.
func (r *real) unreachable(t *testing.T, h string) {
	id, _ := r.ask(h+"-full", fakemodel.Turn{Status: 500, Say: "down", Times: 40}, complete)
	if x := r.gone(id, 1); x.Means != "unavailable" {
		t.Errorf("%+v\n%s", x, r.said(x.ID))
	}
}

package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster/launcher/fakemodel"
)

// PAN-01, PAN-08, SES-04: the real programs in panes: their first questions are
// answered by muster, in a home that has never seen them, prompts are typed when they take text, a person answers
// what they ask, and what is killed or comes back from a review goes on in the
// session that it was. It takes five minutes; one story alone: -run 'InPanes/codex/review'.
func TestRealAgentsInPanes(t *testing.T) {
	if !*everyAgent {
		t.Skip("needs -agents: a long form, of real programs in panes")
	}
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux: panes are its")
	}
	for _, h := range []string{"claude-code", "codex"} {
		t.Run(h, func(t *testing.T) {
			t.Parallel()
			r := newReal(t, h)
			r.apply("pane", h)
			r.story(t, "card", h, r.paneCard)
			r.story(t, "permission", h, r.panePermission)
			r.story(t, "review", h, r.paneReview)
			r.story(t, "question", h, r.paneQuestion)
			r.story(t, "killed", h, r.paneKilled)
		})
	}
}

// screen is what a run's pane shows.
func (r *real) screen(run string) string {
	socks, err := filepath.Glob(filepath.Join(r.data, "tmux", "s"))
	if err != nil || len(socks) == 0 {
		return "no tmux server"
	}
	out, err := exec.Command("tmux", "-S", socks[0], "list-panes", "-a", "-F", "#{pane_id} #{session_name}").CombinedOutput()
	if err != nil {
		return string(out) + err.Error()
	}
	for line := range strings.Lines(string(out)) {
		id, name, _ := strings.Cut(strings.TrimSpace(line), " ")
		if !strings.Contains(name, strings.ReplaceAll(run, ".", "-")) && !strings.Contains(name, strings.ReplaceAll(run, ".", "_")) {
			continue
		}
		out, err := exec.Command("tmux", "-S", socks[0], "capture-pane", "-p", "-t", id).CombinedOutput()
		return strings.TrimSpace(string(out)) + fmt.Sprint(err)
	}
	return "no pane of " + run + " among " + string(out)
}

// shows waits until a run's pane shows a text.
func (r *real) shows(run, text string) {
	r.fleet.t.Helper()
	r.eventually(realWait, "on the screen: "+text, func() (bool, string) {
		s := r.screen(run)
		return strings.Contains(s, text), s
	})
}

func (r *real) paneCard(t *testing.T, h string) {
	let := make(chan struct{})
	id, word := r.ask(h+"-full", fakemodel.Turn{Wait: let, Run: complete.Run}, fakemodel.Turn{Say: "all is done"})
	x := r.running(id, 1)
	if q := r.turn(word, 0); !strings.Contains(q.Said, id) {
		t.Errorf("its prompt: %q", q.Said)
	}
	close(let)
	r.await(r.machine, "done", id)
	if x = r.gone(id, 1); x.Surface != "pane" || x.Outcome != "completed" {
		t.Errorf("%+v", x)
	}
}

// panePermission: the program asks a person whether it may, and a person answers in the
// pane itself, from a terminal of their own.
func (r *real) panePermission(t *testing.T, h string) {
	made := filepath.Join(r.home, "made-in-pane")
	id, word := r.ask(h+"-ask", fakemodel.Turn{Run: "touch " + made, Beyond: true}, complete, fakemodel.Turn{Say: "all is done"})
	x := r.running(id, 1)
	r.turn(word, 0)
	r.shows(x.ID, "1. Yes")
	if _, err := os.Stat(made); err == nil {
		t.Error("it did not wait for the answer")
	}
	r.eventually(realWait, "in the list of what needs a person", func() (bool, string) { // hooks tell of it, of Codex its pane
		out, stderr, _ := r.run("attention")
		return strings.Contains(out, id), out + stderr
	})
	s := r.sit("attach", id)
	s.sees("muster")
	s.types("1")
	r.turn(word, 1)
	if _, err := os.Stat(made); err != nil {
		t.Error(err)
	}
	r.await(r.machine, "done", id)
}

// paneReview: a card that comes back from review goes on in the session that did the
// work, which is told what is new and not its prompt again.
func (r *real) paneReview(t *testing.T, h string) {
	review := fakemodel.Turn{Run: `muster request-review --summary "first try"`}
	id, word := r.ask(h+"-full", review, fakemodel.Turn{Say: "handed over"}, complete, fakemodel.Turn{Say: "all is done"})
	r.await(r.machine, "review", id)
	first := r.gone(id, 1)
	if _, stderr, code := r.run("request-changes", id, "make it blue"); code != 0 {
		t.Fatal(stderr)
	}
	r.await(r.machine, "done", id)
	again := r.gone(id, 2)
	q := r.turn(word, 2)
	if again.Mode != "resume" || again.SessionID != first.SessionID || q.Earlier == 0 || !strings.Contains(q.Said, "make it blue") || strings.Contains(q.Said, word) {
		t.Errorf("%+v after %+v; it was told %+v", again, first, q)
	}
}

// paneQuestion: a session that waits for a person keeps its pane, and is told the
// answer there.
func (r *real) paneQuestion(t *testing.T, h string) {
	block := fakemodel.Turn{Run: `muster block --kind needs_input "which colour?"`}
	id, word := r.ask(h+"-full", block, fakemodel.Turn{Say: "I wait"}, complete, fakemodel.Turn{Say: "all is done"})
	r.await(r.machine, "blocked", id)
	first := r.running(id, 1)
	r.turn(word, 1)
	if _, stderr, code := r.run("unblock", id, "--why", "red"); code != 0 {
		t.Fatal(stderr)
	}
	r.await(r.machine, "done", id)
	q := r.turn(word, 2)
	if q.Earlier == 0 || !strings.Contains(q.Said, "red") {
		t.Errorf("it was told %+v", q)
	}
	if runs, err := r.runs(id); err != nil || len(runs) != 2 || newest(runs).PID != first.PID {
		t.Errorf("%+v %v, the first was %+v", runs, err, first)
	}
}

// paneKilled: a program killed in its pane is taken up again in a new one.
func (r *real) paneKilled(t *testing.T, h string) {
	never := make(chan struct{})
	defer close(never)
	id, word := r.ask(h+"-full", fakemodel.Turn{Run: "echo once"}, fakemodel.Turn{Wait: never}, complete, fakemodel.Turn{Say: "all is done"})
	x := r.running(id, 1)
	r.turn(word, 1)
	if err := syscall.Kill(int(x.PID), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	r.await(r.machine, "done", id)
	again := r.gone(id, 2)
	if q := r.turn(word, 2); again.Mode != "resume" || q.Earlier == 0 || strings.Contains(q.Said, word) {
		t.Errorf("%+v after %+v: it was told %+v", again, x, q)
	}
}

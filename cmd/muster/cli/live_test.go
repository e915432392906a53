package cli

import (
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api/apitest"
)

func say(f *apitest.Fleet, card, event string, payload map[string]any) {
	f.Must(apitest.Manager(), board.VEvent, board.FireEvent{Card: card, Event: event, Payload: payload})
}

// subscribed waits until n readers follow.
func subscribed(t *testing.T, f *apitest.Fleet, n int) {
	t.Helper()
	tick, end := time.NewTicker(time.Millisecond), time.NewTimer(10*time.Second)
	defer tick.Stop()
	defer end.Stop()
	for f.Subs() < n {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("not within 10 s: %d readers", n)
		}
	}
}

// TestWait: it returns when the last card is there, and not before.
func TestWait(t *testing.T) {
	w := newWorld(t, story())
	c := w.start("wait", "d-1", "d-2", "--until", "done,archived")
	c.out.await(t, "d-1 is done")
	subscribed(t, w.f, 1)
	say(w.f, "d-2", "comment", map[string]any{"text": "an event that does not end it"})
	select {
	case code := <-c.code:
		t.Fatalf("ended with %d before d-2 was done", code)
	default:
	}
	w.f.Exit("d-2.1", 0)
	if code := c.end(t); code != 0 || !strings.Contains(c.out.String(), "d-2 is done") {
		t.Errorf("exit %d: %s%s", code, c.out, c.err)
	}
}

// TestWaitEndsInVain: a card that is finished another way, a time that is up, a card that is not there.
func TestWaitEndsInVain(t *testing.T) {
	w := newWorld(t, story())
	for _, x := range []struct {
		args  []string
		words string
	}{
		{[]string{"wait", "d-1", "--until", "review"}, "card d-1 is done and will not be review by itself"},
		{[]string{"wait", "d-99"}, "no card"},
		{[]string{"wait", "d-3", "--until", "dnoe"}, `board default has no status "dnoe"`},
	} {
		if _, err, code := w.run(x.args...); code != 1 || !strings.Contains(err, x.words) {
			t.Errorf("%q: exit %d: %s", x.args, code, err)
		}
	}
	for timeout := 50 * time.Millisecond; ; timeout *= 4 { // a busy machine may not get to read the card: that is exit 3
		_, err, code := w.run("wait", "d-3", "--timeout", timeout.String())
		if code == 3 && timeout < 10*time.Second {
			continue
		}
		if code != 1 || !strings.Contains(err, "card d-3 is todo after "+timeout.String()+", not done") {
			t.Errorf("exit %d: %s", code, err)
		}
		return
	}
}

// TestWaitTellsWhoIsNeeded: a card that needs a person is waited for, with a word about it.
func TestWaitTellsWhoIsNeeded(t *testing.T) {
	w := newWorld(t, story())
	c := w.start("wait", "d-4")
	c.err.await(t, "waiting: d-4 is blocked: needs_input: which colour?")
	c.err.await(t, "hint: a person answers: muster unblock d-4")
	c.err.await(t, "to end at a block: --until done,blocked")
	say(w.f, "d-4", "complete", map[string]any{"summary": "blue"})
	if code := c.end(t); code != 0 {
		t.Errorf("exit %d: %s", code, c.err)
	}
}

// TestWaitThatLastsSaysWhy: after some seconds a wait tells what the card waits for, once, and what would end that.
func TestWaitThatLastsSaysWhy(t *testing.T) {
	w := newWorld(t, story())
	c := w.start("wait", "d-3")
	c.err.await(t, "waiting: d-3 is todo: waits for d-2 (running)\nhint: finish them, or: muster card unlink d-3 --after d-2\n")
	say(w.f, "d-3", "comment", map[string]any{"text": "nothing new"})
	say(w.f, "d-3", "complete", map[string]any{"summary": "blue"})
	if code := c.end(t); code != 0 || strings.Count(c.err.String(), "waiting:") != 1 {
		t.Errorf("exit %d: %s", code, c.err)
	}
}

// TestWaitOutlivesARestart of its node.
func TestWaitOutlivesARestart(t *testing.T) {
	w := newWorld(t, story())
	c := w.start("wait", "d-2")
	subscribed(t, w.f, 1)
	w.down()
	w.f.Exit("d-2.1", 0)
	w.up()
	if code := c.end(t); code != 0 || !strings.Contains(c.out.String(), "d-2 is done") {
		t.Errorf("exit %d: %s%s", code, c.out, c.err)
	}
}

// TestFollowersArePatient: who has seen the node once waits for it to come back
// with its answer; who never has is told at once.
func TestFollowersArePatient(t *testing.T) {
	w := newWorld(t, story())
	a := &app{io: IO{Env: func(k string) string { return w.env[k] }, Now: w.f.Now}, timeout: 5 * time.Second, patience: time.Second}
	away := board.Errorf(board.Unavailable, "the node is started anew").WithCheck("no_node")
	answers := []error{nil, away, away, nil}
	err := a.changes(t.Context(), url.Values{"card": {"d-1"}}, func() (bool, error) {
		err := answers[0]
		answers = answers[1:]
		if len(answers) == 3 {
			say(w.f, "d-1", "comment", map[string]any{"text": "look again"})
		}
		return len(answers) == 0, err
	})
	if err != nil || len(answers) != 0 {
		t.Errorf("gave up with %v, %d answers before the end", err, len(answers))
	}
	if err := a.changes(t.Context(), url.Values{}, func() (bool, error) { return false, away }); !errors.Is(err, away) {
		t.Errorf("never answered: %v", err)
	}
}

// TestLogFollows a run from before it is started until it is over.
func TestLogFollows(t *testing.T) {
	w := newWorld(t, story())
	c := w.start("log", "d-5", "-f")
	subscribed(t, w.f, 1)
	run := w.f.Claim("d-5", "s5")
	w.f.Log(run, "first\n", false)
	w.f.Launch(run)
	c.out.await(t, "first\n")
	w.f.Log(run, "second\n", true)
	if code := c.end(t); code != 0 || c.out.String() != "first\nsecond\n" {
		t.Errorf("exit %d: %q %s", code, c.out, c.err)
	}
}

// TestLogOfARun: by its number; without -f what is there.
func TestLogOfARun(t *testing.T) {
	w := newWorld(t, story())
	w.f.Log("d-2.1", "so far\n", false)
	if out := w.ok("log", "d-2", "--run", "1"); out != "so far\n" {
		t.Errorf("got %q", out)
	}
	if _, err, code := w.run("log", "d-2", "--run", "2"); code != 1 || !strings.Contains(err, "d-2.2") {
		t.Errorf("exit %d: %s", code, err)
	}
}

// TestLogBytes: to a file or pipe a log goes as it is, byte by byte; a terminal gets colours and nothing else.
func TestLogBytes(t *testing.T) {
	w := newWorld(t, story())
	text := "a \x1b[1;31mred\x1b[0m b \x1b]0;owned\x07 \xff \x1b[2J c\r\nlast"
	w.f.Log("d-2.1", text, true)
	if out := w.ok("log", "d-2"); out != text {
		t.Errorf("to a pipe: %q", out)
	}
	w.terminal = true
	want := "a \x1b[1;31mred\x1b[0m b \\x1b]0;owned\\x07 \\xff \\x1b[2J c\x1b[0m\nlast\n"
	if out := w.ok("log", "d-2"); out != want {
		t.Errorf("to a terminal:\n%q, want\n%q", out, want)
	}
	if out := w.ok("log", "d-2", "--raw"); out != text {
		t.Errorf("--raw: %q", out)
	}
}

// TestEventsFollow: from a cursor, then as they come, one envelope a line for programs.
func TestEventsFollow(t *testing.T) {
	w := newWorld(t, story())
	c := w.start("events", "-f", "--since", "now", "--json", "--card", "d-1")
	subscribed(t, w.f, 1)
	say(w.f, "d-2", "comment", map[string]any{"text": "elsewhere"})
	say(w.f, "d-1", "comment", map[string]any{"text": "here"})
	c.out.await(t, "\n")
	if out := c.out.String(); !strings.HasPrefix(out, `{"v":1,"data":{"id":"`) || !strings.Contains(out, `"here"`) || strings.Contains(out, "elsewhere") {
		t.Errorf("got %s", out)
	}
	c.cancel()
	if code := c.end(t); code != 0 {
		t.Errorf("a person ended it: exit %d: %s", code, c.err)
	}
}

// TestEventsPages: more events than one page holds are all shown, once each.
func TestEventsPages(t *testing.T) {
	f := apitest.Story()
	for i := range 1100 {
		say(f, "d-1", "comment", map[string]any{"text": fmt.Sprint(i)})
	}
	w := newWorld(t, f)
	ids := strings.Fields(w.ok("events", "--since", "0", "-q", "--kind", "comment"))
	seen := map[string]bool{}
	for _, id := range ids {
		seen[id] = true
	}
	if len(ids) != 1101 || len(seen) != len(ids) {
		t.Errorf("%d events, %d different ones; want 1101", len(ids), len(seen))
	}
	if n := len(strings.Fields(w.ok("events", "-q", "--last", "7"))); n != 7 {
		t.Errorf("--last 7 shows %d", n)
	}
}

// TestBoardWatch shows the board again when it changed.
func TestBoardWatch(t *testing.T) {
	w := newWorld(t, story())
	c := w.start("board", "show", "--watch")
	c.out.await(t, "running (1)")
	subscribed(t, w.f, 1)
	w.f.Exit("d-2.1", 0)
	c.out.await(t, "done (2)")
	c.cancel()
	if code := c.end(t); code != 0 {
		t.Errorf("exit %d: %s", code, c.err)
	}
}

// TestSessionNeedsNoFlags: inside a session a verb finds its socket, its secret and its card.
func TestSessionNeedsNoFlags(t *testing.T) {
	w := newWorld(t, story())
	w.inSession("d-2.1", "d-2", "s2")
	w.ok("comment", "half of it")
	w.ok("comment", "d-2", "by its id")
	if out := w.ok("card", "show"); !strings.Contains(out, "count to ten") || !strings.Contains(out, "half of it") {
		t.Errorf("card show: %s", out)
	}
	if out := w.ok("why", "-q"); out != "running\n" {
		t.Errorf("why: %s", out)
	}
	if out := w.ok("card", "add", "a part", "--subtask-of", "d-2", "-q"); out != "d-6\n" {
		t.Errorf("card add: %s", out)
	}
	w.ok("board", "show")
	for _, args := range [][]string{{"status"}, {"node", "list"}, {"board", "show", "web"}, {"card", "show", "w-1"}, {"board", "set", "keep=1"}, {"comment", "d-5", "not mine"}, {"start", "d-5"}} {
		if out, err, code := w.run(args...); code != 1 {
			t.Errorf("%q: exit %d: %s%s", args, code, out, err)
		}
	}
	w.ok("block", "I need a key", "--kind", "needs_input")
	if out, err, code := w.run("comment", "too late"); code != 1 || !strings.Contains(err, "run d-2.1 is over") {
		t.Errorf("after its word: exit %d: %s%s", code, out, err)
	}
}

// TestSessionSecretIsReadAnew: a session that is kept goes on with another run under the same file.
func TestSessionSecretIsReadAnew(t *testing.T) {
	w := newWorld(t, story())
	w.inSession("d-2.1", "d-2", "old")
	if _, err, code := w.run("comment", "x"); code != 1 || !strings.Contains(err, "secret") {
		t.Errorf("exit %d: %s", code, err)
	}
	w.inSession("d-2.1", "d-2", "s2")
	w.ok("comment", "x")
}

// TestSessionIsPatient: a session's verb outlives a restart of its node (M-25);
// a person's does not wait for a node that is not there.
func TestSessionIsPatient(t *testing.T) {
	w := newWorld(t, story())
	w.down()
	w.inSession("d-2.1", "d-2", "s2")
	c := w.start("comment", "after all")
	select {
	case code := <-c.code:
		t.Fatalf("gave up with %d: %s", code, c.err)
	case <-time.After(50 * time.Millisecond):
	}
	w.up()
	if code := c.end(t); code != 0 {
		t.Errorf("exit %d: %s", code, c.err)
	}
}

// TestBrokenSecretFile is told in a line.
func TestBrokenSecretFile(t *testing.T) {
	w := newWorld(t, story())
	w.inSession("d-2.1", "d-2", "s2")
	if err := os.WriteFile(filepath.Join(w.dir, "secret.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err, code := w.run("comment", "x"); code != 1 || !strings.Contains(err, "secret file is broken") {
		t.Errorf("exit %d: %s", code, err)
	}
	w.env["MUSTER_SECRET_FILE"] = filepath.Join(w.dir, "none")
	if _, err, code := w.run("comment", "x"); code != 1 || !strings.Contains(err, "no such file") {
		t.Errorf("exit %d: %s", code, err)
	}
}

// TestDataBeatsTheSession: who names a folder means that node, also in a session's environment.
func TestDataBeatsTheSession(t *testing.T) {
	w := newWorld(t, story())
	w.inSession("d-2.1", "d-2", "s2")
	if out := w.ok("status", "-q", "--data", w.dir); out != apitest.Node+"\n" {
		t.Errorf("got %s", out)
	}
}

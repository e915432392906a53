package launcher

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"muster/board"
)

const untilStopped = "while :; do sleep 0.1; done"

func (n *testNodeT) secret(run string) string {
	n.t.Helper()
	s, err := ReadSecret(filepath.Join(n.cfg.Dir, "runs", run))
	must(n.t, err)
	return s.Secret
}

// M-25, RUN-02: a session speaks under its own secret and no other.
func TestSessionSpeaksUnderItsSecretOnly(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	one, two := n.start("agent", untilStopped), n.start("agent", untilStopped)
	n.launched(one)
	n.launched(two)
	for name, c := range map[string]struct{ run, secret string }{
		"none":         {one, ""},
		"another's":    {one, n.secret(two)},
		"unknown run":  {"web-99.1", n.secret(one)},
		"a path":       {"../" + one, n.secret(one)},
		"cut":          {one, n.secret(one)[:20]},
		"no run":       {"", n.secret(one)},
		"with newline": {one, n.secret(one) + "\n"},
	} {
		before := len(n.seen)
		res := n.SessionSay(context.Background(), c.run, c.secret, say(n.fleet, one, "comment"))
		if board.CodeOf(errOf(res)) != board.Refused {
			t.Errorf("%s: %v, want refused", name, errOf(res))
		}
		n.set(func() {
			if slices.ContainsFunc(n.seen[before:], func(r board.Request) bool { return r.Verb == board.VEvent }) {
				t.Errorf("%s: the leader was asked", name)
			}
		})
	}
	// It may not say who it is: actor and secret are the node's to fill in.
	r := say(n.fleet, one, "comment")
	r.Actor, r.Secret = board.Platform(), "x"
	if res := n.SessionSay(context.Background(), one, n.secret(one), r); res.Err != nil {
		t.Errorf("its own comment: %v", res.Err)
	}
	n.set(func() {
		last := n.seen[len(n.seen)-1]
		if last.Actor.Kind != board.ActorRun || last.Actor.Run != one || last.Actor.Node != testNode {
			t.Errorf("the leader saw %+v", last.Actor)
		}
	})
}

func errOf(res board.Result) error {
	if res.Err == nil {
		return nil
	}
	return res.Err
}

// M-25, architecture §4: nothing a session says goes before `launched` has its
// outcome, and its requests go one after the other.
func TestWordsWaitForLaunchedAndGoInOrder(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	n.set(func() {
		n.block = func(r *board.Request) bool { return r.Verb == board.VReport && slices.Contains([]uint64{2}, r.Number) }
	})
	run := n.start("agent", untilStopped)
	eventually(t, "a try to report the launch", func() bool { return slices.Contains(n.reports(run), board.ReportLaunched) })
	short, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if res := n.SessionSay(short, run, n.secret(run), say(n.fleet, run, "request_review")); board.CodeOf(errOf(res)) != board.Unavailable {
		t.Errorf("before launched: %v, want unavailable and nothing sent", errOf(res))
	}
	if slices.Contains(n.reports(run), "word") {
		t.Fatal("a word went before launched")
	}
	var wg sync.WaitGroup
	for range 5 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			if res := n.SessionSay(context.Background(), run, n.secret(run), say(n.fleet, run, "comment")); res.Err != nil {
				t.Error(res.Err)
			}
		}()
	}
	n.set(func() { n.block = nil })
	n.LeaderChanged()
	wg.Wait()
	got := n.reports(run)
	i, j := slices.Index(got, "word"), slices.Index(got, board.ReportLaunched)
	if i < j {
		t.Errorf("%v: a word went before launched", got)
	}
}

// Architecture §4: a word given up is delivered once, under its id; the same
// word said again has that outcome.
func TestWordSaidAgainHasTheFirstOutcome(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	run := n.start("agent", untilStopped)
	n.launched(run)
	n.set(func() { n.down = true })
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Millisecond)
	defer cancel()
	first := say(n.fleet, run, "request_review")
	if res := n.SessionSay(ctx, run, n.secret(run), first); board.CodeOf(errOf(res)) != board.UnknownOutcome {
		t.Fatalf("without a leader: %v, want unknown_outcome", errOf(res))
	}
	if req, err := openWord(filepath.Join(n.cfg.Dir, "runs", run)); err != nil || req == nil || req.ID != first.ID {
		t.Fatalf("the folder has %+v, %v; want the word", req, err)
	}
	again := make(chan board.Result, 1)
	go func() {
		again <- n.SessionSay(context.Background(), run, n.secret(run), say(n.fleet, run, "request_review"))
	}()
	n.set(func() { n.down = false })
	n.LeaderChanged()
	if res := <-again; res.Err != nil {
		t.Errorf("said again: %v, want the first one's success", res.Err)
	}
	ids := map[string]bool{}
	n.set(func() {
		for _, r := range n.seen {
			if r.Actor.Run == run {
				ids[r.ID] = true
			}
		}
	})
	if len(ids) != 1 {
		t.Errorf("the leader saw %d ids of one word", len(ids))
	}
	if req, err := openWord(filepath.Join(n.cfg.Dir, "runs", run)); req != nil || err != nil {
		t.Errorf("the folder still has %+v, %v", req, err)
	}
	if r := n.fleet.run(run); r.Verdict != board.ByOwn {
		t.Errorf("verdict %q", r.Verdict)
	}
}

// Invariant 4: an answer that is lost is asked for under the same id.
func TestLostAnswerOfAWordIsAskedAgain(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	run := n.start("agent", untilStopped)
	n.launched(run)
	lost := 0
	n.set(func() {
		n.lose = func(r *board.Request) bool {
			if r.Verb != board.VEvent || lost > 1 {
				return false
			}
			lost++
			return true
		}
	})
	if res := n.SessionSay(context.Background(), run, n.secret(run), say(n.fleet, run, "request_review")); res.Err != nil {
		t.Errorf("answered %v; want the stored success", res.Err)
	}
	if lost != 2 {
		t.Errorf("%d answers were lost", lost)
	}
	n.set(func() { // every copy after one without an answer is marked
		copies := 0
		for _, r := range n.seen {
			if r.Actor.Run == run {
				if r.Retry != (copies > 0) {
					t.Errorf("copy %d marked as a retry: %v", copies, r.Retry)
				}
				copies++
			}
		}
	})
}

// A words file that a crash has cut off holds what was asked, and no more.
func TestWordsFileSurvivesACut(t *testing.T) {
	dir := t.TempDir()
	a, b := &board.Request{ID: "a", Verb: board.VEvent}, &board.Request{ID: "b", Verb: board.VEvent}
	must(t, appendLine(dir, wordLine{ID: "a", Req: a}, true))
	must(t, appendLine(dir, wordLine{ID: "a", Done: true}, false))
	if req, err := openWord(dir); req != nil || err != nil {
		t.Errorf("%v, %v; want none", req, err)
	}
	must(t, appendLine(dir, wordLine{ID: "b", Req: b}, true))
	path := filepath.Join(dir, fileWords)
	whole, err := os.ReadFile(path)
	must(t, err)
	for cut := len(whole); cut >= 0; cut-- {
		must(t, os.WriteFile(path, whole[:cut], 0o600))
		req, err := openWord(dir)
		if err != nil || req != nil && !slices.Contains([]string{"a", "b"}, req.ID) {
			t.Fatalf("cut at %d: %v, %v", cut, req, err)
		}
		must(t, appendLine(dir, wordLine{ID: "b", Req: b}, true))
		if req, _ := openWord(dir); req == nil || req.ID != "b" {
			t.Fatalf("cut at %d: a word after the cut is lost", cut)
		}
	}
	if _, err := openWord(filepath.Join(dir, "nowhere")); err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Error(err)
	}
}

package launcher

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"muster/board"
)

// person's is a process that somebody started by hand, with words of its own.
func byHand(t *testing.T, dir, script string, words ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("/bin/sh", append([]string{"-c", script}, words...)...)
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	must(t, cmd.Start())
	ended := make(chan struct{})
	go func() { _ = cmd.Wait(); close(ended) }() // it is this process's child: nobody else would reap it
	t.Cleanup(func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL); <-ended })
	return cmd
}

const untilGo = "while [ ! -e go ]; do sleep 0.05; done"

// card files a card that waits.
func (n *testNodeT) waiting() string {
	n.t.Helper()
	title, who := "by hand", "agent"
	add := request(person(), board.VCardAdd, board.CardAdd{Board: "web", CardFields: board.CardFields{Title: &title, Assignee: &who}})
	var card struct{ ID string }
	res := n.do(n.t.Context(), &add)
	must(n.t, errOf(res))
	must(n.t, json.Unmarshal(res.Data, &card))
	return card.ID
}

// adopt vouches for a session and lets the fleet take it in, as a door does.
func (n *testNodeT) adopt(a board.Adopt) (run string, refusal *board.Error) {
	n.t.Helper()
	v, err := n.Vouch(a)
	if err != nil {
		return "", err
	}
	req := request(person(), board.VAdopt, a)
	req.Actor.Node, req.Vouch = testNode, v
	res := n.do(n.t.Context(), &req)
	if res.Err != nil {
		return "", res.Err
	}
	var out struct{ Run string }
	must(n.t, json.Unmarshal(res.Data, &out))
	return out.Run, nil
}

// watched waits until a keeper watches an attached session.
func (n *testNodeT) watched(run string) *Proc {
	n.t.Helper()
	var p *Proc
	eventually(n.t, "somebody to watch "+run, func() bool {
		p, _ = ReadProc(filepath.Join(n.cfg.Dir, "runs", run))
		return p != nil && alive(p.Keeper)
	})
	return p
}

// SES-24, SES-28, M-19: a process that a person has is watched, not started; it speaks under its run's secret, and when it
// ends without a last word its card waits for that person, as after a closed pane.
func TestAttachedSessionIsWatched(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	dir := t.TempDir()
	cmd := byHand(t, dir, untilGo, "sh", "--session-id", "s-by-hand")
	card := n.waiting()
	run, refusal := n.adopt(board.Adopt{Card: card, Session: "s-by-hand"}) // found by its arguments
	if refusal != nil {
		t.Fatal(refusal)
	}
	if p := n.watched(run); p.PID != cmd.Process.Pid {
		t.Fatalf("process %d is watched, want %d", p.PID, cmd.Process.Pid)
	}
	if c := n.card(card); c.Workspace != "dir:"+dir || c.Machine != "atlas" {
		t.Errorf("workspace %q, machine %q", c.Workspace, c.Machine)
	}
	comment := say(n.fleet, run, "comment")
	must(t, errOf(n.SessionSay(t.Context(), run, n.secret(run), comment)))
	must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	r := n.gone(run)
	if c := n.card(card); c.Status != "blocked" || c.BlockKind != "needs_input" || r.ExitCode != nil || r.Verdict != board.ByExit {
		t.Errorf("card %s (%s), code %v, verdict %q", c.Status, c.BlockKind, r.ExitCode, r.Verdict)
	}
	if exists(filepath.Join(n.cfg.Dir, "workspaces", card)) {
		t.Error("a workspace was made")
	}
}

// SES-24, M-19: what a node does not vouch for.
func TestVouchRefuses(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	own := n.start("sh", untilGo)
	n.launched(own)
	pid := int64(n.watched(own).PID)
	mine := byHand(t, t.TempDir(), untilGo, "sh", "two")
	byHand(t, t.TempDir(), untilGo, "sh", "two")
	dead := byHand(t, t.TempDir(), ":")
	eventually(t, "its end", func() bool { return !alive(dead.Process.Pid) })
	for _, c := range []struct {
		words string
		a     board.Adopt
	}{
		{"which session?", board.Adopt{}},
		{"which session?", board.Adopt{Session: "a\nb"}},
		{"no process of yours", board.Adopt{Session: "nobody-has-this"}},
		{"more than one process", board.Adopt{Session: "two"}},
		{"there is no process", board.Adopt{Session: "x", PID: int64(dead.Process.Pid)}},
		{"there is no process 1", board.Adopt{Session: "x", PID: 1}},
		{"a part of muster", board.Adopt{Session: "x", PID: pid}},
		{"a part of muster", board.Adopt{Session: "x", PID: int64(os.Getpid())}},
		{"which is not in", board.Adopt{Session: "x", PID: int64(mine.Process.Pid), Dir: t.TempDir()}},
	} {
		if v, err := n.Vouch(c.a); err == nil || !strings.Contains(err.Message, c.words) {
			t.Errorf("%+v: %+v, %v; want %q", c.a, v, err, c.words)
		}
	}
	if os.Getuid() == 0 {
		other := exec.Command("/bin/sh", "-c", untilGo)
		other.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		if err := other.Start(); err == nil {
			defer func() { _ = other.Process.Kill(); _ = other.Wait() }()
			if _, err := n.Vouch(board.Adopt{Session: "x", PID: int64(other.Process.Pid)}); err == nil || !strings.Contains(err.Message, "another user's") {
				t.Errorf("another user's process: %v", err)
			}
		}
	}
	_ = n.event(board.CardOfRun(own), "cancel")
	n.gone(own)
}

// M-35: an attached session is ended by what ends one from outside, whole; after its run's own word it is left alone,
// and the card's next start waits for it.
func TestAttachedSessionEnds(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	stopped := byHand(t, t.TempDir(), "sleep 1000 & wait")
	card := n.waiting()
	run, refusal := n.adopt(board.Adopt{Card: card, Session: "s-1", PID: int64(stopped.Process.Pid)})
	if refusal != nil {
		t.Fatal(refusal)
	}
	n.watched(run)
	must(t, n.event(card, "cancel"))
	if r := n.gone(run); r.Gone != board.GoneReport || alive(stopped.Process.Pid) || len(below(processes(), func(p process) bool { return p.pid == stopped.Process.Pid }, true)) != 0 {
		t.Errorf("gone %q, and it lives", r.Gone)
	}

	n.apply(t, testWorkflow+"statuses: {running: {run: {limits: {leave: 0}}}}\n") // who is to leave is ended at once
	dir := t.TempDir()
	kept := byHand(t, dir, untilGo)
	card = n.waiting()
	if run, refusal = n.adopt(board.Adopt{Card: card, Session: "s-2", PID: int64(kept.Process.Pid)}); refusal != nil {
		t.Fatal(refusal)
	}
	n.watched(run)
	word := say(n.fleet, run, "request_review")
	must(t, errOf(n.SessionSay(t.Context(), run, n.secret(run), word)))
	must(t, n.event(card, "request_changes"))
	start := request(board.Platform(), board.VStart, board.Start{Card: card, Node: testNode})
	if res := n.do(t.Context(), &start); res.Err == nil || !strings.Contains(res.Err.Message, "a person attached is still open") {
		t.Errorf("the next start: %v", res.Err)
	}
	eventually(t, "its node to know of its last word", func() (knows bool) {
		n.ask(func() { knows = n.runs[run].own })
		return knows
	})
	asked := false
	n.ask(func() { asked = n.runs[run].asked })
	if asked || !alive(kept.Process.Pid) || n.fleet.run(run).Gone != "" {
		t.Error("it was ended after its own word")
	}
	must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	n.gone(run)
}

// Invariant 18, M-35: an attached session outlives the death of its node and of its keeper, and is watched again; it is
// never called gone while it lives, and never killed for that.
func TestAttachedSessionIsWatchedAgain(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	dir := t.TempDir()
	cmd := byHand(t, dir, untilGo)
	run, refusal := n.adopt(board.Adopt{Card: n.waiting(), Session: "s-3", PID: int64(cmd.Process.Pid)})
	if refusal != nil {
		t.Fatal(refusal)
	}
	first := n.watched(run).Keeper
	must(t, syscall.Kill(first, syscall.SIGKILL))
	eventually(t, "another keeper", func() bool { k := n.watched(run).Keeper; return k != first })
	must(t, n.Close())
	n.open()
	second := n.watched(run).Keeper
	must(t, syscall.Kill(second, syscall.SIGTERM)) // as a shutdown of its service does
	eventually(t, "a third keeper", func() bool { k := n.watched(run).Keeper; return k != second })
	if !alive(cmd.Process.Pid) || n.fleet.run(run).Gone != "" {
		t.Fatal("it did not outlive them")
	}
	must(t, os.WriteFile(filepath.Join(dir, "go"), nil, 0o600))
	n.gone(run)
	if got := n.reports(run); !slices.Equal(got, []string{board.ReportTaken, board.ReportLaunched, board.ReportExited}) {
		t.Errorf("reports %v", got)
	}
}

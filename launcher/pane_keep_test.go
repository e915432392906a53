package launcher

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"muster/board"
)

// starts starts a card again and answers its new run.
func (n *testNodeT) restart(card string) string {
	n.t.Helper()
	req := request(board.Platform(), board.VStart, board.Start{Card: card, Node: testNode})
	if res := n.do(context.Background(), &req); res.Err != nil {
		n.t.Fatal(res.Err)
	}
	return n.card(card).Run
}

// blocks is the session's own word that a person has to look.
func (n *testNodeT) blocks(run string) {
	n.t.Helper()
	req := say(n.fleet, run, "block")
	req.Args = request(board.Actor{}, "", board.FireEvent{Card: board.CardOfRun(run), Event: "block", Payload: map[string]any{"kind": "needs_input", "reason": "which?"}}).Args
	if res := n.SessionSay(context.Background(), run, n.secret(run), req); res.Err != nil {
		n.t.Fatal(res.Err)
	}
}

// SES-06, SES-07, SES-08, M-35: a pane whose run has ended by its own word goes on with
// the card's next run: the same process, under the next run's identity, which its next
// prompt comes with. Its end is the next run's, also when the node was started anew.
func TestKeptPane(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"at once": false, "and its node is started anew": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := paneNode(t)
			n.t = t
			file := filepath.Join(t.TempDir(), "read")
			one := n.start("tui", tui(file, "ready> "))
			touch(t, file+".0")
			first := n.promptOf(one) + "\r"
			n.reads(file, first)
			was, pid := n.secret(one), n.fleet.run(one).PID
			n.blocks(one)
			card := board.CardOfRun(one)
			must(t, n.event(card, "unblock"))
			two := n.restart(card)
			n.launched(two)
			r := n.fleet.run(two)
			if r.Keeps != one || r.Mode != board.ModeAdopt || r.PID != pid || !alive(int(pid)) {
				t.Fatalf("run %+v does not go on with process %d", r, pid)
			}
			if again {
				must(t, n.Close())
				n.open()
			}
			n.readsOn(file, first, n.prompt(two)+"\r")
			s, err := ReadSecret(filepath.Join(n.cfg.Dir, "runs", one))
			must(t, err)
			if s.Run != two || !bytes.Equal(s.Hash(), r.SecretHash) {
				t.Errorf("the session finds the secret of %s", s.Run)
			}
			body, err := os.ReadFile(filepath.Join(n.cfg.Dir, "runs", one, fileBrief))
			if must(t, err); len(body) == 0 || n.prompt(one) != n.prompt(two) {
				t.Error("the session finds another prompt in its file")
			}
			if res := n.SessionSay(context.Background(), one, was, say(n.fleet, one, "comment")); board.CodeOf(errOf(res)) != board.Refused {
				t.Errorf("the run before may still speak: %v", errOf(res))
			}
			if res := n.SessionSay(context.Background(), two, n.secret(two), say(n.fleet, two, "comment")); res.Err != nil {
				t.Errorf("the run that it works in may not speak: %v", res.Err)
			}
			eventually(t, "the pane's new name", func() bool { return n.pane(two) != nil && n.pane(one) == nil })
			if b, _, _, err := n.ReadLog(t.Context(), two, 0, 1<<16, false); err != nil || !bytes.Contains(b, []byte("ready> ")) {
				t.Errorf("its log is %q, %v", b, err)
			}
			must(t, n.tmux().Kill(t.Context(), n.pane(two).ID))
			if r := n.gone(two); r.Gone != board.GoneReport || n.card(card).Status != "blocked" {
				t.Errorf("gone by %q, card %s", r.Gone, n.card(card).Status)
			}
			if r := n.fleet.run(one); r.Gone != board.GonePassed {
				t.Errorf("the run before is %q", r.Gone)
			}
			eventually(t, "both runs to be forgotten", func() bool {
				left := 0
				n.ask(func() { left = len(n.orders.Keys()) })
				return left == 0
			})
		})
	}
}

// SES-08, M-35: a session is not given another run while it prints; and one that ended
// is taken up again in a new process.
func TestKeptPaneWaitsForItsTurn(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	file := filepath.Join(t.TempDir(), "go")
	one := n.start("tui", "echo 'ready> '; read x; until [ -e "+file+" ]; do echo busy; sleep 0.1; done; exec cat")
	n.logHas(one, "busy")
	eventually(t, "its prompt to be known as read", func() bool {
		typing := true
		n.ask(func() { typing = n.runs[one].typing })
		return !typing
	})
	n.blocks(one)
	card := board.CardOfRun(one)
	must(t, n.event(card, "unblock"))
	two := n.restart(card)
	eventually(t, "the start to wait", func() bool {
		why := ""
		n.ask(func() {
			if r := n.runs[two]; r != nil {
				why = r.why
			}
		})
		return why == "the session it takes over is in a turn"
	})
	if s, err := ReadSecret(filepath.Join(n.cfg.Dir, "runs", one)); err != nil || s.Run != one {
		t.Errorf("its identity was changed in a turn: %+v %v", s, err)
	}
	touch(t, file)
	n.launched(two)
	if r := n.fleet.run(two); r.PID != n.fleet.run(one).PID {
		t.Error("a new process was started")
	}
}

package node

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/launcher"
)

// SES-24, M-19: a session on another machine is attached in one hop: the leader has that machine's own word, and takes
// nobody else's for it. Who may not ask, and a machine whose owner lets nobody elsewhere at its terminals, are answered
// before a process is looked at.
func TestAdoptOnAnotherMachine(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	cfg := testConfig(t, "borea")
	cfg.Token = joinToken(t, a)
	b := open(t, cfg)
	byHand := func() int64 {
		cmd := exec.Command("sleep", "1000")
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
		return int64(cmd.Process.Pid)
	}
	ask := func(n *Node, x board.Adopt, change func(*board.Request)) board.Result {
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		req := board.Request{ID: n.MintID(), Actor: board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(n.ident.ID)}, Verb: board.VAdopt, Args: []byte(toJSON(t, x))}
		if change != nil {
			change(&req)
		}
		return n.Do(ctx, req)
	}
	title := "by hand"
	for i, c := range []struct {
		at   *Node
		of   *Node
		call string
	}{{a, b, "borea"}, {b, a, "atlas"}, {b, b, "borea"}, {a, b, string(b.ident.ID)}} {
		card := a.testDo(t, board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title}})["id"].(string)
		x := board.Adopt{Card: card, Session: "s-" + strconv.Itoa(i), PID: byHand(), Harness: "command", Machine: c.call}
		forged := func(r *board.Request) {
			if c.at != c.of { // what the sender says of another machine counts for nothing
				r.Vouch = &board.Vouch{Node: string(c.of.ident.ID), Session: x.Session, Harness: "command", PID: 1, Dir: "/forged"}
			}
		}
		res := ask(c.at, x, forged)
		if res.Err != nil {
			t.Fatalf("%d: %v", i, res.Err)
		}
		var r *board.Run
		_ = a.store.View(func(v board.View) error {
			r = board.GetRun(v, board.GetCard(v, card).Run)
			return nil
		})
		if here, _ := os.Getwd(); r == nil || r.Node != string(c.of.ident.ID) || r.PID != x.PID || r.Workspace != here {
			t.Errorf("%d: run %+v", i, r)
		}
		c.of.until(t, "its node watches it", func() bool {
			p, err := launcher.ReadProc(filepath.Join(c.of.dir.path("runs"), r.ID))
			return err == nil && int64(p.PID) == x.PID
		})
	}

	card := a.testDo(t, board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title}})["id"].(string)
	x := board.Adopt{Card: card, Session: "s", PID: byHand(), Harness: "command", Machine: "borea"}
	refused := func(words string, res board.Result) {
		t.Helper()
		if res.Err == nil || !strings.Contains(res.Err.Message, words) {
			t.Errorf("%v, want %q", res.Err, words)
		}
	}
	refused("no node", ask(a, board.Adopt{Card: card, Session: "s", Machine: "nowhere"}, nil))
	refused("there is no process", ask(a, board.Adopt{Card: card, Session: "s", PID: 1, Machine: "borea"}, nil))
	a.testDo(t, board.VNodeSet, board.NodeSet{Node: "borea", Local: "viewer"})
	refused("the role", ask(b, board.Adopt{Card: card, Session: "s", PID: 1, Machine: "atlas"}, nil)) // not: there is no process
	if _, err := a.vouchFor(b.ident.ID, vouchMsg{Adopt: x}); err == nil && !a.votes(b.ident.ID) {
		t.Error("a replica had this machine's word")
	}
	if err := os.WriteFile(b.dir.path(ownFile), []byte("attach: read\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	refused("attach: read", ask(a, x, nil))
	b.Close()
	refused("does not answer", ask(a, x, nil))
}

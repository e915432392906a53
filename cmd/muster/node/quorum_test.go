package node

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

// threeVoters are three nodes in one process, all of them voters.
func threeVoters(t *testing.T) []*Node {
	t.Helper()
	a := open(t, testConfig(t, "atlas"))
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	tok, terr := backend{a}.NewToken(t.Context(), board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(a.ident.ID)}, api.TokenOptions{Role: "node", TTL: 600})
	if terr != nil {
		t.Fatal(terr)
	}
	nodes := []*Node{a}
	for _, name := range []string{"borea", "cleo"} {
		cfg := testConfig(t, name)
		cfg.Token = tok.Token
		nodes = append(nodes, open(t, cfg))
		a.testDo(t, board.VNodeVote, board.NodeVote{Node: name, Vote: true})
	}
	sub := a.store.Subscribe(func(tab board.Table, _ string) bool { return tab == board.TNode })
	defer sub.Close()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for {
		voters := 0
		_ = a.store.View(func(v board.View) error {
			board.EachNode(v, func(n *board.Node) bool {
				if n.Role == board.RoleVoter {
					voters++
				}
				return true
			})
			return nil
		})
		if voters == 3 {
			return nodes
		}
		select {
		case <-sub.C:
			sub.Take()
		case <-ctx.Done():
			t.Fatalf("%d voters", voters)
		}
	}
}

// M-34: without a majority nothing is taken, the answer says why, and every face shows it; what was there can be read.
func TestWithoutQuorum(t *testing.T) {
	nodes := threeVoters(t)
	a := nodes[0]
	card := a.testAdd(t, "before", "true")
	a.waitStatus(t, card, "done")
	nodes[1].waitStatus(t, card, "done")
	left := nodes[1]
	nodes[0].Close()
	nodes[2].Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
	defer cancel()
	title := "after"
	b, _ := json.Marshal(board.CardAdd{CardFields: board.CardFields{Title: &title}})
	res := left.Do(ctx, board.Request{ID: left.MintID(), Actor: board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(left.ident.ID)}, Verb: board.VCardAdd, Args: b})
	if res.Err == nil || res.Err.Code != board.Unavailable && res.Err.Code != board.UnknownOutcome {
		t.Fatalf("a card was taken without a majority: %+v", res)
	}
	if r := (backend{left}).Readings(t.Context()); r.Live {
		t.Fatal("readings without a leader are called live")
	}
	if _, err := left.handle(t.Context(), nodes[2].ident.ID, "readings", nil); err == nil {
		t.Fatal("a node that does not lead answers with readings, as if it did")
	}
	f, err := backend{left}.Read(t.Context(), false, func(v board.View) error {
		if board.GetCard(v, card) == nil {
			t.Error("what was acknowledged cannot be read")
		}
		return nil
	})
	if err != nil || f.Index == 0 {
		t.Fatalf("local read: %+v, %v", f, err)
	}
}

// M-31: a read at a node waits for what that node has answered to anybody; a consistent read sees every write that was
// acknowledged before, wherever.
func TestReadsSeeWhatWasAnswered(t *testing.T) {
	nodes := threeVoters(t)
	for i := range 30 {
		n := nodes[i%3]
		card := n.testAdd(t, "read me", "true")
		for _, tc := range []struct {
			at         *Node
			consistent bool
		}{{n, false}, {nodes[(i+1)%3], true}} {
			ctx, cancel := context.WithTimeout(t.Context(), patience)
			f, err := backend{tc.at}.Read(ctx, tc.consistent, func(v board.View) error {
				if board.GetCard(v, card) == nil {
					t.Errorf("card %s, acknowledged by %s, is not seen at %s (consistent %v)", card, n.cfg.Name, tc.at.cfg.Name, tc.consistent)
				}
				return nil
			})
			cancel()
			if err != nil {
				t.Fatalf("read: %+v, %v", f, err)
			}
		}
	}
}

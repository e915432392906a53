package node

import (
	"testing"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/scheduler"
)

// M-31, MEM-05: a dry run that is asked of a replica is the leader's, with the leader's readings; when no leader is left
// it is made from the replica's state, and says so.
func TestDryRunIsTheLeaders(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	tok, terr := backend{a}.NewToken(t.Context(), board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(a.ident.ID)}, api.TokenOptions{Role: "node", TTL: 600})
	if terr != nil {
		t.Fatal(terr)
	}
	cfg := testConfig(t, "borea")
	cfg.Token, cfg.Replica = tok.Token, true
	b := open(t, cfg)
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	a.testDo(t, board.VPause, board.Pause{Why: "held for the test"})
	title, who := "held", "sh"
	res := a.testDo(t, board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title, Assignee: &who}})
	user, _ := b.sockets()
	cl := &api.Client{Socket: user}
	ask := func() scheduler.DryAnswer {
		d, err := api.Decode[scheduler.DryAnswer](cl.Get(t.Context(), "/v1/dryrun", nil))
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if d := ask(); !d.Live || len(d.Would) != 0 || len(d.Waiting) != 1 || d.Waiting[0].Card != res["id"] || d.Waiting[0].Check != "pause" {
		t.Errorf("of the leader, asked at borea: %+v", d)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	if d := ask(); d.Live {
		t.Errorf("without a leader: %+v", d)
	}
}

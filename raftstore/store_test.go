package raftstore

import (
	"testing"

	"muster/board"
)

func TestSingleNodeExecutesAndKeeps(t *testing.T) {
	t.Parallel()
	n, s := single(t, nil)
	for range 20 {
		must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	}
	if got := counter(t, s, "a"); got != 20 {
		t.Fatalf("counter is %d, want 20", got)
	}
	_, seq := s.Applied()
	hash := s.Hash()
	n.close()
	s = n.open()
	if _, got := s.Applied(); got != seq {
		t.Fatalf("Seq is %d after a restart, was %d", got, seq)
	}
	if s.Hash() != hash {
		t.Fatal("hash changed over a restart")
	}
	waitLeads(t, s)
	res := must(t, s.Do(ctx(t), toy(verbAdd, "a")))
	if string(res.Data) != "21" || res.Seq != seq+1 {
		t.Fatalf("result is %s at Seq %d, want 21 at %d", res.Data, res.Seq, seq+1)
	}
	if got := s.Stats(); got.Skipped == 0 && got.RefusedSeq > 0 {
		t.Fatalf("after a restart entries were refused instead of skipped: %+v", got)
	}
}

func TestThreeNodesHoldTheSame(t *testing.T) {
	t.Parallel()
	_, nodes := three(t, nil)
	for range 50 {
		must(t, nodes[0].s.Do(ctx(t), toy(verbAdd, "a")))
	}
	same(t, nodes)
	if got := counter(t, nodes[2].s, "a"); got != 50 {
		t.Fatalf("counter on a follower is %d, want 50", got)
	}
	if r := nodes[1].s.Do(ctx(t), toy(verbAdd, "a")); r.Err == nil || r.Err.Code != board.Unavailable || r.Err.Check != CheckNotLeader {
		t.Fatalf("a follower answered %+v", r)
	}
}

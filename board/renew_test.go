package board

import (
	"fmt"
	"strings"
	"testing"
)

// renewed is a fleet whose state was renewed: one card runs, one was claimed and
// not taken, one waits.
func renewed(t *testing.T, r *Renewal) (f *fleet, runs, claimed, waits string) {
	t.Helper()
	f = newFleet(t)
	runs, claimed, waits = f.card("runs"), f.card("claimed"), f.card("waits")
	f.must(f.person(VTokenCreate), TokenCreate{ID: HashSecret("s"), Role: "member"})
	f.launched(runs)
	f.start(claimed, atlas)
	if err := r.Check(f.v); err != nil {
		t.Fatal(err)
	}
	for n := 0; ; n++ {
		env := &Env{Now: f.v.Time(), Seq: f.v.Seq() + 1, Workflows: f.ws, Nodes: func(string) Reading { return Reading{State: NodeUnknown} }}
		txn := r.Next(f.v, env)
		if txn.Empty() {
			break
		}
		if f.v.Apply(&txn); n > 1000 {
			t.Fatal("it does not come to an end")
		}
	}
	return f, runs, claimed, waits
}

// architecture.md §6: a recovered fleet comes up paused, in the next era; what ran is lost and is stopped, nothing is
// ordered to start, and no id, card number or run number of what may have been lost is given again.
func TestRecoveredState(t *testing.T) {
	f, runs, claimed, waits := renewed(t, &Renewal{EraTag: "new", Node: Node{ID: atlas, Store: "s2", Generation: 7}, By: "ann", Why: "two disks died"})
	fl := GetFleet(f.v)
	if fl.ID != "f1" || fl.Era != 2 || fl.EraTag != "new" || fl.PausedAt == 0 || !strings.Contains(fl.PausedWhy, "two disks died") {
		t.Fatalf("fleet: %+v", fl)
	}
	if n := GetNode(f.v, atlas); n.Store != "s2" || n.Generation != 7 || n.Role != RoleVoter {
		t.Errorf("node: %+v", n)
	}
	for card, want := range map[string]string{runs: "ready", claimed: "ready", waits: "ready"} {
		c := GetCard(f.v, card)
		if c.Status != want || c.Run != "" || c.Runs < skippedRuns {
			t.Errorf("card %s is %s with run %q, %d runs", card, c.Status, c.Run, c.Runs)
		}
	}
	r := LastRun(f.v, GetCard(f.v, runs))
	if r == nil || r.N != 1 || r.Outcome != "lost" || r.Verdict != ByOutside || r.Stop == "" {
		t.Fatalf("run: %+v", r)
	}
	EachOrder(f.v, atlas, func(o *Order) bool {
		if o.Kind != OrderStop {
			t.Errorf("order %+v", o)
		}
		return true
	})
	if h := GetHeld(f.v, r.ID); h == nil || !h.Stopping {
		t.Errorf("a session that may live holds nothing: %+v", h)
	}
	if res := f.do(Request{ID: "1-tag.3.x", Actor: f.person("").Actor, Verb: VResume}, Pause{}); res.Err == nil || res.Err.Check != CheckBelow {
		t.Errorf("an id of the era before is taken: %+v", res)
	}
	if id := f.card("after"); id == "d-4" {
		t.Errorf("card %s may have been given before", id)
	}
	f.must(f.person(VResume), Pause{})
	f.report(atlas, Report{Run: r.ID, Kind: ReportGone})
	if next := f.start(runs, atlas); next == RunID(runs, 2) {
		t.Errorf("run %s may have been given before", next)
	}
	if n := GetCard(f.v, runs); n.Runs-n.Skipped != 2 {
		t.Errorf("%d runs, %d skipped", n.Runs, n.Skipped)
	}
}

// architecture.md §6: a restore is a new fleet: runs end as restored and hold nothing; orders, secrets, ids are dropped.
func TestRestoredState(t *testing.T) {
	f, runs, claimed, _ := renewed(t, &Renewal{Restored: true, Fleet: "f2", EraTag: "new", Gossip: []byte("k"), Node: Node{ID: "other", Name: "other", Store: "s1"}, By: "ann", Why: "a drill"})
	fl := GetFleet(f.v)
	if fl.ID != "f2" || fl.Era != 1 || fl.PausedAt == 0 || string(fl.Gossip) != "k" {
		t.Fatalf("fleet: %+v", fl)
	}
	for _, card := range []string{runs, claimed} {
		c := GetCard(f.v, card)
		if r := LastRun(f.v, c); c.Run != "" || c.Status != "ready" || r.Outcome != "restored" || r.Gone == "" || len(r.SecretHash) != 0 {
			t.Errorf("card %+v, run %+v", c, r)
		}
	}
	for _, tab := range []Table{THeld, TOrder, TToken, TRequest, TReqLog, TOutbox, TSlot, TCool} {
		f.v.Scan(tab, "", "", func(k string, _ []byte) bool { t.Errorf("%s %s is still there", tab, k); return true })
	}
	var nodes []string
	EachNode(f.v, func(n *Node) bool { nodes = append(nodes, n.ID+" "+n.Role); return true })
	if fmt.Sprint(nodes) != "[other voter]" {
		t.Errorf("nodes: %v", nodes)
	}
}

// threats.md: a backup holds no key of the fleet and no hash of a secret.
func TestBackupHoldsNoSecret(t *testing.T) {
	run := &Run{ID: "d-1.1", SecretHash: []byte("hash")}
	fl := &Fleet{ID: "f", Gossip: []byte("gossip"), GossipOld: []byte("gossip")}
	for _, tc := range []struct {
		tab Table
		key string
		val []byte
		bad string
	}{{TRun, "k", marshal(run), "hash"}, {TFleet, FleetKey, marshal(fl), "gossip"}, {TToken, "k", []byte("x"), "x"}, {TRequest, "k", []byte("x"), "x"}} {
		if got, err := ForBackup(tc.tab, tc.key, tc.val); err != nil || strings.Contains(string(got), tc.bad) {
			t.Errorf("%s: %q, %v", tc.tab, got, err)
		}
	}
	for _, tab := range []Table{TFleet, TRun, TOrder} { // of a later codec, or damaged: what is secret in it is not known
		if got, err := ForBackup(tab, FleetKey, []byte("\xffsecret")); err == nil || got != nil || !strings.Contains(err.Error(), FleetKey) {
			t.Errorf("%s that cannot be read: %q, %v", tab, got, err)
		}
	}
}

package scheduler

import (
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"muster/board"
)

const folders = shell + `
  here: {parent: sh, prefer: 'machine.name == "atlas" ? 1 : 0', workspace: {kind: dir, path: /srv/app}}
  there: {parent: here, workspace: {path: /srv/other}}
  limited: {harness: agent, workspace: {kind: dir, path: /srv/own}, fallback: [here]}
harnesses: {agent: {headless: {fresh: [agent]}, exit: {75: rate_limit}, verdict: explicit}}
`

// WSP-02: a card goes to a machine on which its folder is free; where none is it
// waits, holds up no card of another folder, and starts the moment that the session is gone, without any back-off.
func TestLoopKnowsWhoseFolderItIs(t *testing.T) {
	inBubble(t, folders, []string{"atlas", "borea"}, func(r *rig) {
		first := r.add("here")
		synctest.Wait()
		second := r.add("here")
		synctest.Wait()
		a, b := r.run(r.card(first).Run), r.run(r.card(second).Run)
		if a == nil || b == nil || a.Node == b.Node {
			r.t.Fatalf("runs %+v and %+v, want one on each machine: %+v", a, b, r.card(second).Waits)
		}
		waits, other := r.add("here"), r.add("there")
		synctest.Wait()
		if c := r.card(waits); c.Run != "" || c.Waits.Check != "workspace" || !strings.Contains(c.Waits.Text, "/srv/app on ") {
			r.t.Fatalf("%s waits for %+v", waits, c.Waits)
		}
		if r.card(other).Run == "" {
			r.t.Fatalf("another folder is held up: %+v", r.card(other).Waits)
		}
		if w, _ := Why(r.input(), waits, true); w.Check != "workspace" || w.Fix == "" {
			r.t.Fatalf("why: %+v", w)
		}
		r.launch(b)
		r.exit(b, 0)
		synctest.Wait()
		if run := r.run(r.card(waits).Run); run == nil || run.Node != b.Node {
			r.t.Fatalf("the folder is free on %s, and it waits: %+v", b.Node, r.card(waits).Waits)
		}
		if d := time.Since(r.began); d != 0 || r.count(board.VStart) != 4 {
			r.t.Fatalf("it took %s and %d requests for four starts", d, r.count(board.VStart))
		}
	})
}

// WSP-02: cards that come together share no folder either, and a person's start is placed alike, by force as well.
func TestPlanGivesAFolderOnce(t *testing.T) {
	r := newRig(t, folders, "atlas", "borea")
	first, second, third := r.add("here"), r.add("here"), r.add("here")
	list, waits := Plan(r.input())
	if len(list) != 2 || list[0].Node == list[1].Node || len(waits) != 1 || waits[0].Card != third || waits[0].Check != "workspace" {
		t.Fatalf("started %s, waits %+v", starts(list), waits)
	}
	dir := "dir:/srv/another"
	other := r.add("here", func(a *board.CardAdd) { a.Workspace = &dir })
	if d := DryRun(r.input(), "", true); len(d.Would) != 3 || d.Would[2].Card != other || len(d.Waiting) != 1 || d.Waiting[0].Card != third {
		t.Fatalf("another folder is held up: %+v", d)
	}
	r.must(board.Platform(), board.VStart, board.Start{Card: list[0].Card, Node: list[0].Node})
	for _, force := range []bool{false, true} {
		b, _ := json.Marshal(board.Start{Card: second, Force: force, Why: "x"})
		req := &board.Request{Actor: board.Actor{Kind: board.ActorPerson, Name: "ann", Node: "n-atlas"}, Verb: board.VStart, Args: b}
		if err := Prepare(r.v, r.ws, r.state, r.now(), req); err != nil || req.Place == r.run(r.card(first).Run).Node {
			t.Fatalf("force %v: placed on %q: %v", force, req.Place, err)
		}
	}
}

// WSP-02: of a profile that may stand in for another the folder counts as well.
func TestAStandInHasAFolderToo(t *testing.T) {
	inBubble(t, folders, []string{"atlas"}, func(r *rig) {
		r.meet(r.add("limited"), time.Hour)
		holds := r.add("here")
		synctest.Wait()
		waits := r.add("limited")
		synctest.Wait()
		if c := r.card(waits); c.Run != "" || c.Waits.Check != "cooldown" || !strings.Contains(c.Waits.Text, "here could stand in: its folder /srv/app") {
			r.t.Fatalf("%+v", c.Waits)
		}
		run := r.run(r.card(holds).Run)
		r.launch(run)
		r.exit(run, 0)
		synctest.Wait()
		if now := r.run(r.card(waits).Run); now == nil || now.Profile != "here" {
			r.t.Fatalf("the folder is free: %+v", r.card(waits).Waits)
		}
	})
}

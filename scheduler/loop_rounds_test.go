package scheduler

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"muster/board"
)

// Goal P7: a card that is filed makes the loop look at that card, not at its board.
func TestLoopExaminesWhatIsFiled(t *testing.T) {
	inBubble(t, shell, []string{"atlas"}, func(r *rig) {
		for range 100 {
			r.add("sh")
		}
		synctest.Wait()
		was := r.loop.Examined()
		r.add("sh")
		synctest.Wait()
		if n := r.loop.Examined() - was; n > 4 {
			r.t.Fatalf("one card was filed and %d were examined", n)
		}
	})
}

// MEM-05, MEM-06, invariant 21: a dry run is the next real round: cards, machines
// and order; and it changes nothing.
func TestDryRunIsTheRound(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		kinds := rapid.SliceOfN(rapid.IntRange(0, 3), 1, 12).Draw(rt, "profiles")
		var wrong string
		synctest.Test(t, func(t *testing.T) {
			r := newRig(t, shell, "atlas", "borea")
			for i, k := range kinds {
				r.add([]string{"sh", "two", "east", "none"}[k], priority(int64(i%3)))
			}
			before := r.v.Seq()
			plan, _ := Plan(r.input())
			if r.v.Seq() != before {
				t.Fatal("a dry run has written")
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer func() { cancel(); synctest.Wait() }()
			r.lead(ctx)
			var want, got []string
			for _, s := range plan {
				want = append(want, s.Card+" on "+s.Node+" by "+s.Profile)
				if s.Status != "ready" || s.Target != "running" || s.Role != "implementer" || s.Surface != "headless" {
					t.Fatalf("a row of the dry run says %+v", s)
				}
			}
			for _, x := range r.loop.Rounds(50) {
				for _, s := range x.Started {
					got = append(got, s.Card+" on "+s.Machine+" by "+s.Profile)
				}
			}
			if !slices.Equal(want, got) {
				wrong = fmt.Sprintf("planned %v, started %v", want, got)
			}
		})
		if wrong != "" {
			rt.Fatal(wrong)
		}
	})
}

// Goal P7: a round examines what changed, not what is there.
func TestLoopExaminesWhatChanged(t *testing.T) {
	look := func(waiting int) (n uint64) {
		inBubble(t, shell, []string{"atlas"}, func(r *rig) {
			for range waiting {
				r.add("sh")
			}
			synctest.Wait()
			run := r.current()[0]
			r.launch(run)
			synctest.Wait()
			was := r.loop.Examined()
			r.exit(run, 0)
			synctest.Wait()
			n = r.loop.Examined() - was
		})
		return n
	}
	few, many := look(10), look(300)
	if many > few {
		t.Fatalf("one ended session made the loop examine %d cards of 300, %d of 10", many, few)
	}
}

// TCK-04, TCK-07, TCK-10, DSP-13: what a round decided can be read afterwards, with the time of each phase; reasons are written after the starts.
func TestLoopReportsRounds(t *testing.T) {
	inBubble(t, shell, []string{"atlas"}, func(r *rig) {
		a := r.add("sh")
		r.add("sh")
		waits := r.add("sh")
		synctest.Wait()
		var started, queued []string
		for _, x := range r.loop.Rounds(50) {
			for _, s := range x.Started {
				if s.Run == "" || s.Machine != "n-atlas" || s.Profile != "sh" {
					r.t.Fatalf("a start is reported as %+v", s)
				}
				started = append(started, s.Card)
			}
			for _, q := range x.Queued {
				queued = append(queued, q.Card+" "+q.Check)
			}
			if len(x.MS) != 4 {
				r.t.Fatalf("phases %v, want observe, plan, start, reasons", x.MS)
			}
		}
		if len(started) != 2 || started[0] != a || !slices.Contains(queued, waits+" cap") {
			r.t.Fatalf("started %v, queued %v", started, queued)
		}
		first, last := slices.Index(r.asked, board.VStart), slices.Index(r.asked, board.VReasons)
		if first < 0 || last < first {
			r.t.Fatalf("asked for %v: reasons before starts", r.asked)
		}
	})
}

// TCK-05, invariant 22: a board whose workflow cannot be used says so on its cards and holds up no other.
func TestPoisonedBoard(t *testing.T) {
	inBubble(t, shell, []string{"atlas"}, func(r *rig) {
		r.person(board.VBoardCreate, board.BoardCreate{Slug: "bad"})
		title := "x"
		bad := r.person(board.VCardAdd, board.CardAdd{Board: "bad", CardFields: board.CardFields{Title: &title}})["id"].(string)
		r.mu.Lock()
		doc := board.GetWorkflowDoc(r.v, "bad", 1)
		key := board.WorkflowKey("bad", 1)
		raw := bytes.Replace(r.v.Get(board.TWorkflow, key), []byte("extends:"), []byte("extendz:"), 1) // the saved file is damaged
		r.v.Apply(&board.Txn{Ops: []board.Op{{Table: board.TWorkflow, Key: key, Val: raw}}})
		r.mu.Unlock()
		good := r.add("sh")
		r.loop.Poke()
		synctest.Wait()
		if doc == nil || r.card(good).Run == "" {
			r.t.Fatalf("%s was held up: %+v", good, r.card(good).Waits)
		}
		r.person(board.VCardEdit, board.CardEdit{Card: bad})
		synctest.Wait()
		if w := r.card(bad).Waits; w.Check != "workflow" {
			r.t.Fatalf("%s waits for %+v, want its workflow", bad, w)
		}
	})
}

// Any number may be asked for.
func TestRoundsOfAnyNumber(t *testing.T) {
	l := New(Config{})
	for _, n := range []int{-1, 0, 1 << 40} {
		if got := l.Rounds(n); len(got) != 0 {
			t.Errorf("%d rounds of none", len(got))
		}
	}
}

// What holds the first of a line holds those behind it: when that changes they are told, tried or not.
func TestLoopTellsTheLine(t *testing.T) {
	inBubble(t, shell, []string{"atlas"}, func(r *rig) {
		r.person(board.VPause, board.Pause{Why: "upgrade"})
		var ids []string
		for range 6 {
			ids = append(ids, r.add("sh"))
		}
		checks := func(want string) {
			r.t.Helper()
			synctest.Wait()
			for _, id := range ids {
				if c := r.card(id); c.Run == "" && c.Waits.Check != want {
					r.t.Errorf("%s waits for %+v, want %s", id, c.Waits, want)
				}
			}
		}
		checks("pause")
		r.person(board.VResume, board.Pause{})
		checks("cap")
		r.person(board.VPause, board.Pause{Why: "again"})
		checks("pause")
		if n := len(r.current()); n != 2 {
			r.t.Fatalf("%d run, want 2", n)
		}
	})
}

// MEM-05: a dry run passes by the cards that the loop passes by, because the
// executor refused their starts, and says until when.
func TestDryRunKnowsWhatIsPutOff(t *testing.T) {
	inBubble(t, shell, []string{"atlas"}, func(r *rig) {
		r.mu.Lock()
		r.refuse = board.VStart
		r.mu.Unlock()
		id := r.add("sh")
		synctest.Wait()
		in := r.input()
		in.Later = r.loop.Later
		a := DryRun(in, "", true)
		if len(a.Would) != 0 || len(a.Waiting) != 1 || a.Waiting[0].WaitS != backoffFirst/1000 || !strings.Contains(a.Waiting[0].Text, "not now; it is tried again") {
			r.t.Fatalf("%+v", a)
		}
		if w, _ := Why(in, id, true); w.Values["wait_s"] != int64(backoffFirst/1000) || !strings.Contains(w.Text, "not now") {
			r.t.Fatalf("why: %+v", w)
		}
		r.mu.Lock()
		r.refuse = ""
		r.mu.Unlock()
		time.Sleep(backoffFirst * time.Millisecond)
		synctest.Wait()
		if r.card(id).Run == "" || r.loop.Later(id) != 0 {
			r.t.Fatalf("put off until %d; %+v", r.loop.Later(id), r.card(id).Waits)
		}
	})
}

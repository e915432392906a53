package launcher

import (
	"testing"
	"time"

	"muster/board"
)

// SES-21: a program that asks does so until its hooks say more; without hooks a pane is quiet for a while, or moves for
// a while, before that means something. So it is after a turn of a program that tells only how its turns end, and a
// turn that its user broke off ends, too.
func TestDoing(t *testing.T) {
	asks := turnState{Turn: board.TurnPermission, Says: "may I?"}
	busy, ends := turnState{Turn: board.TurnBusy}, turnState{Turn: board.TurnIdle, Ends: true}
	for _, c := range []struct {
		name string
		st   paneState
		m    moved
		turn string
		next time.Duration
	}{
		{"nothing is known", paneState{}, moved{moves: time.Hour}, "", 0},
		{"it asks", paneState{Shown: true, Quiet: true, Turn: asks}, moved{quiet: time.Second}, board.TurnPermission, 0},
		{"it asks, and its dialog blinks", paneState{Shown: true, Turn: asks}, moved{moves: time.Hour}, board.TurnPermission, 0},
		{"hooks say it is idle, its clock moves", paneState{Shown: true, Turn: turnState{Turn: board.TurnIdle}}, moved{moves: time.Hour}, board.TurnIdle, 0},
		{"hooks say it works, and it is still", paneState{Shown: true, Quiet: true, Turn: busy}, moved{quiet: stillAfter - time.Second}, board.TurnBusy, time.Second},
		{"hooks say it works, and it moves", paneState{Shown: true, Turn: busy}, moved{moves: time.Hour}, board.TurnBusy, 0},
		{"hooks say it works, and it was broken off", paneState{Shown: true, Quiet: true, Turn: busy}, moved{quiet: stillAfter}, board.TurnIdle, 0},
		{"it told an end", paneState{Shown: true, Turn: ends}, moved{moves: time.Hour, said: time.Second}, board.TurnIdle, busyAfter - time.Second},
		{"it told an end, and was quiet since", paneState{Shown: true, Quiet: true, Turn: ends}, moved{quiet: time.Hour, said: time.Hour + time.Second}, board.TurnIdle, 0},
		{"it moves after an end", paneState{Shown: true, Turn: ends}, moved{moves: time.Hour, said: busyAfter}, board.TurnBusy, 0},
		{"it begins to move after an end", paneState{Shown: true, Turn: ends}, moved{moves: time.Second, said: time.Hour}, "", busyAfter - time.Second},
		{"it moved after an end", paneState{Shown: true, Quiet: true, Turn: ends}, moved{quiet: time.Second, said: time.Hour}, "", idleAfter - time.Second},
		{"it moved after an end, and is quiet", paneState{Shown: true, Quiet: true, Turn: ends}, moved{quiet: idleAfter, said: time.Hour}, board.TurnIdle, 0},
		{"its node typed after an end", paneState{Shown: true, Turn: ends}, moved{moves: time.Second, said: 2 * time.Second, typed: true}, board.TurnBusy, 0},
		{"its node typed, and nothing comes of it", paneState{Shown: true, Quiet: true, Turn: ends}, moved{quiet: idleAfter, said: time.Hour, typed: true}, board.TurnIdle, 0},
		{"quiet for a moment", paneState{Shown: true, Quiet: true}, moved{quiet: 2 * time.Second}, "", idleAfter - 2*time.Second},
		{"quiet", paneState{Quiet: true}, moved{quiet: idleAfter}, board.TurnIdle, 0},
		{"a line", paneState{Shown: true}, moved{moves: time.Second}, "", busyAfter - time.Second},
		{"it moves", paneState{Shown: true}, moved{moves: busyAfter}, board.TurnBusy, 0},
	} {
		turn, says, _, next := c.st.doing(c.m)
		if turn != c.turn || next != c.next || (says != "") != (turn == board.TurnPermission) {
			t.Errorf("%s: %q (%q), again in %v; want %q, %v", c.name, turn, says, next, c.turn, c.next)
		}
	}
}

// SES-21: a program that its pane calls idle may be one that asks: also after it has told an end, but for what it shows
// with that end.
func TestIdleByItsPane(t *testing.T) {
	ends := turnState{Turn: board.TurnIdle, Ends: true}
	for _, c := range []struct {
		name string
		turn turnState
		m    moved
		want bool
	}{
		{"no hooks", turnState{}, moved{quiet: idleAfter}, true},
		{"hooks say so", turnState{Turn: board.TurnIdle}, moved{quiet: time.Hour, said: time.Hour}, false},
		{"it told an end, and was quiet since", ends, moved{quiet: time.Hour, said: time.Hour + time.Second}, false},
		{"it moved after an end", ends, moved{quiet: idleAfter, said: time.Hour}, true},
		{"its node typed after an end", ends, moved{quiet: time.Hour, said: time.Hour + time.Second, typed: true}, true},
	} {
		if got := c.m.byPane(&c.turn); got != c.want {
			t.Errorf("%s: %v", c.name, got)
		}
	}
}

// SES-21: each end of a turn counts, of a program that tells nothing else; hooks that tell more are heard as such.
func TestEndsOnly(t *testing.T) {
	end, ok := turnOf([]byte(`{"type":"agent-turn-complete"}`))
	st := turnState{}.after(&end, 1)
	st = st.after(&end, 5)
	if !ok || !st.Ends || st.At != 5 {
		t.Errorf("%+v", st)
	}
	if st = st.after(&turnState{Turn: board.TurnBusy}, 9); st.Ends || st.At != 9 {
		t.Errorf("%+v", st)
	}
}

// SES-21: a question that its user broke off, which no hook tells, ends when the pane is quiet and waits for text; one
// that stands there does not.
func TestQuestionBrokenOff(t *testing.T) {
	for _, takes := range []bool{true, false} {
		n := &run{spec: &Spec{}, looked: 3, takes: takes}
		r := &Reconciler{}
		st := paneState{News: 3, Shown: true, Quiet: true, Turn: turnState{Turn: board.TurnPermission, Says: "may I?", At: 7}}
		ask := func(quiet time.Duration) string {
			x := st
			if !r.asksNoMore(n, &x, quiet) {
				t.Fatal("it is looked at")
			}
			return x.Turn.Turn
		}
		if got := ask(stillAfter - time.Second); got != board.TurnPermission {
			t.Errorf("soon: %s", got)
		}
		want := board.TurnPermission
		if takes {
			want = board.TurnIdle
		}
		if got := ask(stillAfter); got != want {
			t.Errorf("its screen takes text: %v; it is %q, want %q", takes, got, want)
		}
		st.News, st.Quiet = 4, false
		if got := ask(0); got != want {
			t.Errorf("it moves; it is %q, want %q", got, want)
		}
		st.Turn.Says = "and this?"
		if got := ask(0); got != board.TurnPermission {
			t.Errorf("it asks anew, and is %q", got)
		}
	}
}

// SES-21: the end of a limit that moves is news.
func TestMovedEndOfALimit(t *testing.T) {
	if turnKey(board.TurnLimit, "resets soon", 1) == turnKey(board.TurnLimit, "resets soon", 2) {
		t.Error("it would not be told")
	}
}

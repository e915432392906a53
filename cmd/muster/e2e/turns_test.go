package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/launcher"
)

// oneTurn allows one turn in the fleet, whoever's session it is.
const oneTurn = paneBoard + `
dispatch:
  capacity:
    - {description: one turn at a time, counts: turns, scope: fleet, max: 1}
`

// says is a script that waits for a file, then says what a program's hook says.
func says(file, hook string) string {
	return fmt.Sprintf("until [ -e %s ]; do sleep 0.05; done; printf '%%s' '{\"hook_event_name\":%q}' | %s %s\n", file, hook, binary, launcher.NoteVerb)
}

// SES-21, CAP-02: a cap on turns counts what sessions tell of their turns: a second session starts when the first is
// idle, and a third waits for both, on whatever machine they are.
func TestTurnsAreHeldByTheFleet(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux here")
	}
	f := newFleet(t, 2, 4)
	a, b := f.machines[0], f.machines[1]
	f.do(a, board.VBoardApply, board.BoardApply{Board: "default", YAML: oneTurn})
	at := filepath.Join(f.dir, "at")
	pane := func(name string) func(*board.CardAdd) {
		return func(c *board.CardAdd) { c.Assignee, c.Machine = new(string), &name; *c.Assignee = "pane" }
	}
	_, first := f.pane(a, b, says(at+"1", "Stop")+says(at+"2", "UserPromptSubmit")+says(at+"3", "Stop")+"exec sleep 1000")
	second := f.add(a, "second", says(at+"4", "Stop")+"exec sleep 1000", pane(a.name))
	full := func(card, when, count string) {
		t.Helper()
		f.eventually(30*time.Second, when, func() (bool, string) {
			why := f.whyNot(a, card)
			return strings.Contains(why, `"check":"cap"`) && strings.Contains(why, count+" turns; cap: one turn at a time"), why
		})
	}
	let := func(n int) {
		if err := os.WriteFile(fmt.Sprint(at, n), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	full(second, "a second waits while "+first+" is in a turn", "1 of 1")
	let(1)
	f.await(a, "running", second)
	third := f.add(a, "third", "exec sleep 1000", pane(b.name))
	let(2) // the first works again, of itself: nobody is stopped for it, and nobody else starts
	full(third, "a third waits for two turns", "2 of 1")
	let(4)
	full(third, "a third waits while "+first+" is in a turn again", "1 of 1")
	let(3)
	f.await(a, "running", third)
}

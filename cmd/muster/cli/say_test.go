package cli

import (
	"strings"
	"testing"

	"muster/board"
	"muster/board/workflow"
)

// WFL-08: the commands that refusals name are there: each event of the default workflow that people say has a verb
// with that form, and what has none of its own is said with `muster event`.
func TestCommandsOfRefusalsAreThere(t *testing.T) {
	w := newWorld(t, story())
	def := workflow.Default()
	events := map[string]bool{}
	for e := range def.On {
		events[e] = true
	}
	for _, s := range def.Statuses {
		for e := range s.On {
			events[e] = true
		}
	}
	for e := range events {
		if board.FleetEvent(e) || e == "heartbeat" || e == "promote" || strings.HasPrefix(e, "hook_") {
			continue
		}
		form := strings.Fields(board.Command(e, "d-1"))
		use := w.ok(form[1], "--help")
		if form[1] == "event" {
			t.Errorf("%s has no verb of its own", e)
			continue
		}
		for _, word := range form[2:] {
			if strings.HasPrefix(word, "--") && !strings.Contains(use, word) {
				t.Errorf("muster %s has no %s:\n%s", form[1], word, use)
			}
		}
		if !strings.Contains(use, "muster "+form[1]+" CARD") {
			t.Errorf("%q is not how muster %s is used:\n%s", strings.Join(form, " "), form[1], use)
		}
	}
}

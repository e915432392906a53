package cli

import (
	"strings"
	"testing"
	"time"

	"muster/cmd/muster/api"
)

// The newest open pane of a card is shown, on the machine that has it; else the
// answer says where it is, or that there is none.
func TestOpenPane(t *testing.T) {
	at := &time.Time{}
	pane := func(id, node, slot, gone string) api.Run {
		return api.Run{ID: id, Node: node, Slot: slot, Surface: "pane", Gone: gone, Launched: at}
	}
	runs := []api.Run{
		pane("d-1.1", "atlas", "worker", "report"), pane("d-1.2", "atlas", "worker", ""), pane("d-1.3", "borg", "reviewer", ""),
		{ID: "d-1.4", Node: "atlas", Slot: "worker", Surface: "headless", Launched: at}, {ID: "d-1.5", Node: "atlas", Slot: "worker", Surface: "pane"},
	}
	for _, c := range []struct{ slot, node, want, err string }{
		{"worker", "atlas", "d-1.2", ""},
		{"", "borg", "d-1.3", ""},
		{"", "atlas", "", "on borg"},
		{"worker", "borg", "", "on atlas"},
		{"tester", "atlas", "", "no open pane of slot tester"},
	} {
		got, err := openPane("d-1", c.slot, runs, api.Info{ID: "n-1", Name: c.node})
		if got != c.want || (err == nil) != (c.err == "") || err != nil && !strings.Contains(err.Error(), c.err) {
			t.Errorf("slot %q on %s: %q, %v; want %q, %q", c.slot, c.node, got, err, c.want, c.err)
		}
	}
	if _, err := openPane("d-1", "", runs[:1], api.Info{Name: "atlas"}); err == nil || !strings.Contains(err.Error(), "no open pane") {
		t.Errorf("of a pane that is gone: %v", err)
	}
}

// attach is for people at a terminal; it has no JSON.
func TestAttachIsForTerminals(t *testing.T) {
	w := newWorld(t, story())
	for _, c := range []struct {
		code int
		want string
		args []string
	}{
		{1, "attach needs a terminal", []string{"attach", "d-1"}},
		{2, "it has no --json", []string{"attach", "d-1", "--json"}},
	} {
		out, err, code := w.run(c.args...)
		if code != c.code || !strings.Contains(out+err, c.want) {
			t.Errorf("%q: exit %d, %q; want %d, %q", c.args, code, out+err, c.code, c.want)
		}
	}
	w.terminal = true
	if _, err, code := w.run("attach", "d-1"); code != 1 || !strings.Contains(err, "d-1 has no open pane") {
		t.Errorf("of a headless card: exit %d, %q", code, err)
	}
}

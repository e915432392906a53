package cli

import (
	"strings"
	"testing"
)

// MEM-05, MEM-06, M-31: a dry run shows what would start, where, as what, and what waits for what; it is the next
// start's truth, it changes nothing, and without a leader it says that it had no live readings.
func TestDryRun(t *testing.T) {
	w := newWorld(t, story())
	before := w.ok("status", "--json")
	var all strings.Builder
	step := func(args ...string) { all.WriteString(w.transcript(args...)) }
	step("dispatch", "--dry-run")
	step("dispatch", "--dry-run", "--board", "web")
	step("dispatch", "--dry-run", "-q")
	step("dispatch", "--dry-run", "--json")
	if after := w.ok("status", "--json"); after != before {
		t.Errorf("a dry run has changed the state:\n%s\n%s", before, after)
	}
	w.ok("pause", "--board", "web", "--why", "freeze")
	step("dispatch", "--dry-run")
	w.ok("node", "drain", "atlas")
	step("dispatch", "--dry-run")
	w.ok("node", "undrain", "atlas")
	w.f.NoLeader = true
	step("dispatch", "--dry-run")
	golden(t, "dryrun.txt", all.String())
}

package cli

import (
	"strings"
	"testing"

	"muster/cmd/muster/api/apitest"
)

// M-16: a pause of the fleet, of a board, and a drain, as they are said, seen and ended; what is ended twice or said
// twice is no failure.
func TestPausesAndDrains(t *testing.T) {
	w := newWorld(t, story())
	var all strings.Builder
	step := func(args ...string) { all.WriteString(w.transcript(args...)) }
	step("pause", "--why", "the network is rebuilt")
	step("pause", "--why", "the network is rebuilt")
	step("pause", "--board", "web", "--why", "freeze", "-q")
	step("start", "d-5")
	step("node", "drain", "atlas", "--why", "new memory")
	w.f.Pass(3 * 60e9)
	step("status")
	step("status", "--json")
	step("node", "show", "atlas")
	step("node", "list", "--json")
	step("board", "show", "web")
	step("why", "d-5")
	step("start", "d-5", "--force", "--why", "a drain is never passed")
	step("resume")
	step("resume")
	step("resume", "--board", "web", "--json")
	step("node", "undrain", "atlas")
	step("node", "undrain", "atlas", "--json")
	for _, kind := range []string{"paused", "resumed", "node_draining", "node_undrained"} {
		step("events", "--since", "0", "--kind", kind)
	}
	step("status")
	golden(t, "pauses.txt", all.String())
}

// M-16: a machine that is drained finishes what it runs: the wait for that ends with the last session, with the time,
// or with the drain; --end-sessions takes the runs away.
func TestDrainWaits(t *testing.T) {
	w := newWorld(t, story())
	if _, err, code := w.run("node", "drain", "atlas", "--wait", "--timeout", "100ms"); code != ExitFailed || !strings.Contains(err, "atlas has 1 session(s) after 100ms; it goes on draining") {
		t.Errorf("in vain: exit %d: %s", code, err)
	}
	c := w.start("node", "drain", "atlas", "--wait")
	c.err.await(t, "1 session(s) are left on atlas")
	w.ok("node", "undrain", "atlas")
	if code := c.end(t); code != ExitFailed || !strings.Contains(c.err.String(), "somebody has let atlas take cards again") {
		t.Errorf("undrained: exit %d: %s", code, c.err)
	}
	w.ok("card", "edit", "d-2", "--max-runtime", "1h") // an event that is no end
	c = w.start("node", "drain", "atlas", "--wait")
	c.err.await(t, "1 session(s) are left on atlas")
	w.f.Exit("d-2.1", 0)
	if code := c.end(t); code != ExitOK || !strings.Contains(c.out.String(), "atlas takes nothing new, and has no session") {
		t.Errorf("over: exit %d: %s%s", code, c.out, c.err)
	}
	if out := w.ok("node", "drain", "atlas", "--wait", "--json"); !strings.Contains(out, `"data":{"node":"`+apitest.Node+`","sessions":0}`) {
		t.Errorf("an empty machine: %s", out)
	}

	w = newWorld(t, story())
	if out := w.ok("node", "drain", "atlas", "--end-sessions"); !strings.Contains(out, "1 session(s) there are told to end") {
		t.Errorf("got %s", out)
	}
	if out := w.ok("status"); !strings.Contains(out, "stopping") {
		t.Errorf("its session goes on: %s", out)
	}
	if out := w.ok("card", "show", "d-2", "--json"); !strings.Contains(out, `"run":null`) {
		t.Errorf("its run goes on: %s", out)
	}
}

// cli.md: verbs that people say seldom show in their help how they are said.
func TestHelpHasExamples(t *testing.T) {
	w := newWorld(t, apitest.New())
	for _, v := range []string{"pause", "resume", "node drain", "node undrain", "dispatch", "forget"} {
		if out := w.ok(append(strings.Fields(v), "--help")...); !strings.Contains(out, "Examples:\n  muster "+v) {
			t.Errorf("muster %s --help: %s", v, out)
		}
	}
}

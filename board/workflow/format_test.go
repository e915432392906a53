package workflow

import (
	"os"
	"reflect"
	"slices"
	"testing"
)

// The format's own example, as people read it in the guide, loads whole and means what it says.
func TestFormatExample(t *testing.T) {
	src, err := os.ReadFile("testdata/format/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	w := load(t, string(src))
	for _, f := range Lint(w) {
		t.Error(f)
	}
	running := w.Statuses["running"]
	if running.Run.Limits.Lease.Source() != "machine.always_on ? 600 : nil" || running.Run.Resume.Source() != "New since then: {{ news }}" {
		t.Errorf("run: %+v", running.Run)
	}
	if got := len(running.On["exited"]); got != 4 {
		t.Errorf("exited has %d transitions", got)
	}
	caps := w.Dispatch.Capacity
	if len(caps) != 4 || !caps[2].Where.Dispatched() || caps[2].Reserve.Slots.Source() != "1" || caps[3].Unless[0].Any[0] != CommandHarness {
		t.Errorf("capacity: %+v", caps)
	}
	claude := w.Profile("claude")
	if *claude.Capacity != 4 || !reflect.DeepEqual(claude.Workspace, Workspace{Kind: "worktree", Repo: "app", Setup: "./scripts/setup.sh", Push: "origin"}) || !slices.Equal(claude.Fallback, []string{"codex"}) {
		t.Errorf("claude: %+v", claude)
	}
	if tests := w.Profile("tests"); tests.Verdict != "exit" || len(tests.Args) != 3 {
		t.Errorf("tests: %+v", tests)
	}
	if w.Migrate["drafting"] != "running" || w.Breaker.Kind != "capability" || w.Hooks["merge"].Env["BASE"].Text.Source() != "main" {
		t.Error("migrate, breaker or hooks are lost")
	}
}

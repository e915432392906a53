package cli

import (
	"strings"
	"testing"
	"time"
)

// TestCompletionKnowsWhatIsThere: ids, names and statuses come from the node; what a word stands for is read from the
// verb's line of use.
func TestCompletionKnowsWhatIsThere(t *testing.T) {
	w := newWorld(t, story())
	for _, x := range []struct{ line, want, not string }{
		{"card show |", "d-1\tdone: count to five", "true"},
		{"card show d-|", "d-5", "w-1"},
		{"--board web card show |", "w-1", "d-1"},
		{"why |", "d-3", ""},
		{"wait d-1 |", "d-2", "d-1\t"},
		{"wait d-1 --until |", "reviewing", ""},
		{"wait d-1 --until done,|", "done,review", ""},
		{"card list --status |", "specifying", ""},
		{"card link d-3 --after |", "d-2", ""},
		{"card edit d-3 --assignee |", "script", ""},
		{"reassign d-3 |", "script", "d-3"},
		{"card add x --machine |", "atlas\tvoter, online", ""},
		{"node show |", "atlas", ""},
		{"node set atlas |", "local=viewer", ""},
		{"board show |", "web\tThe web", ""},
		{"board create |", "", "web"},
		{"board set web |", "params.review=", ""},
		{"--board |", "web", ""},
		{"event d-1 |", "request_review", "exited"},
		{"events --kind |", "session_gone", ""},
		{"events --card |", "d-4", ""},
		{"block d-3 text --kind |", "capability", "created"},
		{"comment d-3 |", "", "d-1"},
		{"token create --role |", "viewer", ""},
		{"token revoke |", "", "d-1"},
	} {
		args := strings.Split("__complete "+x.line, " ")
		args[len(args)-1] = strings.TrimSuffix(args[len(args)-1], "|")
		out := w.ok(args...)
		list, directive, _ := strings.Cut("\n"+out, "\n:")
		if !strings.Contains(list, x.want) || x.not != "" && strings.Contains(list, x.not) || directive == "" || strings.HasPrefix(directive, "0") {
			t.Errorf("%s: want %q, not %q:\n%s", x.line, x.want, x.not, out)
		}
	}
	if out := w.ok("__complete", "workflow", "lint", ""); !strings.HasSuffix(strings.TrimSpace(out), ":0") {
		t.Errorf("a file is not completed by the shell: %s", out)
	}
}

// TestCompletionWithoutANode: a shell is told nothing, soon, and no error.
func TestCompletionWithoutANode(t *testing.T) {
	w := newWorld(t, story())
	w.down()
	begun := time.Now()
	if out, _, code := w.run("__complete", "card", "show", ""); code != 0 || strings.Contains(out, "d-1") || time.Since(begun) > 10*time.Second {
		t.Errorf("exit %d after %s: %s", code, time.Since(begun), out)
	}
}

package cli

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/cmd/muster/api/apitest"
)

// offline is a folder and surroundings without any node.
func offline(t *testing.T) *world {
	t.Helper()
	return &world{t: t, f: apitest.New(), dir: t.TempDir(), env: map[string]string{"HOME": t.TempDir()}, deps: Deps{Version: "v0-test"}}
}

func (w *world) write(name, text string) string {
	w.t.Helper()
	path := filepath.Join(w.dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	return path
}

const soloFlow = `
version: 1
name: solo
extends: default
params: {review: false}
statuses:
  ready: {on: {shelve: [{by: [manager], target: todo}]}}
`

const soloStory = `
- name: done is done
  cards: [{id: a, status: running, run: {source: ready, profile: claude}}]
  steps:
    - {event: complete, card: a, by: implementer, then: {status: done}}
`

// Issue 3, item 5: workflow test plays the scenarios beside a workflow, without a node; exit code 1 when one fails.
func TestWorkflowTest(t *testing.T) {
	w := offline(t)
	if out := w.ok("workflow", "test"); !strings.Contains(out, "ok     a crash is tried once more") || !strings.Contains(out, ", 0 failed\n") {
		t.Errorf("the default workflow: %s", out)
	}
	flow := w.write("solo.yaml", soloFlow)
	if _, err, code := w.run("workflow", "test", flow); code != 1 || !strings.Contains(err, "there are no scenarios "+filepath.Join(w.dir, "solo.scenarios.yaml")) {
		t.Errorf("without scenarios: exit %d: %s", code, err)
	}
	w.write("solo.scenarios.yaml", soloStory)
	if out := w.ok("workflow", "test", flow); out != "ok     done is done\n1 scenario(s), 0 failed\n" {
		t.Errorf("beside: %q", out)
	}
	out := w.ok("workflow", "test", flow, "--coverage")
	if !strings.Contains(out, "not taken  statuses.ready.on.shelve[0]") || !strings.Contains(out, "0 of 1 transitions taken\nand 1 of 51 that it inherits (--all)\n") {
		t.Errorf("coverage: %s", out)
	}
	if out := w.ok("workflow", "test", flow, "--coverage", "--all"); !strings.Contains(out, "taken   1  statuses.running.on.complete[0]    default line ") || !strings.Contains(out, "1 of 52 transitions taken\n") {
		t.Errorf("coverage of all: %s", out)
	}
	bad := w.write("bad.yaml", strings.Replace(soloStory, "{status: done}", "{status: review}", 1))
	out, _, code := w.run("workflow", "test", flow, "--scenarios", bad)
	if code != 1 || !strings.Contains(out, "failed done is done ("+bad+":2)") || !strings.Contains(out, bad+":5:66: step 1: status: want \"review\", got \"done\"") {
		t.Errorf("a scenario that fails: exit %d: %s", code, out)
	}
	out, _, code = w.run("workflow", "test", flow, "--scenarios", bad, "--json", "--coverage")
	var answer struct {
		Data struct {
			OK          bool
			Scenarios   []played
			Transitions []covered
		}
	}
	if err := json.Unmarshal([]byte(out), &answer); err != nil || code != 1 || answer.Data.OK || len(answer.Data.Scenarios) != 1 || len(answer.Data.Scenarios[0].Failures) != 1 || len(answer.Data.Transitions) != 1 {
		t.Errorf("as JSON: exit %d, %v: %s", code, err, out)
	}
}

// What cannot be played is told with its place, and nothing is.
func TestWorkflowTestMistakes(t *testing.T) {
	w := offline(t)
	broken := w.write("broken.yaml", "version: 1\nname: x\nextends: default\nstatusses: {}\n")
	if out, err, code := w.run("workflow", "test", broken); code != 1 || out != "" || !strings.Contains(err, broken+":4:1: error: statusses: unknown key") {
		t.Errorf("a broken workflow: exit %d: %s%s", code, out, err)
	}
	flow := w.write("solo.yaml", soloFlow)
	story := w.write("story.yaml", strings.Replace(soloStory, "then:", "than:", 1))
	if out, err, code := w.run("workflow", "test", flow, "--scenarios", story); code != 1 || out != "" || !strings.Contains(err, story+":5:51: error: [0].steps[0]: unknown key \"than\"; did you mean then?") {
		t.Errorf("a broken story: exit %d: %s%s", code, out, err)
	}
}

// Issue 3, item 5: workflow graph draws without a node, as a picture or as Mermaid's text, to a file or to the output.
func TestWorkflowGraph(t *testing.T) {
	w := offline(t)
	if out := w.ok("workflow", "graph"); !strings.HasPrefix(out, "<svg ") || !strings.Contains(out, `aria-label="Workflow default"`) {
		t.Errorf("the default workflow: %.200s", out)
	}
	flow := w.write("solo.yaml", soloFlow)
	if out := w.ok("workflow", "graph", flow, "--format", "mermaid"); !strings.HasPrefix(out, "stateDiagram-v2\n") || !strings.Contains(out, "s_ready --> s_todo: shelve\n") {
		t.Errorf("as mermaid: %s", out)
	}
	file := filepath.Join(w.dir, "solo.svg")
	w.ok("workflow", "graph", flow, "-o", file)
	if b, err := os.ReadFile(file); err != nil || !strings.HasPrefix(string(b), "<svg ") {
		t.Errorf("to a file: %v %.50s", err, b)
	}
	if _, err, code := w.run("workflow", "graph", "--format", "png"); code != 2 || !strings.Contains(err, "use svg or mermaid") {
		t.Errorf("an unknown format: exit %d: %s", code, err)
	}
	if out, err, code := w.run("workflow", "graph", w.write("bad.yaml", "version: 1")); code != 1 || out != "" || !strings.Contains(err, "bad.yaml:1:1: error") {
		t.Errorf("a broken workflow: exit %d: %s%s", code, out, err)
	}
}

// M-22: apply --dry-run prints the migrate lines to add and changes nothing; with them it is taken. A file with an
// error of the linter is not sent. A card is put anywhere by hand.
func TestApplyMigrateLines(t *testing.T) {
	w := newWorld(t, apitest.New())
	flow := "version: 1\nname: x\ninitial: idea\nstatuses:\n  idea: {stored_as: todo, on: {start: [{target: done}]}}\n  done: {stored_as: done}\n"
	w.ok("board", "create", "x", "-f", w.write("x.yaml", flow))
	w.ok("card", "add", "one", "--board", "x")
	next := strings.ReplaceAll(flow, "idea", "plan")
	_, err, code := w.run("board", "apply", "x", "--dry-run", "-f", w.write("next.yaml", next))
	if code != 1 || !strings.Contains(err, "status idea (x-1)") || !strings.Contains(err, "\nmigrate:\n  idea: plan   # a status without a run") {
		t.Fatalf("dry run: exit %d: %s", code, err)
	}
	if out := w.ok("board", "apply", "x", "-f", w.write("mapped.yaml", next+"migrate: {idea: plan}\n")); !strings.Contains(out, "version 2; 1 card(s) moved") {
		t.Errorf("with the line: %s", out)
	}
	bad := strings.Replace(flow, "start: [{target: done}]", "start: [{target: done, do: [{claim: {role: platform}}]}]", 1)
	if _, err, code := w.run("board", "apply", "x", "-f", w.write("bad.yaml", bad)); code != 1 || !strings.Contains(err, "bad.yaml:5:") || !strings.Contains(err, "which has no run") {
		t.Errorf("an error of the linter: exit %d: %s", code, err)
	}
	if out := w.ok("card", "put", "x-1", "done", "--why", "it is"); out != "x-1: plan, now done\n" {
		t.Errorf("put: %q", out)
	}
	if _, err, code := w.run("card", "put", "x-1", "done"); code != 2 || !strings.Contains(err, "--why") {
		t.Errorf("put without a reason: exit %d: %s", code, err)
	}
}

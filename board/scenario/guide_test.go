package scenario

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/board/workflow"
)

// The five workflows of the guide (issue 3): each loads without a finding of its own but what comes later, does what
// its stories say, and has every transition of its own taken by one of them.
func TestGuideWorkflows(t *testing.T) {
	const guide = "../../docs/workflows/"
	text, err := os.ReadFile("../../docs/workflows.md")
	if err != nil {
		t.Fatal(err)
	}
	names := []string{"documentation", "nightly", "release-train", "solo", "two-reviewers"}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			src, err := os.ReadFile(guide + name + ".yaml")
			if err != nil {
				t.Fatal(err)
			}
			p := player(t, string(src))
			for _, f := range workflow.Lint(p.Workflow) {
				if f.File == "" || f.Severity == workflow.Error {
					t.Errorf("lint: %v", f)
				}
			}
			stories, err := os.ReadFile(guide + name + ".scenarios.yaml")
			if err != nil {
				t.Fatal(err)
			}
			for _, s := range load(t, string(stories)) {
				for _, f := range p.Play(s).Failures {
					t.Errorf("%s: %s", s.Name, f)
				}
			}
			for _, l := range p.Coverage() {
				if l.File == "" && l.Taken == 0 {
					t.Errorf("no story takes %s (line %d): %s", l.Path, l.Line, l.Says)
				}
			}
			if !strings.Contains(string(text), "workflows/"+name+".yaml") {
				t.Error("the guide does not name it")
			}
		})
	}
	files, err := filepath.Glob(guide + "*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		base := strings.TrimSuffix(strings.TrimSuffix(filepath.Base(f), ".yaml"), ".scenarios")
		if !slices.Contains(names, base) {
			t.Errorf("%s is no workflow of the guide", f)
		}
	}
}

// What the guide shows is true: every block of YAML in it that is a workflow loads, every one that is a story plays.
func TestGuideBlocks(t *testing.T) {
	text, err := os.ReadFile("../../docs/workflows.md")
	if err != nil {
		t.Fatal(err)
	}
	places, err := os.ReadFile("../../docs/workspaces.md")
	if err != nil {
		t.Fatal(err)
	}
	text = append(text, places...)
	blocks := 0
	for i, part := range strings.Split(string(text), "```yaml\n") {
		block, _, ok := strings.Cut(part, "```")
		if i == 0 || !ok {
			continue
		}
		blocks++
		if strings.HasPrefix(block, "- name:") {
			for _, f := range failures(t, block) {
				t.Errorf("story %d: %s", i, f)
			}
			continue
		}
		if w, report := workflow.Load([]byte(block), nil); w == nil {
			t.Errorf("block %d: %v\n%s", i, report, block)
		}
	}
	if blocks < 3 {
		t.Errorf("the guide shows %d blocks", blocks)
	}
}

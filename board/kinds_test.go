package board

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"muster/board/workflow"
)

// A kind of event that is written somewhere is one that people may ask for (`muster events --kind`): every kind named
// in this package's code stands in the list.
func TestEventKindsAreListed(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil {
		t.Fatal(err)
	}
	known := EventKinds(workflow.Default())
	written := regexp.MustCompile(`(?:Event\{(?:[^}"]|"[^"]*":)*?Kind: |runEvent\(\w+, |relink\()"([a-z_]+)"`)
	found := 0
	for _, f := range files {
		if strings.HasSuffix(f, "_test.go") {
			continue
		}
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range written.FindAllStringSubmatch(string(src), -1) {
			found++
			if kind := m[1]; kind != "node_" && !slices.Contains(known, kind) {
				t.Errorf("%s writes events of the kind %q: add it to `recorded` in kinds.go", f, kind)
			}
		}
	}
	if found < 20 {
		t.Errorf("only %d places that write events were found: the search is broken", found)
	}
	for _, want := range []string{"complete", "exited", "decision_asked", "unblock", "node_offline"} {
		if !slices.Contains(known, want) {
			t.Errorf("%q is not among the kinds", want)
		}
	}
}

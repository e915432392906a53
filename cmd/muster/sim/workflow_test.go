package sim

import (
	"math/rand/v2"
	"testing"

	"muster/board/workflow"
)

// The versions of both boards are whole: what a user saves is refused for the state of its cards alone.
func TestWorkflowsAreWhole(t *testing.T) {
	base := func(slug string) ([]byte, error) { return []byte(Workflow), nil }
	for i, text := range []string{Workflow, Lab, lab(1), lab(2), lab(3), lab(4), lab(5)} {
		if w, report := workflow.Load([]byte(text), base); w == nil || report.Failed() {
			t.Errorf("version %d: %v", i, report)
		}
	}
	refused := 0
	rng := rand.New(rand.NewPCG(1, 1))
	for range 200 {
		if _, report := workflow.Load([]byte(spoil(rng, Lab)), base); report.Failed() {
			refused++
		}
	}
	if refused < 100 {
		t.Errorf("of 200 spoilt files %d are refused", refused)
	}
}

package cli

import (
	"strings"
	"testing"

	"muster/cmd/muster/api/apitest"
)

// A machine's labels are set and taken away by name; what is told is what it has now.
func TestNodeLabel(t *testing.T) {
	w := newWorld(t, apitest.New())
	if out := w.ok("node", "label", "atlas", "tier=1", "zone=a b"); !strings.Contains(out, "labels of atlas: ") || !strings.Contains(out, "tier=1") {
		t.Errorf("it says %q", out)
	}
	w.ok("node", "label", "atlas", "tier=")
	if out := w.ok("node", "show", "atlas"); !strings.Contains(out, "zone=a b") || strings.Contains(out, "tier") {
		t.Errorf("node show: %s", out)
	}
	if out := w.ok("node", "label", "--help"); !strings.Contains(out, "wins over") {
		t.Errorf("help: %s", out)
	}
}

package node

import (
	"testing"

	"muster/mesh"
)

// A pushed order runs a program: it is taken from voters only, since only they may
// lead. Replicas are trusted with their own machine (architecture.md §6).
func TestOnlyVotersPushOrders(t *testing.T) {
	a := open(t, testConfig(t, "a"))
	if !a.votes(a.ident.ID) {
		t.Error("the only voter is none")
	}
	other, err := mesh.LoadOrCreateIdentity(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := a.store.AddNonvoter(t.Context(), string(other.ID)+"/s"); err != nil {
		t.Fatal(err)
	}
	if a.votes(other.ID) || a.votes("stranger") {
		t.Error("a replica or a stranger may push orders")
	}
}

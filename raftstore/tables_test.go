package raftstore

import (
	"testing"

	"muster/board"
)

// Every table of the state can be stored: one beyond what entries, views and snapshots hold would refuse every
// transaction that writes to it.
func TestEveryTableCanBeStored(t *testing.T) {
	if board.Tables > maxTable {
		t.Errorf("the state has %d tables, and %d can be stored", board.Tables, maxTable)
	}
	if have := len(view{}.tabs) - 1; have < maxTable {
		t.Errorf("a view reads %d tables, of %d that can be stored", have, maxTable)
	}
}

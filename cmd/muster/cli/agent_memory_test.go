package cli

import (
	"fmt"
	"testing"

	"muster/cmd/muster/api"
)

// M-29: what differs between two snapshots: added, removed, and changed by content or by what may be run, also when the size is the same.
func TestCompareMemories(t *testing.T) {
	list := func(files ...api.MemoryFile) api.MemoryFiles { return api.MemoryFiles{Files: files} }
	from := list(api.MemoryFile{Path: "a", SHA256: "1", Size: 1}, api.MemoryFile{Path: "c", SHA256: "1", Size: 1}, api.MemoryFile{Path: "d", SHA256: "1"}, api.MemoryFile{Path: "e", SHA256: "1", Size: 7})
	to := list(api.MemoryFile{Path: "a", SHA256: "2", Size: 1}, api.MemoryFile{Path: "b", SHA256: "1", Size: 3}, api.MemoryFile{Path: "c", SHA256: "1", Size: 1}, api.MemoryFile{Path: "d", SHA256: "1", Exec: true})
	if got, want := fmt.Sprint(compareMemories(from, to).Changes), "[{a changed 1} {b added 3} {d changed 0} {e removed 7}]"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	if got := compareMemories(to, to).Changes; len(got) != 0 {
		t.Errorf("the same: %v", got)
	}
}

package api

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster/board"
)

// A node that has its folder and no open door yet is starting or ends; it is not said to be none.
func TestNodeThatStarts(t *testing.T) {
	dir := t.TempDir()
	cl := &Client{Socket: filepath.Join(dir, "muster.sock")}
	told := func() string {
		_, err := cl.Get(t.Context(), "/v1/info", nil)
		if board.CodeOf(err) != board.Unavailable {
			t.Fatal(err)
		}
		return err.Error()
	}
	if got := told(); !strings.Contains(got, "no muster node is running here") {
		t.Error(got)
	}
	f, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if got := told(); !strings.Contains(got, "no muster node is running here") {
		t.Errorf("nobody holds it: %s", got)
	}
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		t.Fatal(err)
	}
	if got := told(); !strings.Contains(got, "is starting") {
		t.Error(got)
	}
}

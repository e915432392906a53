package main

import (
	"os"
	"slices"
	"strings"
	"syscall"

	"muster/board"
	"muster/launcher"
)

// attach replaces this process by one that shows the pane of a run of the node with
// this data folder. It comes back only with an error.
func attach(data, run string, readOnly bool) error {
	s, err := launcher.Panes(data, nil)
	if err != nil {
		return board.Errorf(board.Refused, "no pane can be shown here: %v", err)
	}
	dir, argv := s.Attach(run, readOnly)
	if err := os.Chdir(dir); err != nil {
		return board.Errorf(board.Refused, "this node has opened no panes: %v", err)
	}
	env := slices.DeleteFunc(os.Environ(), func(kv string) bool { return strings.HasPrefix(kv, "TMUX") }) // also from within a tmux of one's own
	return os.NewSyscallError("exec", syscall.Exec(argv[0], argv, env))
}

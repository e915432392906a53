//go:build !linux

package launcher

import "os/exec"

func plainSleeps() {}

func startPlain(cmd *exec.Cmd) error { return cmd.Start() }

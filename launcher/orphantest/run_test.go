package orphantest

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"testing"
)

// The test binary is also the tests that leave something behind.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "leave" {
		os.Exit(Run(leave))
	}
	os.Exit(m.Run())
}

// leave are tests that start a process in a session of its own, say which, and end by a panic.
func leave() int {
	cmd := exec.Command("tail", "-f", "/dev/null")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := cmd.Start(); err != nil {
		fmt.Println(err)
		return 3
	}
	fmt.Println(cmd.Process.Pid)
	panic("a test panics")
}

// Nothing of tests that end without a clean-up lives when their process has ended, and their code is told.
func TestNothingIsLeft(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Skip("needs Linux: a process that takes over orphans")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	cmd := exec.Command(exe, "leave")
	cmd.Stdout = &out
	err = cmd.Run()
	if exit := new(exec.ExitError); !errors.As(err, &exit) || exit.ExitCode() != 2 {
		t.Errorf("ended with %v, want a panic's code", err)
	}
	pid := 0
	if _, err := fmt.Sscan(out.String(), &pid); err != nil || syscall.Kill(pid, 0) != syscall.ESRCH {
		t.Errorf("process %d lives (%v)", pid, err)
	}
}

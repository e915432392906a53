package orphantest

import (
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// inner marks the process that runs the tests.
const inner = "MUSTER_TEST_INNER"

// Run runs the tests in a process of their own, and answers its exit code when
// nothing that descends from it lives. It is to be given m.Run.
func Run(tests func() int) int {
	if os.Getenv(inner) != "" || fuzzes() {
		_ = os.Unsetenv(inner) // what the tests start is not this
		return tests()
	}
	runtime.LockOSThread() // the tests die with the thread that started them
	code, err := outer()
	if err != nil {
		fmt.Fprintln(os.Stderr, "tests in a process of their own:", err)
		return 2
	}
	return code
}

// fuzzes tells a fuzzing worker: it shares descriptors with its parent.
func fuzzes() bool {
	for _, arg := range os.Args {
		if strings.HasPrefix(arg, "-test.fuzzworker") {
			return true
		}
	}
	return false
}

func outer() (code int, err error) {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return 0, os.NewSyscallError("prctl", err)
	}
	exe, err := os.Executable()
	if err != nil {
		return 0, err
	}
	told := make(chan os.Signal, 16)
	signal.Notify(told, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGINT)
	p, err := os.StartProcess(exe, os.Args, &os.ProcAttr{Env: append(os.Environ(), inner+"=1"),
		Files: []*os.File{os.Stdin, os.Stdout, os.Stderr}, Sys: &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}})
	if err != nil {
		return 0, err
	}
	go func() {
		for s := range told {
			_ = p.Signal(s)
		}
	}()
	for over := false; ; {
		if over {
			killChildren()
		}
		var ws syscall.WaitStatus
		switch pid, err := syscall.Wait4(-1, &ws, 0, nil); {
		case err == syscall.EINTR:
		case err != nil:
			return code, nil // ECHILD: whose orphans come here has no descendants then
		case pid == p.Pid:
			over, code = true, 2
			if ws.Exited() {
				code = ws.ExitStatus()
			}
		}
	}
}

// killChildren ends what was orphaned so far; what that orphans comes next.
func killChildren() {
	lists, _ := filepath.Glob("/proc/self/task/*/children")
	for _, list := range lists {
		b, _ := os.ReadFile(list)
		for _, text := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(text); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
	}
}

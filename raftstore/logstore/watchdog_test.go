package logstore

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"
)

// A write that does not come back is told after the time given, once; one that
// comes back in time never.
func TestWatchdog(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hung atomic.Int64
		stop := Watchdog(8*time.Second, func() { hung.Add(1) })
		time.Sleep(7 * time.Second)
		synctest.Wait()
		if hung.Load() != 0 {
			t.Fatal("told too soon")
		}
		stop()
		time.Sleep(time.Minute)
		synctest.Wait()
		if hung.Load() != 0 {
			t.Fatal("told of a write that came back")
		}
		Watchdog(8*time.Second, func() { hung.Add(1) })
		time.Sleep(time.Minute)
		synctest.Wait()
		if hung.Load() != 1 {
			t.Fatalf("told %d times", hung.Load())
		}
	})
}

const watchdogEnv = "LOGSTORE_TEST_WATCHDOG"

// A process that was stopped for longer than the time given, with a write on its
// way, is given the time to end that write: a stop is no disk that hangs.
func TestWatchdogOfAStoppedProcess(t *testing.T) {
	if os.Getenv(watchdogEnv) != "" {
		stop := Watchdog(2*time.Second, func() { fmt.Println("hung") })
		fmt.Println("writing")
		_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
		stop()
		fmt.Println("written")
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestWatchdogOfAStoppedProcess$")
	cmd.Env = append(os.Environ(), watchdogEnv+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = cmd.Wait() }()
	lines := bufio.NewReader(out)
	if l, err := lines.ReadString('\n'); l != "writing\n" {
		t.Fatalf("the child says %q (%v)", l, err)
	}
	_ = cmd.Process.Signal(syscall.SIGSTOP)
	<-time.After(3 * time.Second)
	_ = cmd.Process.Signal(syscall.SIGCONT)
	<-time.After(200 * time.Millisecond)
	_, _ = io.WriteString(in, "\n")
	if l, err := lines.ReadString('\n'); l != "written\n" {
		t.Errorf("after the stop the child says %q (%v)", l, err)
	}
	_, _ = io.Copy(io.Discard, lines)
}

package launcher

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/board/lease"
	"muster/launcher/orphantest"
)

// The test binary is also the keeper and every program the tests need.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 {
		switch os.Args[1] {
		case KeepVerb:
			if err := Keep(os.Args[2:]); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
			os.Exit(0)
		case NoteVerb:
			if err := Note(os.Args[2:], os.Stdin); err != nil {
				fmt.Fprintln(os.Stderr, err)
			}
			os.Exit(0)
		case "program":
			os.Exit(program(os.Args[2:]))
		}
	}
	os.Exit(orphantest.Run(m.Run))
}

// program is what sessions of these tests run.
func program(args []string) int {
	switch args[0] {
	case "old-keeper":
		if err := oldKeeper(args[1], args[2]); err != nil {
			fmt.Println(err)
			return 1
		}
		return 0
	case "eat": // takes that many MB and keeps them
		mb, _ := strconv.Atoi(args[1])
		b := make([]byte, mb<<20)
		for i := range b {
			b[i] = byte(i)
		}
		fmt.Println("ate", len(b))
		term := make(chan os.Signal, 1)
		signal.Notify(term, syscall.SIGTERM)
		<-term
		runtime.KeepAlive(b)
	case "daemon": // leaves behind a child in a session of its own, without environment, that ignores TERM
		heard, said, err := os.Pipe()
		if err != nil {
			fmt.Println(err)
			return 1
		}
		attr := &os.ProcAttr{Dir: "/", Env: []string{"PATH=/bin"}, Files: []*os.File{nil, said, nil}, Sys: &syscall.SysProcAttr{Setsid: true}}
		if args[1] == "marked" {
			attr.Env = append(attr.Env, os.Environ()...)
		}
		p, err := os.StartProcess("/bin/sh", []string{"sh", "-c", `trap "" TERM HUP; echo $$ > "$1.tmp" && mv "$1.tmp" "$1"; echo there; exec >&-; while :; do sleep 1; done`, "sh", args[2]}, attr)
		if err != nil {
			fmt.Println(err)
			return 1
		}
		_ = p.Release()
		if args[1] == "leave" {
			_, _ = heard.Read(make([]byte, 8)) // not before the child is there: with this process its tree ends
			return 0
		}
		select {}
	case "node": // a node that is killed: see adopt tests
		return nodeProgram(args[1:])
	}
	return 2
}

// slow is how long a test waits for what should be there at once.
const slow = time.Minute

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	eventuallyIn(t, slow, what, ok)
}

func eventuallyIn(t *testing.T, limit time.Duration, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	end := time.After(limit)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("after %s still not: %s", limit, what)
		}
	}
}

// alive tells whether a process runs; a zombie does not.
func alive(pid int) bool {
	out, err := exec.Command("ps", "-o", "stat=", "-p", strconv.Itoa(pid)).Output()
	return err == nil && len(out) > 0 && !strings.HasPrefix(strings.TrimSpace(string(out)), "Z")
}

func pidIn(t *testing.T, file string) int {
	t.Helper()
	var pid int
	eventually(t, "a pid in "+filepath.Base(file), func() bool {
		b, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		pid, err = strconv.Atoi(strings.TrimSpace(string(b)))
		return err == nil
	})
	return pid
}

func testBinary(t *testing.T) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return exe
}

func testLog(t *testing.T) *slog.Logger {
	return slog.New(slog.NewTextHandler(t.Output(), &slog.HandlerOptions{Level: slog.LevelDebug}))
}

func fileLogger(t *testing.T, path string) *slog.Logger {
	t.Helper()
	f, err := os.Create(path)
	must(t, err)
	t.Cleanup(func() { f.Close() })
	return slog.New(slog.NewTextHandler(f, nil))
}

func testKeepers(t *testing.T) *Keepers {
	t.Helper()
	k := &Keepers{Binary: testBinary(t), Log: testLog(t)}
	t.Cleanup(func() {
		k.Close()
		k.wg.Wait()
	})
	return k
}

// testSpec is a folder with a session that runs argv.
func testSpec(t *testing.T, argv []string, change func(*Spec)) (dir string, spec *Spec) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "web-1.1")
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	spec = &Spec{
		Run: "web-1.1", Node: "n1", Key: "web-1.1/start", Nonce: fmt.Sprintf("t%d-%d", os.Getpid(), time.Now().UnixNano()), Argv: argv,
		Dir: t.TempDir(), Boot: BootID(), StartBy: BootNow().Add(time.Minute), Kill: 5 * time.Second,
		Estop: filepath.Join(filepath.Dir(dir), "ESTOP"),
	}
	spec.Env = []string{"PATH=/usr/bin:/bin", envNonce + "=" + spec.Nonce}
	if change != nil {
		change(spec)
	}
	if err := writeJSON(dir, fileSpec, spec, false); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { endLeft(dir, spec.Nonce) })
	return dir, spec
}

// endLeft ends whatever a failed test leaves of a session.
func endLeft(dir, nonce string) {
	p, err := ReadProc(dir)
	if err == nil {
		if q := startOf(p.Keeper); q != 0 && ReadExitMust(dir) == nil {
			_ = syscall.Kill(p.Keeper, syscall.SIGKILL)
		}
	}
	_ = endTree(context.Background(), nonce, p)
}

func ReadExitMust(dir string) *Exit { e, _ := ReadExit(dir); return e }

func sh(script string, args ...string) []string {
	return append([]string{"sh", "-c", script, "sh"}, args...)
}

// start starts a session and fails the test when no keeper can be made.
func start(t *testing.T, k *Keepers, dir string) Session {
	t.Helper()
	s, err := k.Start(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return s
}

func wait(t *testing.T, what string, c <-chan struct{}) {
	t.Helper()
	select {
	case <-c:
	case <-time.After(slow):
		t.Fatalf("after %s still not: %s", slow, what)
	}
}

// finish waits for the end of a session and reads its record.
func finish(t *testing.T, s Session, dir string) *Exit {
	t.Helper()
	wait(t, "the end of the keeper", s.Done())
	e, err := ReadExit(dir)
	if err != nil || e == nil {
		b, _ := os.ReadFile(filepath.Join(dir, fileKeeper))
		t.Fatalf("no exit record: %v, %v; keeper said %q", e, err, b)
	}
	return e
}

func logOf(t *testing.T, dir string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, fileLog))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func soon(d time.Duration) lease.Instant { return BootNow().Add(d) }

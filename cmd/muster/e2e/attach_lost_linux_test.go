package e2e

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster/board"
)

// A look goes on when the leader is killed, is told and found again when the node in the middle is killed or
// the far one stands still, and nothing that was typed meanwhile is typed later.
func TestAttachOverLostLinks(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux here")
	}
	f := newFleet(t, 3, 4, steady...)
	leader := f.leader()
	near := f.other(leader)
	far := f.other(leader, near)
	f.do(near, board.VBoardApply, board.BoardApply{Board: "default", YAML: paneBoard})
	file := filepath.Join(f.dir, "typed")
	card, _ := f.pane(near, far, `printf '\033[?2004h'; `+reader(file))
	w := near.sit("attach", card)
	w.sees("HELLO")
	w.types("a")
	f.wrote(file, "a")

	// A paste holds the key that leaves, and every other byte; it arrives as it is, and the look goes on.
	var block []byte
	for i := range 256 {
		if i != 0x1b { // begins keys
			block = append(block, byte(i))
		}
	}
	paste := "\x1b[200~" + string(block) + "é世\u009b\ue1ff\U0010ffff\x1b[201~" // the program asked for the marks
	w.types(paste)
	f.wrote(file, "a"+paste)

	leader.kill()
	w.types("b")
	f.wrote(file, "a"+paste+"b")
	if strings.Contains(w.text(), "no link to") {
		t.Error("a change of leader was told as a lost link")
	}

	far.signal(syscall.SIGSTOP)
	f.eventually(10*time.Second, "stopped, every thread", func() (bool, string) { return standsStill(t, far.cmd.Process.Pid), "" })
	stopped := time.Now()
	w.types("lost")
	w.sees("no link to " + far.name)
	t.Logf("told after %s that %s stands still", time.Since(stopped).Round(100*time.Millisecond), far.name)
	w.types("lost too")
	w.clear()
	far.signal(syscall.SIGCONT)
	w.sees("HELLO") // drawn anew
	w.types("c")
	f.wrote(file, "a"+paste+"bc")

	w.clear()
	near.kill()
	w.sees("no link to " + far.name)
	w.types("lost again")
	w.clear()
	near.start()
	w.sees("HELLO")
	w.types("d")
	f.wrote(file, "a"+paste+"bcd")

	// The machine goes away for good: the person is told since when, and leaves.
	w.clear()
	far.kill()
	w.sees("no link to " + far.name)
	w.sees(far.name + " does not answer")
	w.types("\x1d")
	w.ends()
}

// standsStill tells that all threads of a process have stopped: one that has not, may still take what is typed.
func standsStill(t *testing.T, pid int) bool {
	t.Helper()
	list, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
	if err != nil || len(list) == 0 {
		t.Fatalf("threads of %d: %v", pid, err)
	}
	for _, name := range list {
		b, err := os.ReadFile(name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		_, rest, _ := strings.Cut(string(b), ") ")
		if err != nil || !strings.HasPrefix(rest, "T") {
			return false
		}
	}
	return true
}

// A client that is killed leaves the person's terminal as it was.
func TestAttachGivesTheTerminalBack(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux here")
	}
	f := newFleet(t, 1, 4)
	m := f.machines[0]
	f.do(m, board.VBoardApply, board.BoardApply{Board: "default", YAML: paneBoard})
	card, _ := f.pane(m, m, reader(filepath.Join(f.dir, "typed")))
	for _, sig := range []syscall.Signal{syscall.SIGKILL, syscall.SIGTERM, syscall.SIGQUIT} {
		cmd := exec.Command("sh", "-c", `"$0" --data "$1" attach "$2"; echo over $?; exec sleep 60`, binary, m.data, card)
		w := seat(t, cmd)
		w.sees("HELLO")
		if raw(t, w) {
			out, err := exec.Command("pgrep", "-P", fmt.Sprint(cmd.Process.Pid), "-x", "muster").Output()
			if err != nil {
				t.Fatalf("no client: %v", err)
			}
			pid, err := strconv.Atoi(strings.TrimSpace(string(out)))
			if err != nil {
				t.Fatal(err)
			}
			w.clear()
			if err := syscall.Kill(pid, sig); err != nil {
				t.Fatal(err)
			}
		} else {
			t.Fatal("the terminal is not raw while somebody looks")
		}
		w.sees("over ")
		within(t, 10*time.Second, "given back", func() (bool, string) {
			return !raw(t, w) && strings.Contains(w.text(), "\x1b[?1049l"), last(w.text(), 300)
		})
	}
}

// What follows ends when nobody reads it any more, not at its next line.
func TestFollowersEndWithTheirReader(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 4)
	m := f.machines[0]
	f.apply("600")
	card := f.add(m, "long", "echo first; sleep 300", nil)
	f.eventually(20*time.Second, "running", func() (bool, string) {
		runs, err := m.runs(card)
		return err == nil && len(runs) == 1 && runs[0].Launched != nil, fmt.Sprint(err)
	})
	for _, args := range [][]string{{"events", "-f"}, {"log", "-f", card}, {"attention", "-f"}, {"inbox", "-f"}, {"board", "show", "--watch"}} {
		cmd := exec.Command(binary, append([]string{"--data", m.data}, args...)...)
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		over := make(chan error, 1)
		select {
		case <-time.After(500 * time.Millisecond): // it follows, or has not come so far: both must end
		case err := <-over:
			t.Errorf("%q ended by itself: %v", args, err)
		}
		out.Close()
		go func() { over <- cmd.Wait() }()
		select {
		case <-over:
		case <-time.After(patience):
			_ = cmd.Process.Kill()
			t.Errorf("%q goes on though nobody reads it", args)
		}
	}
}

// raw tells whether a person's terminal passes on every byte as it is.
func raw(t *testing.T, s *seatT) bool {
	t.Helper()
	tio, err := unix.IoctlGetTermios(int(s.tty.Fd()), unix.TCGETS)
	if err != nil {
		t.Fatal(err)
	}
	return tio.Lflag&unix.ICANON == 0
}

// A burst of 100 MB in a pane, with one who looks on and takes nothing, does not grow the memory of the nodes; who looks
// sees the end of it as soon as they take something again. Its log is read as text from another machine.
func TestBurstInAPane(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux here")
	}
	f := newFleet(t, 2, 4)
	far, near := f.machines[0], f.machines[1]
	f.do(far, board.VBoardApply, board.BoardApply{Board: "default", YAML: paneBoard})
	begin := filepath.Join(f.dir, "go")
	card, _ := f.pane(near, far, "printf '\\033[31mHELLO\\033[0m\\n'; until [ -e "+begin+" ]; do sleep 0.05; done; head -c 100000000 /dev/zero | tr '\\0' x | fold -w 99; echo; echo THE END; sleep 300")
	w := near.sit("attach", card)
	w.sees("HELLO")
	w.hold()
	before := far.rss() + near.rss()
	if err := os.WriteFile(begin, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	most := int64(0)
	f.eventually(120*time.Second, "printed", func() (bool, string) {
		most = max(most, far.rss()+near.rss()-before)
		end, _ := exec.Command("sh", "-c", "tail -c 200 "+filepath.Join(far.data, "runs", "*", "log")).Output()
		return strings.Contains(string(end), "THE END"), last(string(end), 200)
	})
	t.Logf("both nodes together grew by %d kB at most", most>>10)
	if most > 40<<20 {
		t.Errorf("the nodes grew by %d MB", most>>20)
	}
	w.goOn()
	w.sees("THE END")
	out, _, code := near.run("log", card)
	if code != 0 || !strings.Contains(out, "HELLO\n") || !strings.HasSuffix(strings.TrimSpace(out), "THE END") || strings.Contains(out, "\x1b") {
		t.Errorf("as text (exit %d): %q ... %q", code, out[:min(len(out), 100)], last(out, 100))
	}
}

// rss is the memory of a node's process that is its own, bytes.
func (m *machine) rss() int64 {
	b, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", m.pid()))
	for line := range strings.Lines(string(b)) {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			var kb int64
			_, _ = fmt.Sscan(rest, &kb)
			return kb << 10
		}
	}
	return 0
}

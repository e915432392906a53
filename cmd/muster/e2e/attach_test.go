package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"

	"muster/board"
)

// paneBoard is a board whose cards run their body as a script in a pane.
const paneBoard = `
version: 1
name: default
extends: default
params: {lease: "600"}
profiles:
  pane: {harness: command, surface: pane, args: [sh, -c, 'sh "$MUSTER_BODY"']}
`

// seatT is a person at a terminal of their own, with a command in it.
type seatT struct {
	t    *testing.T
	tty  *os.File
	cmd  *exec.Cmd
	over chan struct{}
	held chan struct{} // guarded by mu; not nil: the terminal takes nothing until it is closed
	mu   sync.Mutex
	seen strings.Builder
}

// sit has a person at this machine's command line.
func (m *machine) sit(args ...string) *seatT {
	m.t.Helper()
	cmd := exec.Command(binary, append([]string{"--data", m.data}, args...)...)
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	return seat(m.t, cmd)
}

func seat(t *testing.T, cmd *exec.Cmd) *seatT {
	t.Helper()
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 30})
	if err != nil {
		t.Fatal(err)
	}
	s := &seatT{t: t, tty: f, cmd: cmd, over: make(chan struct{})}
	go func() {
		defer close(s.over)
		b := make([]byte, 32<<10)
		for {
			n, err := f.Read(b)
			s.mu.Lock()
			held := s.held
			s.mu.Unlock()
			if held != nil {
				<-held
			}
			s.mu.Lock()
			s.seen.Write(b[:n])
			s.mu.Unlock()
			if err != nil {
				_ = cmd.Wait()
				return
			}
		}
	}()
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		if s.held != nil { // its test has ended
			s.goOn()
		}
		f.Close()
		<-s.over
	})
	return s
}

func (s *seatT) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.seen.String()
}

// clear forgets what was on the screen.
func (s *seatT) clear() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seen.Reset()
}

// hold has the terminal take nothing any more, until goOn.
func (s *seatT) hold() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = make(chan struct{})
}

func (s *seatT) goOn() {
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.held)
	s.held = nil
}

func (s *seatT) types(text string) {
	s.t.Helper()
	if _, err := s.tty.WriteString(text); err != nil {
		s.t.Fatal(err)
	}
}

// sees waits until a text is on the screen; what has been seen before counts.
func (s *seatT) sees(text string) {
	s.t.Helper()
	within(s.t, 20*time.Second, "on the screen: "+text, func() (bool, string) {
		return strings.Contains(s.text(), text), fmt.Sprintf("%q", last(s.text(), 1500))
	})
}

func (s *seatT) ends() {
	s.t.Helper()
	select {
	case <-s.over:
	case <-time.After(patience):
		s.t.Fatalf("the look does not end: %q", last(s.text(), 1500))
	}
}

func last(s string, n int) string { return s[max(0, len(s)-n):] }

func within(t *testing.T, limit time.Duration, what string, cond func() (bool, string)) {
	t.Helper()
	(&fleet{t: t}).eventually(limit, what, cond)
}

// pane starts a session with a pane on a machine and waits until its program shows life.
func (f *fleet) pane(at, on *machine, script string) (card, run string) {
	f.t.Helper()
	title, profile := "look at me", "pane"
	card = f.do(at, board.VCardAdd, board.CardAdd{Board: "default", CardFields: board.CardFields{Title: &title, Body: &script, Assignee: &profile, Machine: &on.name}})["id"].(string)
	f.eventually(30*time.Second, "in its pane", func() (bool, string) {
		runs, err := at.runs(card)
		if err != nil || len(runs) == 0 || runs[0].State != "running" {
			return false, fmt.Sprintf("%+v (%v)", runs, err)
		}
		run = runs[0].ID
		return true, ""
	})
	return card, run
}

// reader is a script whose program notes every byte that is typed into it.
func reader(file string) string { return "stty raw -echo; echo HELLO; exec cat > " + file }

func (f *fleet) wrote(file, want string) {
	f.t.Helper()
	f.eventually(20*time.Second, "what was typed in "+file, func() (bool, string) {
		b, err := os.ReadFile(file)
		if err == nil && len(b) >= len(want) && string(b) != want {
			f.t.Fatalf("the program read %q, want %q", b, want)
		}
		return string(b) == want, fmt.Sprintf("%q, want %q (%v)", last(string(b), 400), last(want, 400), err)
	})
}

// A person types into a session on another machine through their own node: what they type arrives as it
// is, what it prints comes back, sizes follow, another looks on and types nothing, and Ctrl-] leaves it running.
func TestAttachFromAnotherMachine(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux here")
	}
	f := newFleet(t, 3, 4)
	far := f.machines[2]
	near := f.machines[1]
	f.do(near, board.VBoardApply, board.BoardApply{Board: "default", YAML: paneBoard})
	file := filepath.Join(f.dir, "typed")
	card, run := f.pane(near, far, reader(file))

	w := near.sit("attach", card)
	w.sees("HELLO")
	w.sees("Ctrl-]")
	w.sees(run)
	other := f.machines[0].sit("attach", card)
	other.sees("HELLO")
	only := near.sit("attach", card, "--read-only")
	only.sees("read only")
	only.types("not this")
	w.types("\x02:\x03\x04 all of it\x1b[A")
	f.wrote(file, "\x02:\x03\x04 all of it\x1b[A")
	other.types("two")
	f.wrote(file, "\x02:\x03\x04 all of it\x1b[Atwo")
	if err := pty.Setsize(w.tty, &pty.Winsize{Cols: 20, Rows: 5}); err != nil {
		t.Fatal(err)
	}
	f.eventually(10*time.Second, "20 by 5", func() (bool, string) {
		out, _ := exec.Command("tmux", "-S", filepath.Join(far.data, "tmux", "s"), "list-clients", "-F", "#{client_width}x#{client_height}").CombinedOutput()
		return strings.Contains(string(out), "20x5"), string(out)
	})
	for _, s := range []*seatT{w, only, other} {
		s.types("\x1d")
		s.ends()
		if !strings.Contains(s.text(), "it goes on") {
			t.Errorf("the last words: %q", last(s.text(), 300))
		}
		if code := s.cmd.ProcessState.ExitCode(); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	w = near.sit("attach", card)
	w.sees("HELLO")
	w.types(".")
	f.wrote(file, "\x02:\x03\x04 all of it\x1b[Atwo.")

	// The session ends while somebody looks: they are told how.
	runs, err := near.runs(card)
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(int(runs[0].PID), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	w.ends()
	if !strings.Contains(w.text(), "the session of run "+run+" is over: ended by SIGKILL") {
		t.Errorf("the last words: %q", last(w.text(), 300))
	}
}

// Who may what is judged by the machine that has the terminal: a node's people are what the fleet says they
// are, the machine's own file may allow less, and who looked, typed and left is recorded.
func TestWhoMayAttach(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("no tmux here")
	}
	f := newFleet(t, 2, 4)
	far, near := f.machines[0], f.machines[1]
	f.do(far, board.VBoardApply, board.BoardApply{Board: "default", YAML: paneBoard})
	file := filepath.Join(f.dir, "typed")
	card, _ := f.pane(far, far, reader(file))

	sh := near.sit("shell", far.name)
	sh.types("echo $((6*7))x; cd /; pwd\r")
	sh.sees("42x")
	sh.types("exit\r")
	sh.ends()
	if !strings.Contains(sh.text(), "the shell on "+far.name+" has ended") {
		t.Errorf("the last words: %q", last(sh.text(), 300))
	}
	w := near.sit("attach", card)
	w.sees("HELLO")
	w.types("yes")
	f.wrote(file, "yes")
	w.types("\x1d")
	w.ends()

	f.do(far, board.VNodeSet, board.NodeSet{Node: near.name, Local: "viewer"})
	w = near.sit("attach", card)
	w.sees("a viewer looks on")
	w.types("no")
	w.types("\x1d")
	w.ends()
	sh = near.sit("shell", far.name)
	sh.ends()
	if !strings.Contains(sh.text(), "a shell is for managers") || sh.cmd.ProcessState.ExitCode() != 1 {
		t.Errorf("a viewer's shell: %q", sh.text())
	}
	own := filepath.Join(far.data, "node.yaml")
	for _, c := range []struct{ file, sees string }{{"attach: read\n", "says attach: read"}, {"attach: none\n", "says attach: none"}, {"attach: perhaps\n", "none of write, read, none"}} {
		if err := os.WriteFile(own, []byte(c.file), 0o600); err != nil {
			t.Fatal(err)
		}
		w = far.sit("attach", card)
		w.sees(c.sees)
		_, _ = w.tty.WriteString("\x1d")
		w.ends()
	}
	f.wrote(file, "yes")
	f.eventually(20*time.Second, "recorded", func() (bool, string) {
		out, _, _ := far.run("events", "--card", card)
		all := true
		for _, word := range []string{"attached", "typed", "detached"} {
			all = all && strings.Contains(out, word)
		}
		return all && strings.Contains(out, "@"+near.name), out
	})
}

// endTmux ends the server of a machine's panes, where there was one.
func endTmux(data string) {
	if s := filepath.Join(data, "tmux", "s"); exists(s) {
		_ = exec.Command("tmux", "-S", s, "kill-server").Run() // it may have ended
	}
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

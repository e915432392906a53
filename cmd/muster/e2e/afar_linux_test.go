package e2e

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/board"
)

// afarBoard is a board for sessions of every kind.
const afarBoard = paneBoard + `  plain: {harness: command, args: [sh, -c, 'sh "$MUSTER_BODY"']}
`

// What a person does at a session on another machine goes on when the leader is killed, when their own node is and when
// that machine's is, and they are told what is the matter: a log that is followed, words that are sent, a shell, a session of theirs
// that a card is to have.
func TestSessionsAfarOverLostNodes(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux: a session that is typed at has a pane")
	}
	f := newFleet(t, 3, 6, steady...)
	leader := f.leader()
	near := f.other(leader)
	far := f.other(leader, near)
	f.do(near, board.VBoardApply, board.BoardApply{Board: "default", YAML: afarBoard})
	plain := "plain"
	there := func(a *board.CardAdd) { a.Assignee, a.Machine = &plain, &far.name }
	gate := filepath.Join(f.dir, "gate")
	opens := func(n int) {
		if err := os.WriteFile(gate+strconv.Itoa(n), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	script := "echo line-0"
	for i := 1; i < 4; i++ {
		script += fmt.Sprintf("; until [ -e %s%d ]; do sleep 0.1; done; echo line-%d", gate, i, i)
	}
	card := f.add(near, "prints", script, there)
	log := near.sit("log", "-f", card)
	log.sees("line-0")
	typed := filepath.Join(f.dir, "typed")
	pane, _ := f.pane(near, far, reader(typed))
	shell := near.sit("shell", far.name)
	shell.types("echo $((6*7))x\r")
	shell.sees("42x")
	own := exec.Command("sleep", "600") // a person's own
	own.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := own.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = own.Process.Kill(), own.Wait() })
	mine := f.do(near, board.VCardAdd, board.CardAdd{Board: "default", CardFields: board.CardFields{Title: &plain}})["id"].(string)

	leader.kill()
	opens(1)
	log.sees("line-1")
	shell.types("echo $((6*8))x\r")
	shell.sees("48x")
	if out, stderr, code := near.run("send", pane, "over there", "--timeout", "1m"); code != 0 {
		t.Fatalf("send: exit %d: %s%s", code, out, stderr)
	}
	f.eventually(patience, "what was sent", func() (bool, string) {
		b, err := os.ReadFile(typed)
		return strings.Contains(string(b), "over there\r"), fmt.Sprintf("%q %v", b, err)
	})
	if out, stderr, code := near.run("adopt", mine, "--session", "by-hand", "--pid", strconv.Itoa(own.Process.Pid), "--machine", far.name, "--harness", "command", "--profile", plain, "--timeout", "1m"); code != 0 {
		t.Fatalf("adopt: exit %d: %s%s", code, out, stderr)
	}
	f.eventually(patience, "adopted", func() (bool, string) {
		runs, err := near.runs(mine)
		return err == nil && len(runs) == 1 && runs[0].State == "running" && runs[0].PID == int64(own.Process.Pid), fmt.Sprintf("%+v %v", runs, err)
	})
	leader.start()

	near.kill()
	log.sees("trying again")
	shell.ends()
	if !strings.Contains(shell.text(), "the shell has ended with it") {
		t.Errorf("the shell's last words: %q", last(shell.text(), 300))
	}
	near.start()
	log.sees("goes on")
	opens(2)
	log.sees("line-2")

	log.clear()
	far.kill()
	log.sees(far.name)
	log.sees("trying again")
	for what, args := range map[string][]string{"shell": {"shell", far.name}, "attach": {"attach", pane}} {
		s := near.sit(args...)
		s.ends()
		if !strings.Contains(s.text(), far.name) || s.cmd.ProcessState.ExitCode() == 0 {
			t.Errorf("%s at a machine that is away: %q", what, s.text())
		}
	}
	far.start()
	log.sees("goes on")
	opens(3)
	log.sees("line-3")
	log.ends()
	if code := log.cmd.ProcessState.ExitCode(); code != 0 || strings.Count(log.text(), "line-3") != 1 || strings.Contains(log.text(), "line-2") {
		t.Errorf("exit code %d: %q", code, log.text())
	}
	f.eventually(20*time.Second, "watched again", func() (bool, string) {
		runs, err := near.runs(mine)
		return err == nil && len(runs) == 1 && runs[0].State == "running", fmt.Sprintf("%+v %v", runs, err)
	})
}

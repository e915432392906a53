package node

import (
	"bytes"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
)

// T18: whatever stands in a name or a refusal, a denial is one line; many are few lines, and all are counted.
func TestDenialsAreOneLineEach(t *testing.T) {
	var buf bytes.Buffer
	n := &Node{log: slog.New(slog.NewTextHandler(&buf, nil))}
	for range 50 {
		n.deny("eve\nlevel=error msg=forged", board.Errorf(board.Refused, "no\r\nlevel=error").WithCheck(board.CheckRole))
	}
	if got := strings.Count(buf.String(), "\n"); got != 1 || strings.Contains(buf.String(), "\r") {
		t.Errorf("%d lines: %q", got, buf.String())
	}
	for i := range 1000 { // as many senders as somebody likes
		n.deny(fmt.Sprint("node ", i), board.Errorf(board.Refused, "no").WithCheck(board.CheckSpeaker))
	}
	if got := strings.Count(buf.String(), "\n"); got > deniedSenders {
		t.Errorf("%d lines", got)
	}
	n.deny("x", board.Errorf(board.Refused, "a guard").WithCheck("cap"))
	if c := n.denials.copy(); c[board.CheckRole] != 50 || c[board.CheckSpeaker] != 1000 || len(c) != 2 {
		t.Errorf("counted %v", c)
	}
	if log, silent := n.denials.add(board.CheckRole, "later", time.Now().Add(2*deniedEvery)); !log || silent == 0 {
		t.Error("nothing is logged any more, or what was kept back is not told")
	}
}

// T9, T10: while a session runs, its secret and the node's key stand in no process's arguments, and
// no key of the node in the session's environment.
func TestSecretsAreInNoArguments(t *testing.T) {
	if _, err := os.Stat("/proc/self/cmdline"); err != nil {
		t.Skip("this system shows no arguments of processes by files")
	}
	n := open(t, testConfig(t, "atlas"))
	n.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	out := t.TempDir()
	card := n.testAdd(t, "hello", "cp $MUSTER_SECRET_FILE "+out+"/secret; env > "+out+"/env.new; mv "+out+"/env.new "+out+"/env; while [ ! -e "+out+"/go ]; do sleep 0.05; done")
	n.until(t, "the session runs", func() bool { _, err := os.Stat(out + "/env"); return err == nil })
	text, err := os.ReadFile(out + "/secret")
	if err != nil {
		t.Fatal(err)
	}
	_, secret, _ := strings.Cut(string(text), `"secret":"`)
	secret, _, _ = strings.Cut(secret, `"`)
	if len(secret) < 16 {
		t.Fatalf("no secret in %q", text)
	}
	lines, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil || len(lines) == 0 {
		t.Fatal(err, len(lines))
	}
	for _, path := range lines {
		if b, err := os.ReadFile(path); err == nil && bytes.Contains(b, []byte(secret)) {
			t.Errorf("%s: %q", path, b)
		}
	}
	key, err := os.ReadFile(n.dir.path("node.key"))
	if err != nil {
		t.Fatal(err)
	}
	env, err := os.ReadFile(out + "/env")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(string(key), "\n") {
		if len(line) > 30 && !strings.HasPrefix(line, "-") && bytes.Contains(env, []byte(line)) {
			t.Error("the node's key is in the session's environment")
		}
	}
	if bytes.Contains(env, []byte(secret)) {
		t.Error("the secret is in the environment, which outlives it")
	}
	if err := os.WriteFile(out+"/go", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	n.waitStatus(t, card, "done")
}

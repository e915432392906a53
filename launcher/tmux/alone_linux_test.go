package tmux

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A server that is told to end does, also when who drove it was killed in the middle of hearing something.
func TestServerEndsWithoutItsReader(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux: to show how its server ends")
	}
	dir := filepath.Join(t.TempDir(), "tmux")
	node := exec.Command(os.Args[0], "drive", dir)
	node.Stderr = os.Stderr
	out, err := node.StdoutPipe()
	must(t, err)
	must(t, node.Start())
	t.Cleanup(func() { _, _ = node.Process.Kill(), node.Wait() })
	if l, err := bufio.NewReader(out).ReadString('\n'); l != "drives\n" {
		t.Fatalf("said %q, %v", l, err)
	}
	tmux := func(words ...string) string {
		cmd := exec.Command("tmux", append([]string{"-S", socket}, words...)...)
		cmd.Dir = dir
		b, _ := cmd.CombinedOutput() // a server that ends may break off
		return strings.TrimSpace(string(b))
	}
	var pid int
	client := tmux("list-clients", "-F", "#{client_name}")
	if _, err := fmt.Sscan(tmux("display-message", "-p", "#{pid}"), &pid); err != nil || client == "" {
		t.Fatalf("no server with a client %q: %v", client, err)
	}
	must(t, node.Process.Signal(syscall.SIGSTOP))
	news := filepath.Join(t.TempDir(), "news") // more of it than a pipe takes
	must(t, os.WriteFile(news, []byte(strings.Repeat("display-message -c "+client+" "+strings.Repeat("x", 200)+"\n", 1000)), 0o600))
	if said := tmux("source-file", news); said != "" {
		t.Fatal(said)
	}
	tmux("kill-server")
	must(t, node.Process.Kill())
	t.Cleanup(func() { _ = syscall.Kill(pid, syscall.SIGKILL) })
	eventually(t, "the end of the server", func() bool { return syscall.Kill(pid, 0) != nil })
}

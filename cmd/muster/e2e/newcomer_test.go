package e2e

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

// fiveMinutes is what the README tells a newcomer to type, in order.
func fiveMinutes(t *testing.T) (lines []string, section string) {
	t.Helper()
	b, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "\n## Five minutes to a fleet of your own\n")
	section, _, _ = strings.Cut(rest, "\n## ")
	for line := range strings.Lines(section) {
		if code, ok := strings.CutPrefix(line, "    "); ok {
			lines = append(lines, strings.TrimRight(code, "\n"))
		}
	}
	if !ok || len(lines) == 0 {
		t.Fatal("README.md has no section `Five minutes to a fleet of your own` with code in it")
	}
	return lines, section
}

// asScript makes one script of the newcomer's terminals: what stays in the
// foreground there runs beside here, and the build is that of this test. Nothing else is changed but the ports.
func asScript(t *testing.T, lines []string) string {
	t.Helper()
	s := []string{"set -eu", `up() { for i in $(seq 900); do muster --data "$1" -q status >/dev/null 2>&1 && return; sleep 0.1; done; echo "$1 did not come up" >&2; exit 1; }`}
	data := regexp.MustCompile(`--data (\S+)`)
	foreground := 0
	for _, line := range lines {
		switch {
		case strings.HasPrefix(line, "git clone "), strings.HasPrefix(line, "make build"):
			continue
		case strings.HasPrefix(line, "muster up "), strings.HasPrefix(line, "muster join "):
			dir := data.FindStringSubmatch(line)
			if dir == nil {
				t.Fatalf("README: %q has no --data", line)
			}
			foreground++
			s = append(s, fmt.Sprintf("%s >node%d.out 2>&1 & echo $! >> pids", line, foreground), "up "+dir[1])
			continue
		}
		s = append(s, line)
	}
	if foreground != 3 {
		t.Fatalf("README starts %d nodes, want 3", foreground)
	}
	return strings.Join(s, "\n") + "\n"
}

// A newcomer with only the README: what it says to type makes a fleet of three
// that does a command of theirs; then they break it as it says, and it heals.
func TestNewcomer(t *testing.T) {
	t.Parallel()
	home, err := os.MkdirTemp("", "mn") // short: sockets live in it
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, dir: filepath.Join(home, "fleet")}
	t.Cleanup(func() {
		b, _ := os.ReadFile(filepath.Join(home, "pids"))
		for _, word := range strings.Fields(string(b)) {
			if pid, err := strconv.Atoi(word); err == nil {
				_ = syscall.Kill(pid, syscall.SIGKILL)
			}
		}
		f.endSessions()
		if !t.Failed() {
			os.RemoveAll(home)
		}
	})
	lines, section := fiveMinutes(t)
	script := asScript(t, lines)
	ports := map[string]string{}
	for _, p := range regexp.MustCompile(`127\.0\.0\.1:\d+`).FindAllString(script, -1) {
		if ports[p] == "" {
			ports[p] = freePort(t)
		}
		script = strings.ReplaceAll(script, p, ports[p])
	}
	if err := os.WriteFile(filepath.Join(home, "script"), []byte(script), 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	env := append(os.Environ(), "HOME="+home, "PATH="+filepath.Dir(binary)+":"+os.Getenv("PATH"))
	cmd := exec.CommandContext(ctx, "bash", "script")
	cmd.Dir, cmd.Env = home, env
	started := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s\nthe script:\n%s", err, out, script)
	}
	if !regexp.MustCompile(`(?m)^on [abc]: d-\d+$`).Match(out) {
		t.Errorf("the last card's log is not shown:\n%s", out)
	}
	t.Logf("from the first command to the second card's log: %s", time.Since(started).Round(100*time.Millisecond))

	// 6. Break it.
	for _, name := range []string{"a", "b", "c"} {
		m := &machine{t: t, name: name, data: filepath.Join(f.dir, name), api: client(filepath.Join(f.dir, name)), out: filepath.Join(home, name+".out")}
		f.machines = append(f.machines, m)
	}
	f.eventually(40*time.Second, "three voters by themselves", func() (bool, string) {
		st, err := f.machines[1].status()
		return err == nil && st.Voters == 3, fmt.Sprintf("%d voters (%v)", st.Voters, err)
	})
	f.breakIt(t, section, ports, env)
}

// breakIt kills the leader's process, files a card at a node that is left, and
// starts the dead one as the README says.
func (f *fleet) breakIt(t *testing.T, section string, ports map[string]string, env []string) {
	st, err := f.machines[1].status()
	if err != nil {
		t.Fatal(err)
	}
	var dead *machine
	for _, m := range f.machines {
		if m.name == st.Leader {
			dead = m
		}
	}
	info, err := api.Decode[api.Info](dead.api.Get(context.Background(), "/v1/info", nil))
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(info.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	left := f.other(dead)
	title, body := "after the leader", "echo still here"
	data, err := f.tryFrom(left, board.VCardAdd, board.CardAdd{Board: "default", CardFields: board.CardFields{Title: &title, Body: &body}}, f.mint(left), false)
	if err != nil {
		t.Fatalf("a card after the leader's death: %v", err)
	}
	f.await(left, "done", data["id"].(string))
	again := regexp.MustCompile("`muster up --data ~/fleet/a --listen\\s+(127\\.0\\.0\\.1:\\d+)`").FindStringSubmatch(section)
	if again == nil || ports[again[1]] == "" {
		t.Fatal("README does not say how to start the dead node again, with the address it had")
	}
	dead.listen, dead.env = info.Addr, env
	dead.start()
	t.Cleanup(dead.kill)
	f.allOnline(left)
	t.Log("state", f.sameState())
}

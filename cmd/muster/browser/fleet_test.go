package browser

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/cmd/muster/api"
)

// machine is one node as a process of its own.
type machine struct {
	t    *testing.T
	name string
	data string
}

// scripts is a board whose cards run their body, one at a time for `slow`.
const scripts = `version: 1
name: default
extends: default
params: {default_assignee: script}
profiles:
  script: {harness: command, args: [sh, -c, 'sh "$MUSTER_BODY"'], capacity: 3}
  slow: {harness: command, args: [sh, -c, 'sleep 100000'], capacity: 1}
`

// newFleet starts machines, the first makes the fleet and the others join it; it waits until all vote.
func newFleet(t *testing.T, names ...string) []*machine {
	t.Helper()
	chromium(t)
	dir, err := os.MkdirTemp("", "mb")
	if err != nil {
		t.Fatal(err)
	}
	var list []*machine
	t.Cleanup(func() {
		for _, m := range list {
			m.kill()
		}
		_ = os.RemoveAll(dir)
	})
	for _, name := range names {
		m := &machine{t, name, filepath.Join(dir, name)}
		list = append(list, m)
		args := []string{"up", "--name", name, "--slots", "4", "--timers", "wan", "--detach", "-q"}
		if name == names[0] {
			m.must(args...)
			continue
		}
		token := list[0].must("token", "create", "-q")
		m.mustIn(token, append([]string{"join", "-"}, args[1:]...)...)
	}
	want := 1
	if len(names) >= 3 {
		want = 3
	}
	list[0].until("all vote", func(s api.Status) bool { return s.Voters == want && s.Quorum })
	file := filepath.Join(dir, "board.yaml")
	if err := os.WriteFile(file, []byte(scripts), 0o600); err != nil {
		t.Fatal(err)
	}
	list[0].must("board", "apply", "default", "-f", file)
	return list
}

func (m *machine) must(args ...string) string { m.t.Helper(); return m.mustIn("", args...) }

func (m *machine) mustIn(stdin string, args ...string) string {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, append([]string{"--data", m.data, "--timeout", "60s"}, args...)...)
	cmd.Stdin = strings.NewReader(stdin)
	var bad strings.Builder
	cmd.Stderr = &bad
	out, err := cmd.Output()
	if err != nil {
		log, _ := os.ReadFile(filepath.Join(m.data, "node.log"))
		m.t.Fatalf("%s: muster %s: %v\n%s%s\nits log ends with\n%s", m.name, strings.Join(args, " "), err, out, bad.String(), log[max(0, len(log)-2000):])
	}
	return strings.TrimSpace(string(out))
}

// add files a card and returns its id.
func (m *machine) add(title string, args ...string) string {
	m.t.Helper()
	return m.must(append([]string{"card", "add", title, "-q"}, args...)...)
}

func (m *machine) status() (api.Status, error) {
	return api.Decode[api.Status]((&api.Client{Socket: filepath.Join(m.data, "muster.sock")}).Get(context.Background(), "/v1/status", nil))
}

// until asks the machine until it says so.
func (m *machine) until(what string, ok func(api.Status) bool) {
	m.t.Helper()
	end := time.Now().Add(2 * time.Minute)
	for {
		s, err := m.status()
		if err == nil && ok(s) {
			return
		}
		if time.Now().After(end) {
			m.t.Fatalf("%s: waiting until %s: %+v %v", m.name, what, s, err)
		}
		<-time.After(100 * time.Millisecond)
	}
}

// kill ends the node at once, as a power cut would.
func (m *machine) kill() {
	info, err := api.Decode[api.Info]((&api.Client{Socket: filepath.Join(m.data, "muster.sock"), Timeout: 3 * time.Second}).Get(context.Background(), "/v1/info", nil))
	if err == nil && info.PID > 1 {
		_ = syscall.Kill(info.PID, syscall.SIGKILL)
	}
}

// page opens the machine's page and waits for the board.
func (m *machine) page(w *window) {
	m.t.Helper()
	var x struct{ Data api.WebLogin }
	if err := json.Unmarshal([]byte(m.must("web", "--json")), &x); err != nil {
		m.t.Fatal(err)
	}
	w.visit(x.Data.URL)
	w.until("the board is there", `document.querySelectorAll('.column').length > 0 && document.querySelectorAll('.machine').length > 0`)
}

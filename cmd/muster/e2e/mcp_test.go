package e2e

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"muster/launcher/fakemodel"
)

// toolUser is a client of the protocol at the stdin and stdout of `muster mcp`.
type toolUser struct {
	t *testing.T
	c *sdk.ClientSession
}

func newToolUser(t *testing.T, env []string, args ...string) *toolUser {
	t.Helper()
	cmd := exec.Command(binary, append(args, "mcp")...)
	cmd.Env, cmd.Stderr = append(os.Environ(), env...), os.Stderr
	c, err := sdk.NewClient(&sdk.Implementation{Name: "e2e", Version: "1"}, nil).Connect(t.Context(), &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("muster mcp did not end as it should when its client hung up: %v", err)
		}
	})
	return &toolUser{t, c}
}

func (u *toolUser) call(name string, args map[string]any) (string, bool) {
	u.t.Helper()
	r, err := u.c.CallTool(u.t.Context(), &sdk.CallToolParams{Name: name, Arguments: args})
	if err != nil {
		u.t.Fatal(err)
	}
	text := ""
	for _, c := range r.Content {
		if x, ok := c.(*sdk.TextContent); ok {
			text += x.Text
		}
	}
	return text, r.IsError
}

// TestAgentToolsOverStdio: a session's tools act with its run's secret at a real
// node, also while that starts anew; its word ends the run, and then they are refused.
func TestAgentToolsOverStdio(t *testing.T) {
	f := newFleet(t, 1, 4)
	f.workflow("null, review: false")
	m := f.machines[0]
	st := f.stage("mcp")
	card := f.add(m, "by tools", fmt.Sprintf("env | grep ^MUSTER_ > %s/env.new; mv %s/env.new %s/env; while [ ! -e %s/go ]; do sleep 0.1; done", st.dir, st.dir, st.dir, st.dir), nil)
	var env []string
	f.eventually(60*time.Second, "the session's surroundings", func() (bool, string) {
		raw, err := os.ReadFile(filepath.Join(st.dir, "env"))
		env = strings.Fields(string(raw))
		return err == nil, f.whyNot(m, card)
	})
	own := newToolUser(t, env)
	if text, failed := own.call("show", nil); failed || !strings.Contains(text, `"id":"`+card+`"`) {
		t.Fatalf("show: %s", text)
	}
	m.kill()
	again := make(chan string, 1)
	go func() {
		r, err := own.c.CallTool(t.Context(), &sdk.CallToolParams{Name: "comment", Arguments: map[string]any{"text": "while the node was away"}})
		again <- fmt.Sprint(err, r != nil && r.IsError)
	}()
	m.start()
	if got := <-again; got != "<nil>false" && got != "<nil> false" {
		t.Errorf("a word while the node starts anew: %s", got)
	}
	if text, failed := own.call("complete", map[string]any{"summary": "done by tools"}); failed {
		t.Errorf("complete: %s", text)
	}
	st.open("go")
	f.await(m, "done", card)
	if text, failed := own.call("comment", map[string]any{"text": "one more"}); !failed {
		t.Errorf("a word after the run's end: %s", text)
	}
	manager := newToolUser(t, nil, "--data", m.data)
	text, failed := manager.call("show", map[string]any{"card": card})
	var x struct {
		Status   string `json:"status"`
		Comments []struct {
			Text string `json:"text"`
		} `json:"comments"`
	}
	if failed || json.Unmarshal([]byte(text), &x) != nil || x.Status != "done" || strings.Count(text, "while the node was away") != 1 {
		t.Errorf("as a manager sees it: %s", text)
	}
}

// TestRealClaudeUsesTools: the real program finds the tools of `muster mcp`, reads
// its card, comments and completes it by them alone.
func TestRealClaudeUsesTools(t *testing.T) {
	t.Parallel()
	r := newReal(t, "claude-code")
	conf := filepath.Join(r.home, ".claude.json")
	put(t, conf, fmt.Sprintf(`{"mcpServers": {"muster": {"type": "stdio", "command": %q, "args": ["mcp"], "env": {}}}}`, binary))
	if os.Geteuid() == 0 {
		if err := os.Chown(conf, nobody, nobody); err != nil {
			t.Fatal(err)
		}
	}
	tool := func(name string, input map[string]any) fakemodel.Turn {
		return fakemodel.Turn{Tool: "mcp__muster__" + name, Input: input}
	}
	id, word := r.ask("claude-code-full", tool("show", map[string]any{}), tool("comment", map[string]any{"text": "said by a tool"}),
		tool("complete", map[string]any{"summary": "done by a tool"}), fakemodel.Turn{Say: "done"})
	r.await(r.machine, "done", id)
	if x := r.gone(id, 1); x.Outcome != "completed" {
		t.Errorf("%+v\n%s", x, r.said(x.ID))
	}
	if q := r.turn(word, 1); !strings.Contains(q.Output, "The work of "+word) {
		t.Errorf("what show answered: %q\noffered: %q", q.Output, r.turn(word, 0).Tools)
	}
	d, err := r.machine.card(id)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, c := range d.Comments {
		if c.Text == "said by a tool" {
			n++
		}
	}
	if n != 1 {
		t.Errorf("the comment stands %d times: %+v", n, d)
	}
}

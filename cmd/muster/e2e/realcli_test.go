package e2e

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/launcher/fakemodel"
	"muster/launcher/harnesstest"
)

var everyAgent = flag.Bool("agents", false, "the long form of the tests with real agent programs (make harness)")

// real is one node whose sessions are real agent programs that speak to a model
// server on loopback. As root the node runs as another user: Claude Code does not
// skip permissions for root.
type real struct {
	*fleet
	*machine
	model *fakemodel.Server
	home  string
}

// nobody is the user that a real agent runs as when the tests run as root.
const nobody = 65534

// realWait is how long a step of a real program may take: half a GB of it starts on a machine that does much else.
const realWait = 3 * time.Minute

// await waits until cards are in a status.
func (r *real) await(m *machine, status string, cards ...string) {
	r.fleet.t.Helper()
	r.awaitWithin(realWait, m, status, cards...)
}

// agents is the board: a profile for each program and each kind of permissions.
const agents = `
version: 1
name: default
extends: default
params: {lease: null, review: false, rate_limit_cooldown: 1, failure_limit: 9}
statuses:
  running: {run: {limits: {kill: 1, leave: 30}}}
profiles:
`

// profile is one program with its surroundings.
type profile struct {
	harness string
	env     map[string]string
}

func profiles(url, home string) []profile {
	return []profile{
		{"claude-code", map[string]string{"ANTHROPIC_BASE_URL": url, "CLAUDE_CODE_OAUTH_TOKEN": "fake", "DISABLE_AUTOUPDATER": "1", "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "CLAUDE_CODE_MAX_RETRIES": "1"}},
		{"codex", map[string]string{"CODEX_HOME": filepath.Join(home, "codex"), "FAKE_KEY": "fake"}},
		{"opencode", map[string]string{"OPENCODE_CONFIG": filepath.Join(home, "opencode.json"), "OPENCODE_DISABLE_AUTOUPDATE": "1"}},
		{"gemini", map[string]string{"GOOGLE_GEMINI_BASE_URL": url, "GEMINI_API_KEY": "fake"}},
	}
}

// codexConfig and opencodeConfig make the fake model the only one there is.
const codexConfig = `
model = "fake-model"
model_provider = "fake"
check_for_update_on_startup = false
[model_providers.fake]
name = "fake"
base_url = "URL/v1"
wire_api = "responses"
env_key = "FAKE_KEY"
supports_websockets = false
request_max_retries = 1
stream_max_retries = 1
[analytics]
enabled = false
`

const opencodeConfig = `{"$schema": "https://opencode.ai/config.json", "model": "fake/fake-model", "small_model": "fake/fake-model", "autoupdate": false, "share": "disabled",
 "provider": {"fake": {"npm": "@ai-sdk/openai-compatible", "name": "Fake", "api": "URL/v1", "options": {"baseURL": "URL/v1", "apiKey": "fake"}, "models": {"fake-model": {"name": "Fake"}}}}}`

// newReal starts a node for the programs of some harnesses.
func newReal(t *testing.T, harnesses ...string) *real {
	t.Helper()
	path := []string{"/usr/bin", "/bin", "/usr/local/bin"}
	for _, h := range harnesses {
		path = append([]string{filepath.Dir(harnesstest.Program(t, h))}, path...)
	}
	model, err := fakemodel.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(model.Close)
	if err := os.Chmod(filepath.Dir(binary), 0o755); err != nil {
		t.Fatal(err)
	}
	r := &real{model: model}
	r.fleet = newFleetAt(t, 1, 6, func(_ int, m *machine) {
		dir := filepath.Dir(m.data)
		r.home = filepath.Join(dir, "home")
		put(t, filepath.Join(r.home, "codex", "config.toml"), strings.ReplaceAll(codexConfig, "URL", model.URL))
		put(t, filepath.Join(r.home, "opencode.json"), strings.ReplaceAll(opencodeConfig, "URL", model.URL))
		put(t, filepath.Join(r.home, ".gemini", "settings.json"), `{"security": {"auth": {"selectedType": "gemini-api-key"}}, "general": {"disableAutoUpdate": true}, "privacy": {"usageStatisticsEnabled": false}}`)
		m.env = append(m.env, "HOME="+r.home, "SHELL=/bin/sh", "PATH="+strings.Join(path, ":"), "TMPDIR="+r.home)
		if os.Geteuid() == 0 {
			m.prefix = []string{"setpriv", fmt.Sprintf("--reuid=%d", nobody), fmt.Sprintf("--regid=%d", nobody), "--clear-groups"}
			if err := filepath.WalkDir(dir, func(path string, _ os.DirEntry, err error) error {
				if err != nil {
					return err
				}
				return os.Lchown(path, nobody, nobody)
			}); err != nil {
				t.Fatal(err)
			}
		}
	})
	r.machine = r.machines[0]
	r.apply("", harnesses...)
	return r
}

// apply sets the board: profiles HARNESS-full and HARNESS-ask, on the surface given.
func (r *real) apply(surface string, harnesses ...string) {
	r.fleet.t.Helper()
	yaml := agents
	for _, p := range profiles(r.model.URL, r.home) {
		for _, h := range harnesses {
			if p.harness != h {
				continue
			}
			for _, permissions := range []string{"full", "ask"} {
				yaml += fmt.Sprintf("  %s-%s:\n    harness: %s\n    permissions: %s\n", h, permissions, h, permissions)
				if surface != "" {
					yaml += "    surface: " + surface + "\n"
				}
				yaml += "    env:\n"
				for k, v := range p.env {
					yaml += fmt.Sprintf("      %s: %q\n", k, v)
				}
			}
		}
	}
	r.do(r.machine, board.VBoardApply, board.BoardApply{Board: "default", YAML: yaml})
}

// put writes a file and the folders above it.
func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// ask files a card for a profile: its word is that of its conversation with the model.
func (r *real) ask(profile string, turns ...fakemodel.Turn) (card, word string) {
	r.fleet.t.Helper()
	word = fmt.Sprintf("talk-%d-of-%s", time.Now().UnixNano(), profile)
	r.model.Talk(word, turns...)
	return r.add(r.machine, "do "+word, "The work of "+word+".", func(a *board.CardAdd) { a.Assignee = &profile }), word
}

// gone waits until a card has had n runs and the last one's session is gone.
func (r *real) gone(card string, n int) api.Run {
	r.fleet.t.Helper()
	var last api.Run
	r.eventually(realWait, fmt.Sprintf("over with %d runs", n), func() (bool, string) {
		runs, err := r.runs(card)
		if err != nil || len(runs) < n {
			return false, fmt.Sprintf("%d runs (%v): %s", len(runs), err, r.whyNot(r.machine, card))
		}
		last = newest(runs)
		return last.Gone != "", fmt.Sprintf("run %s is %s: %s", last.ID, last.State, r.whyNot(r.machine, card))
	})
	return last
}

// running waits until a card's newest run, its nth, has a process.
func (r *real) running(card string, n int) api.Run {
	r.fleet.t.Helper()
	var last api.Run
	r.eventually(realWait, "running", func() (bool, string) {
		runs, err := r.runs(card)
		if err != nil || len(runs) < n {
			return false, fmt.Sprintf("%d runs (%v): %s", len(runs), err, r.whyNot(r.machine, card))
		}
		last = newest(runs)
		return last.PID != 0, r.whyNot(r.machine, card)
	})
	return last
}

// story is a subtest on the node that stands already; stories go one at a time.
func (r *real) story(t *testing.T, name, harness string, tell func(*testing.T, string)) {
	t.Run(name, func(t *testing.T) {
		fleetT, machineT := r.fleet.t, r.machine.t
		r.fleet.t, r.machine.t = t, t
		defer func() { r.fleet.t, r.machine.t = fleetT, machineT }()
		tell(t, harness)
	})
}

// said is a run's whole output, for the words of a failure.
func (r *real) said(run string) string {
	s, err := r.log(run)
	if err != nil {
		return err.Error()
	}
	return s
}

// turn waits until the model has been asked for a turn of a conversation.
func (r *real) turn(word string, n int) fakemodel.Request {
	r.fleet.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), realWait)
	defer cancel()
	q, err := r.model.Await(ctx, func(q fakemodel.Request) bool { return q.Word == word && q.Turn == n })
	if err != nil {
		r.fleet.t.Fatalf("turn %d of %s: %v", n, word, err)
	}
	return q
}

// complete is the turn in which the session gives its card back.
var complete = fakemodel.Turn{Run: `muster complete --summary "made by the model"`}

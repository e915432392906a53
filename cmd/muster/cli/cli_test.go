package cli

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"io"
	"net"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/api/apitest"
	"muster/scheduler"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestMain(m *testing.M) {
	time.Local = time.UTC // what people see is in their zone; golden files have one
	os.Exit(m.Run())
}

// world is a fleet, a folder with its sockets, and the surroundings of commands.
type world struct {
	t        *testing.T
	f        *apitest.Fleet
	dir      string
	srv      *api.Server
	env      map[string]string
	stdin    string
	terminal bool
	deps     Deps
}

func newWorld(t *testing.T, f *apitest.Fleet) *world {
	t.Helper()
	dir, err := os.MkdirTemp("", "muster")
	if err != nil {
		t.Fatal(err)
	}
	w := &world{t: t, f: f, dir: dir, env: map[string]string{"HOME": filepath.Join(dir, "home"), "MUSTER_HOME": dir}, deps: Deps{Version: "v0-test"}}
	t.Cleanup(func() {
		w.down()
		os.RemoveAll(dir)
	})
	w.up()
	return w
}

func (w *world) up() {
	w.t.Helper()
	srv, err := w.f.Serve(w.dir)
	if err != nil {
		w.t.Fatal(err)
	}
	w.srv = srv
}

func (w *world) down() {
	if w.srv != nil {
		w.srv.Close()
	}
}

// inSession makes the commands that follow a session's.
func (w *world) inSession(run, card, secret string) {
	w.t.Helper()
	file := filepath.Join(w.dir, "secret.json")
	if err := os.WriteFile(file, fmt.Appendf(nil, `{"run":%q,"role":"implementer","slot":"worker","secret":%q}`, run, secret), 0o600); err != nil {
		w.t.Fatal(err)
	}
	delete(w.env, "MUSTER_HOME")
	w.env["MUSTER_SOCKET"], w.env["MUSTER_SECRET_FILE"], w.env["MUSTER_CARD"], w.env["MUSTER_RUN"], w.env["MUSTER_BOARD"] = filepath.Join(w.dir, "session.sock"), file, card, run, "default"
}

// lines is an output that may be read while it is written.
type lines struct {
	mu  sync.Mutex
	b   bytes.Buffer
	new chan struct{}
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case l.new <- struct{}{}:
	default:
	}
	return l.b.Write(b)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// await waits until the output holds a text.
func (l *lines) await(t *testing.T, text string) {
	t.Helper()
	end := time.NewTimer(10 * time.Second)
	defer end.Stop()
	for !strings.Contains(l.String(), text) {
		select {
		case <-l.new:
		case <-end.C:
			t.Fatalf("not within 10 s: %q in\n%s", text, l.String())
		}
	}
}

// call is a command that runs.
type call struct {
	out, err *lines
	cancel   context.CancelFunc
	code     chan int
}

func (w *world) start(args ...string) *call {
	ctx, cancel := context.WithCancel(w.t.Context())
	c := &call{out: &lines{new: make(chan struct{}, 1)}, err: &lines{new: make(chan struct{}, 1)}, cancel: cancel, code: make(chan int, 1)}
	env := map[string]string{}
	for k, v := range w.env {
		env[k] = v
	}
	surroundings := IO{In: strings.NewReader(w.stdin), Out: c.out, Err: c.err, Env: func(k string) string { return env[k] }, Terminal: w.terminal, Now: w.f.Now}
	go func() { c.code <- Main(ctx, args, surroundings, w.deps) }()
	w.t.Cleanup(cancel)
	return c
}

// end waits for a command's exit code.
func (c *call) end(t *testing.T) int {
	t.Helper()
	select {
	case code := <-c.code:
		c.code <- code
		return code
	case <-time.After(2 * time.Minute):
		t.Fatalf("still running after two minutes\n%s\n%s", c.out, c.err)
		return -1
	}
}

func (w *world) run(args ...string) (out, err string, code int) {
	w.t.Helper()
	c := w.start(args...)
	code = c.end(w.t)
	return c.out.String(), c.err.String(), code
}

// ok runs a command that must succeed, and gives what it printed.
func (w *world) ok(args ...string) string {
	w.t.Helper()
	out, err, code := w.run(args...)
	if code != 0 {
		w.t.Fatalf("muster %q: exit %d\n%s\n%s", args, code, out, err)
	}
	return out
}

// transcript is a command as a person sees it.
func (w *world) transcript(args ...string) string {
	w.t.Helper()
	out, err, code := w.run(args...)
	var b strings.Builder
	quoted := make([]string, len(args))
	for i, a := range args {
		quoted[i] = shellWord(a)
	}
	fmt.Fprintf(&b, "$ muster %s\n%s", strings.Join(quoted, " "), out)
	for _, l := range strings.SplitAfter(err, "\n") {
		if l != "" {
			fmt.Fprintf(&b, "(stderr) %s", l)
		}
	}
	if code != 0 {
		fmt.Fprintf(&b, "(exit %d)\n", code)
	}
	me, _ := user.Current() // nil on no system that has sockets
	return strings.NewReplacer(w.dir, "DIR", me.Username+"@atlas", "ann@atlas").Replace(b.String()) + "\n"
}

func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.MkdirAll("testdata", 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs (go test -update writes it anew)\n--- got\n%s\n--- want\n%s", path, got, want)
	}
}

// story is a fleet with everything that reads can show.
func story() *apitest.Fleet {
	f := apitest.Story()
	f.Log("d-1.1", "1\n2\n3\n4\n5\n", true)
	f.RoundLog = []scheduler.Round{{Time: apitest.Begin.UnixMilli(), Started: []scheduler.RoundStart{{Card: "d-1", Run: "d-1.1", Machine: "atlas", Profile: "script"}},
		Queued: []scheduler.RoundWait{{Card: "d-3", Check: "parents", Text: "waits for d-2"}}, Failed: []scheduler.RoundWait{{Card: "d-9", Check: "cap", Text: "full"}},
		Seen: []scheduler.RoundSeen{{What: "d-2.1", Event: "machine_offline"}}, MS: map[string]float64{"plan": 0.5}}}
	return f
}

// reads are all verbs that read, with their arguments.
var reads = [][]string{{"status"}, {"node", "list"}, {"node", "show", "atlas"}, {"board", "list"}, {"board", "show"}, {"card", "list"}, {"card", "list", "--status", "done", "--status", "blocked"},
	{"card", "list", "--attention"}, {"attention"}, {"card", "list", "--board", "web"}, {"card", "show", "d-1"}, {"card", "show", "d-4"}, {"card", "show", "d-5"}, {"why", "d-3"}, {"why", "d-5", "--all"},
	{"runs", "d-2"}, {"log", "d-1"}, {"events", "--card", "d-1"}, {"dispatch", "--last"}, {"token", "list"}, {"version"},
	{"diff", "d-1"}, {"diff", "d-1", "--stat"}, {"diff", "d-99"}, {"gc", "--dry-run"}, {"gc", "--scratch"}, {"agent", "list"}, {"agent", "show", "d-1"}, {"agent", "memory", "d-1", "log"}, {"agent", "show", "d-99"}}

// TestReads holds what people see of a fleet against golden files; the same with
// --json, and -q.
func TestReads(t *testing.T) {
	for name, flags := range map[string][]string{"reads.txt": nil, "reads-json.txt": {"--json"}, "reads-q.txt": {"-q"}} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, story())
			w.f.Must(apitest.Manager(), board.VTokenCreate, board.TokenCreate{ID: board.HashSecret("x"), Role: "viewer", TTL: 3600})
			var all strings.Builder
			for _, args := range reads {
				all.WriteString(w.transcript(append(args[:len(args):len(args)], flags...)...))
			}
			got := regexp.MustCompile(`go1\.[0-9.]+[^,"]*|linux[/",]*amd64|darwin[/",]*arm64`).ReplaceAllString(all.String(), "GO")
			got = regexp.MustCompile(`"arch":"[a-z0-9]+","go":"GO","node":"test","os":"[a-z]+"`).ReplaceAllString(got, `GO`)
			golden(t, name, got)
		})
	}
}

// TestWrites follows cards through their lives by the verbs that write.
func TestWrites(t *testing.T) {
	w := newWorld(t, apitest.New())
	lint := filepath.Join(w.dir, "board.yaml")
	if err := os.WriteFile(lint, []byte(apitest.Commands), 0o600); err != nil {
		t.Fatal(err)
	}
	bad := filepath.Join(w.dir, "bad.yaml")
	if err := os.WriteFile(bad, []byte("version: 1\nname: x\nextends: default\nfrob: 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var all strings.Builder
	step := func(args ...string) { all.WriteString(w.transcript(args...)) }
	step("board", "apply", "-f", lint, "--dry-run")
	step("board", "apply", "-f", lint)
	step("board", "apply", "-f", bad)
	step("workflow", "lint", bad)
	step("workflow", "lint", lint)
	step("board", "create", "web", "prefix=w", "label=The web", "-f", lint)
	step("board", "create", "web")
	step("board", "set", "web", "keep=30", "params.review=false", "zone=Europe/Berlin")
	step("board", "set", "params.frob=1")
	step("card", "add", "build it", "--body", "make", "--priority", "5", "--label", "kind=x", "--skill", "go", "--max-runtime", "1h", "--start-after", "+2h")
	step("card", "add", "test it", "--after", "d-1", "-q")
	step("card", "add", "page", "--board", "web", "--json")
	step("card", "add", "part", "--subtask-of", "d-1")
	step("card", "add", "perhaps", "--triage")
	step("card", "add", "nobody", "--assignee", "ghost")
	step("card", "edit", "d-1", "--title", "build it well", "--start-after", "", "--label", "kind=")
	step("card", "edit", "d-99", "--title", "x")
	step("card", "link", "d-1", "--after", "d-2")
	step("card", "link", "d-4", "--after", "d-1", "--parent", "d-2")
	step("card", "unlink", "d-4", "--after", "d-2")
	step("card", "link", "d-4")
	step("card", "show", "d-1")
	step("comment", "d-1", "two\nlines")
	step("event", "d-1", "comment", "--payload", `{"text":"raw"}`)
	step("event", "d-1", "comment", "--set", "text=set")
	step("block", "d-1", "no machine", "--kind", "needs_input")
	step("unblock", "d-1", "--why", "here is one")
	step("start", "d-1", "--force", "--why", "past its state nobody gets it")
	step("start", "d-3")
	step("start", "d-3")
	step("card", "edit", "d-3", "--priority", "9", "--model", "large", "--body", "another text")
	step("card", "edit", "d-3", "--label", "a=b", "--json")
	step("reclaim", "d-3", "--why", "once more")
	step("start", "d-3")
	step("reclaim", "d-3", "--force", "--why", "that machine is dead")
	step("stop-run", "d-3", "--why", "not today")
	step("specify", "d-4", "--title", "a clear card", "--body", "what to do")
	step("cancel", "d-4", "--why", "not needed")
	step("reopen", "d-4", "--why", "needed after all")
	step("complete", "d-4", "--summary", "it was done already")
	step("archive", "d-4")
	step("unarchive", "d-4")
	step("reassign", "d-2", "codex")
	step("move", "d-2", "--machine", "atlas", "--why", "its data is there")
	step("move", "d-2", "--machine", "nowhere")
	step("move", "d-2", "--machine", "any", "--json")
	step("forget", "d-2")
	step("context", "d-2")
	step("node", "set", "atlas", "local=none")
	step("card", "add", "several things", "--triage")
	step("decompose", "d-5", "--child", "one@script", "--child", "two")
	step("card", "list")
	step("request-changes", "d-2", "why not")
	step("node", "promote", "atlas")
	step("node", "demote", "atlas")
	step("token", "create", "--ttl", "1h")
	step("token", "create", "--role", "viewer", "--ttl", "2h", "--json")
	step("token", "revoke", board.HashSecret("secret7200")[:8])
	golden(t, "writes.txt", all.String())
}

// TestExitCodes: 0 done, 1 refused, 2 usage, 3 no node or leader, 4 unknown.
func TestExitCodes(t *testing.T) {
	w := newWorld(t, story())
	away := filepath.Join(w.dir, "nobody")
	for _, x := range []struct {
		code  int
		words string // on stderr
		args  []string
	}{
		{0, "", []string{"status"}},
		{0, "", []string{"--help"}},
		{1, "no card", []string{"card", "show", "d-99"}},
		{1, "no board", []string{"card", "add", "x", "--board", "none"}},
		{1, "does not apply", []string{"event", "d-1", "frobnicate"}},
		{1, "no node", []string{"node", "show", "x"}},
		{1, "has not been started yet", []string{"log", "d-3"}},
		{1, "no log here", []string{"log", "d-2"}},
		{1, "no such file", []string{"workflow", "lint", filepath.Join(w.dir, "none.yaml")}},
		{1, "no such file", []string{"board", "apply", "-f", filepath.Join(w.dir, "none.yaml")}},
		{2, "unknown command", []string{"frobnicate"}},
		{2, "unknown verb", []string{"card", "frobnicate"}},
		{2, "which verb", []string{"card"}},
		{2, "unknown flag", []string{"status", "--frob"}},
		{2, "invalid argument", []string{"status", "--timeout", "soon"}},
		{2, "above 0", []string{"status", "--timeout", "-1s"}},
		{2, "\"high\" for \"--priority\" flag\n", []string{"card", "add", "x", "--priority", "high"}},
		{2, "use: muster card add TITLE", []string{"card", "add"}},
		{2, "use: muster card show", []string{"card", "show", "a", "b"}},
		{2, "which card", []string{"card", "show"}},
		{2, "use: muster move CARD", []string{"move", "d-1"}},
		{2, "say --why", []string{"move", "d-1", "--machine", "any", "--force"}},
		{2, "use: muster node set", []string{"node", "set", "atlas", "role=king"}},
		{1, "no card", []string{"context", "d-99"}},
		{1, `there is no status "bogus"`, []string{"card", "list", "--status", "bogus"}},
		{1, "nowhere", []string{"card", "list", "--machine", "nowhere"}},
		{1, `no events of the kind "bogus"`, []string{"events", "--kind", "bogus"}},
		{1, `no events of the kind "bogus"`, []string{"events", "-f", "--kind", "bogus"}},
		{1, "no board", []string{"events", "--board", "bogus"}},
		{2, "use: muster comment CARD TEXT", []string{"comment", "d-1", " "}},
		{2, "use: muster comment CARD TEXT", []string{"comment", "words"}},
		{2, "change what", []string{"card", "edit", "d-1"}},
		{2, "is no time", []string{"card", "add", "x", "--start-after", "later"}},
		{2, "KEY=VALUE", []string{"card", "add", "x", "--label", "x"}},
		{2, "--kind KIND (needs_input, capability", []string{"block", "d-5", "why"}},
		{2, "--summary", []string{"complete", "d-5"}},
		{2, "say --why", []string{"reclaim", "d-2", "--force"}},
		{2, "say --why", []string{"start", "d-5", "--force"}},
		{2, "no JSON object", []string{"event", "d-1", "comment", "--payload", "[]"}},
		{2, "which workflow", []string{"board", "apply"}},
		{2, "into what", []string{"decompose", "d-5"}},
		{2, "a token is needed", []string{"join"}},
		{2, "--slots", []string{"up", "--slots", "-1"}},
		{2, "use k=v", []string{"up", "--label", "x"}},
		{2, "completion for", []string{"completion", "csh"}},
		{2, "--last", []string{"events", "--last", "0"}},
		{2, "--last", []string{"dispatch"}},
		{2, "use one of them", []string{"dispatch", "--dry-run", "--last"}},
		{1, "no board", []string{"dispatch", "--dry-run", "--board", "none"}},
		{2, "give --why", []string{"pause"}},
		{2, "give --why", []string{"pause", "--why", " "}},
		{1, "no board", []string{"pause", "--board", "none", "--why", "x"}},
		{1, "no board", []string{"resume", "--board", "none"}},
		{1, "no node", []string{"node", "drain", "none"}},
		{1, "no node", []string{"node", "undrain", "none"}},
		{2, "use: muster node drain N", []string{"node", "drain"}},
		{2, "--ttl", []string{"token", "create", "--ttl", "0s"}},
		{3, "no muster node is running here", []string{"status", "--data", away}},
		{3, "no muster node is running here", []string{"card", "add", "x", "--data", away}},
	} {
		t.Run(strings.Join(x.args, " "), func(t *testing.T) {
			out, err, code := w.run(x.args...)
			if code != x.code || !strings.Contains(err, x.words) {
				t.Errorf("exit %d, want %d with %q\n%s\n%s", code, x.code, x.words, out, err)
			}
			if x.code != 0 && (out != "" || len(strings.Split(strings.TrimSpace(err), "\n")) > 2) {
				t.Errorf("a failure is at most a line and a hint, and nothing on stdout:\n%s\n%s", out, err)
			}
			if x.code == 2 && !strings.Contains(err, "--help") {
				t.Errorf("usage without the way to help: %s", err)
			}
		})
	}
}

// TestFailuresAsJSON: the envelope of a failure, on stdout, for programs.
func TestFailuresAsJSON(t *testing.T) {
	w := newWorld(t, story())
	for _, x := range []struct {
		fail *board.Error
		code int
		want string
	}{
		{board.Errorf(board.Refused, "no").WithCheck("cap").WithHint("wait"), 1, `{"v":1,"error":{"code":"refused","check":"cap","message":"no","hint":"wait"}}`},
		{board.Errorf(board.Unavailable, "no leader").WithCheck("no_leader"), 3, `{"v":1,"error":{"code":"unavailable","check":"no_leader","message":"no leader"}}`},
		{board.Errorf(board.UnknownOutcome, "nobody knows"), 4, `{"v":1,"error":{"code":"unknown_outcome","message":"nobody knows","request_id":"ID"}}`},
	} {
		w.f.Fail = x.fail
		out, err, code := w.run("card", "add", "x", "--json")
		got := regexp.MustCompile(`"request_id":"1-era[^"]+"`).ReplaceAllString(strings.TrimSpace(out), `"request_id":"ID"`)
		if code != x.code || got != x.want || err != "" {
			t.Errorf("exit %d, %s, stderr %q; want %d, %s", code, got, err, x.code, x.want)
		}
	}
	if out, err, code := w.run("frobnicate", "--json"); code != 2 || err != "" || !strings.Contains(out, `"check":"usage"`) {
		t.Errorf("an unknown command: exit %d: %s%s", code, out, err)
	}
	out, err, code := w.run("status", "--json", "-q")
	if code != 2 || err != "" || out != `{"v":1,"error":{"code":"invalid","check":"usage","message":"--json and -q exclude each other","hint":"see: muster status --help"}}`+"\n" {
		t.Errorf("exit %d: %s%s", code, out, err)
	}
}

// TestUnknownOutcomeTellsTheID: exit 4 says under which id to ask again, and that
// finds the true outcome.
func TestUnknownOutcomeTellsTheID(t *testing.T) {
	w := newWorld(t, apitest.New())
	w.f.Fail = board.Errorf(board.UnknownOutcome, "nobody knows")
	_, err, code := w.run("card", "add", "x")
	m := regexp.MustCompile(`--request-id (\S+)`).FindStringSubmatch(err)
	if code != 4 || m == nil {
		t.Fatalf("exit %d: %s", code, err)
	}
	w.f.Fail = nil
	for range 2 { // whoever asks twice gets one card
		if out := w.ok("card", "add", "x", "-q", "--request-id", m[1]); out != "d-1\n" {
			t.Errorf("got %q", out)
		}
	}
}

// TestNoLeader: a write gives up after --timeout, a read goes on and says so.
func TestNoLeader(t *testing.T) {
	w := newWorld(t, story())
	w.f.NoLeader = true
	if _, err, code := w.run("card", "add", "x", "--timeout", "50ms"); code != 3 || !strings.Contains(err, "no leader") {
		t.Errorf("exit %d: %s", code, err)
	}
	if _, err, code := w.run("card", "list", "--consistent"); code != 3 {
		t.Errorf("a consistent read: exit %d: %s", code, err)
	}
	if out := w.ok("status"); !strings.Contains(out, "NO QUORUM") || strings.Contains(out, "NO QUORUM, leader") || !strings.Contains(out, "alarm: no leader is reachable") {
		t.Errorf("status: %s", out)
	}
	if out := w.ok("why", "d-5"); !strings.Contains(out, "without the leader's readings") {
		t.Errorf("why: %s", out)
	}
}

// TestVerbs: the verbs that scripts and people rely on are there, with a word of help each.
func TestVerbs(t *testing.T) {
	w := newWorld(t, apitest.New())
	for _, v := range strings.Split("up,join,stop,restart,token create,token list,token revoke,status,node list,node show,node drain,node undrain,pause,resume,node promote,node demote,board create,board apply,board set,board list,board show,"+
		"card add,card list,card show,card edit,card put,card link,card unlink,event,comment,block,unblock,complete,request-review,request-changes,start,stop-run,cancel,reclaim,reopen,archive,unarchive,forget,"+
		"subscribe,unsubscribe,inbox,send,board export,board import,"+
		"specify,decompose,reassign,move,context,node set,node label,heartbeat,why,dispatch,log,runs,events,wait,workflow lint,workflow test,workflow graph,workflow show,check,demo,version,completion", ",") {
		out := w.ok(append(strings.Fields(v), "--help")...)
		if first, _, _ := strings.Cut(out, "\n"); first == "" || !strings.Contains(out, "muster "+v) {
			t.Errorf("muster %s --help: %s", v, out)
		}
	}
}

// TestCompletion: scripts for three shells.
func TestCompletion(t *testing.T) {
	w := newWorld(t, apitest.New())
	for shell, words := range map[string]string{"bash": "__start_muster", "zsh": "#compdef muster", "fish": "complete -c muster"} {
		if out := w.ok("completion", shell); !strings.Contains(out, words) {
			t.Errorf("%s: %.200s", shell, out)
		}
	}
	if out := w.ok("__complete", "card", ""); !strings.Contains(out, "add\t") || !strings.Contains(out, "unlink\t") {
		t.Errorf("completion of card: %s", out)
	}
}

// TestOtherNode: --node goes through the door with the token of --token-file.
func TestOtherNode(t *testing.T) {
	w := newWorld(t, story())
	w.f.Must(apitest.Manager(), board.VTokenCreate, board.TokenCreate{ID: board.HashSecret("sesame"), Role: "viewer"})
	token := filepath.Join(w.dir, "token")
	if err := os.WriteFile(token, []byte("  muster1.xyz\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.deps.Door = func(addr, tok string) (func(context.Context) (net.Conn, error), string, error) {
		if addr != "192.0.2.9:1" || tok != "muster1.xyz" {
			t.Errorf("door %q with token %q", addr, tok)
		}
		return func(context.Context) (net.Conn, error) { return net.Dial("unix", filepath.Join(w.dir, "muster.sock")) }, "Bearer sesame", nil
	}
	if out := w.ok("--node", "192.0.2.9:1", "--token-file", token, "-q", "card", "list"); !strings.HasPrefix(out, "d-1\nd-2\n") {
		t.Errorf("got %s", out)
	}
	if _, err, code := w.run("--node", "192.0.2.9:1", "status"); code != 2 || !strings.Contains(err, "token") {
		t.Errorf("without a token: exit %d: %s", code, err)
	}
	w.stdin = "muster1.xyz\n"
	w.ok("--node", "192.0.2.9:1", "--token-file", "-", "status")
}

// TestCheck: the report of a stopped node's data; faults fail.
func TestCheck(t *testing.T) {
	w := newWorld(t, apitest.New())
	rep := &CheckReport{Path: "/x", Facts: []Fact{{"state", "Seq 7"}}}
	asked := ""
	w.deps.Check = func(path string) (*CheckReport, error) { asked = path; return rep, nil }
	if out := w.ok("check", "/x"); asked != "/x" || !strings.Contains(out, "state  Seq 7\nall is well") {
		t.Errorf("path %q: %s", asked, out)
	}
	if w.ok("check"); asked != w.dir {
		t.Errorf("without a path it looks at %q", asked)
	}
	rep.Faults = []string{"a page is broken"}
	if _, err, code := w.run("check", "/x"); code != 1 || !strings.Contains(err, "fault: a page is broken") {
		t.Errorf("exit %d: %s", code, err)
	}
	if out, _, code := w.run("check", "/x", "--json"); code != 1 || !strings.Contains(out, `"faults":["a page is broken"]`) {
		t.Errorf("exit %d: %s", code, out)
	}
}

// TestBenchGetsItsArguments: what follows is the bench's own, flags and all.
func TestBenchGetsItsArguments(t *testing.T) {
	w := newWorld(t, apitest.New())
	var got []string
	w.deps.Bench = func(args []string, _, _ io.Writer) int { got = args; return 3 }
	if _, _, code := w.run("bench", "null", "-windows", "2"); code != 3 || strings.Join(got, " ") != "null -windows 2" {
		t.Errorf("exit %d, args %q", code, got)
	}
}

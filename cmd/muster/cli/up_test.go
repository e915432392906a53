package cli

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api/apitest"
)

// TestUpTellsWhatToTypeNext: progress on stderr, then the node and the next commands; Ctrl-C is no failure.
func TestUpTellsWhatToTypeNext(t *testing.T) {
	w := newWorld(t, apitest.New())
	var got UpOptions
	w.deps.Up = func(ctx context.Context, o UpOptions) error {
		got = o
		o.Progress("making a fleet of one ...")
		i := w.f.Info()
		i.Data = o.Data
		o.Ready(i)
		<-ctx.Done()
		return nil
	}
	c := w.start("up", "--name", "atlas", "--listen", "192.0.2.1:7100", "--advertise", "192.0.2.2:7100", "--label", "gpu=a=b", "--label", "x=", "--slots", "3", "--repo", "app=/srv/app", "--ports", "21000-21999", "--replica", "--timers", "wan", "--verbose")
	c.out.await(t, "Ctrl-C")
	c.cancel()
	if code := c.end(t); code != 0 {
		t.Fatalf("exit %d: %s", code, c.err)
	}
	want := "node atlas is up (fleet fleet0, pid 42)\n  data    " + w.dir + "\n  listens 192.0.2.1:7100\n\nnext, in another terminal:\n"
	if out := c.out.String(); !strings.HasPrefix(out, want) || !strings.Contains(out, "  muster --data "+w.dir+" status ") || !strings.Contains(out, "card add") || !strings.Contains(out, "token create") {
		t.Errorf("stdout:\n%s", out)
	}
	if err := c.err.String(); !strings.HasPrefix(err, "making a fleet of one ...\n") || !strings.Contains(err, "sessions go on") {
		t.Errorf("stderr:\n%s", err)
	}
	got.Progress, got.Ready = nil, nil
	if x := (UpOptions{Data: w.dir, Name: "atlas", Listen: "192.0.2.1:7100", Advertise: "192.0.2.2:7100", Labels: map[string]string{"gpu": "a=b", "x": ""}, Slots: 3, Repos: map[string]string{"app": "/srv/app"}, Ports: [2]int{21000, 21999}, Replica: true, Timers: "wan", Verbose: true}); !reflect.DeepEqual(got, x) {
		t.Errorf("options %+v, want %+v", got, x)
	}
}

// TestTokenOfJoin: as an argument, from stdin, from a file; up --join is the same.
func TestTokenOfJoin(t *testing.T) {
	w := newWorld(t, apitest.New())
	token := ""
	w.deps.Up = func(_ context.Context, o UpOptions) error { token = o.Token; return nil }
	file := filepath.Join(w.dir, "token")
	if err := os.WriteFile(file, []byte("muster1.file\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	w.stdin = "muster1.stdin\nmore"
	for _, x := range []struct {
		want string
		args []string
	}{
		{"muster1.arg", []string{"join", "muster1.arg"}}, {"muster1.stdin\nmore", []string{"join", "-"}}, {"muster1.file", []string{"join", "--token-file", file}},
		{"muster1.arg", []string{"up", "--join", "muster1.arg"}}, {"", []string{"up"}},
	} {
		token = "unset"
		w.ok(x.args...)
		if first, _, _ := strings.Cut(token, "\n"); first != strings.Split(x.want, "\n")[0] {
			t.Errorf("%q: token %q, want %q", x.args, token, x.want)
		}
	}
}

// TestEmptyToken makes nothing: a join without a token would make a fleet of its own.
func TestEmptyToken(t *testing.T) {
	w := newWorld(t, apitest.New())
	w.deps.Up = func(context.Context, UpOptions) error { t.Error("a node is started"); return nil }
	file := filepath.Join(w.dir, "token")
	if err := os.WriteFile(file, []byte(" \n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, x := range []struct {
		says string
		args []string
	}{
		{"token file " + file + " is empty", []string{"join", "--token-file", file}}, {"token file /dev/null is empty", []string{"join", "--token-file", "/dev/null"}},
		{"stdin is empty", []string{"join", "-"}}, {"stdin is empty", []string{"up", "--join", "-"}},
	} {
		if _, err, code := w.run(x.args...); code != 2 || !strings.Contains(err, x.says) {
			t.Errorf("%q: exit %d: %s", x.args, code, err)
		}
	}
}

// TestRestartCarriesNoToken: it may be used up by then, and the folder is of the fleet.
func TestRestartCarriesNoToken(t *testing.T) {
	for args, want := range map[string]string{
		"--data join join - --name b":                        "--data join up --name b",
		"join --token-file join --name b --data x":           "up --name b --data x",
		"join --token-file=f --listen 127.0.0.1:1 -q":        "up --listen 127.0.0.1:1 -q",
		"up --data x --progress-fd 3 --slots 2 --join -":     "up --data x --progress-fd -1 --slots 2",
		"up --join=- --label a=b":                            "up --label a=b",
		"join muster1.abc --name b":                          "up --name b",
		"up --name a --data d --repo app=/srv/app --replica": "up --name a --data d --repo app=/srv/app --replica",
	} {
		if got := strings.Join(AgainArgs(strings.Fields(args)), " "); got != want {
			t.Errorf("%s: %s, want %s", args, got, want)
		}
	}
}

// TestUpFails with the node's words and code.
func TestUpFails(t *testing.T) {
	w := newWorld(t, apitest.New())
	w.deps.Up = func(context.Context, UpOptions) error {
		return board.Errorf(board.Unavailable, "no node of the fleet could be reached").WithHint("is it up?")
	}
	if _, err, code := w.run("up"); code != 3 || err != "muster: no node of the fleet could be reached\nhint: is it up?\n" {
		t.Errorf("exit %d: %s", code, err)
	}
}

// TestNotesFromTheBackground: what a detached node tells its starter.
func TestNotesFromTheBackground(t *testing.T) {
	var out, errOut bytes.Buffer
	a := &app{io: IO{Out: &out, Err: &errOut, Env: func(string) string { return "" }, Now: time.Now}}
	err := a.readNotes(strings.NewReader(`{"progress":"asking \u001b[31m ..."}`+"\nrubbish\n"+`{"ready":{"name":"atlas","fleet":"f","data":"/x","addr":"192.0.2.1:1","pid":7}}`+"\n"), "/x")
	if err != nil || !strings.Contains(errOut.String(), `asking \x1b[31m ...`) || !strings.Contains(out.String(), "node atlas is up (fleet f, pid 7)") {
		t.Errorf("ready: %v\n%s%s", err, &out, &errOut)
	}
	if err := a.readNotes(strings.NewReader(`{"failed":{"code":"refused","message":"the token ended","hint":"make one"},"code":1}`), "/x"); exitCode(err) != 1 || !strings.Contains(errOut.String(), "muster: the token ended\nhint: make one\n") {
		t.Errorf("failed: %v\n%s", err, &errOut)
	}
	if err := a.readNotes(strings.NewReader(""), "/x"); err == nil || !strings.Contains(err.Error(), "/x/node.log") {
		t.Errorf("gone: %v", err)
	}
}

// TestUpInTheBackground: the node's side of it. It logs to the folder, tells its
// notes on the pipe, and lets go of it when it is up.
func TestUpInTheBackground(t *testing.T) {
	for name, fail := range map[string]error{"up": nil, "fails": board.Errorf(board.Refused, "the port is in use")} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, apitest.New())
			r, pipe, err := os.Pipe()
			if err != nil {
				t.Fatal(err)
			}
			defer r.Close()
			fd, err := syscall.Dup(int(pipe.Fd()))
			if err != nil {
				t.Fatal(err)
			}
			pipe.Close()
			w.deps.Up = func(_ context.Context, o UpOptions) error {
				if o.LogFile != filepath.Join(w.dir, "node.log") {
					t.Errorf("logs to %q", o.LogFile)
				}
				o.Progress("one moment")
				if fail != nil {
					return fail
				}
				o.Ready(w.f.Info())
				o.Progress("to nobody") // the pipe is closed: nothing happens
				return nil
			}
			_, _, code := w.run("up", "--"+progressFlag, itoa(fd))
			var out, errOut bytes.Buffer
			a := &app{io: IO{Out: &out, Err: &errOut, Env: func(string) string { return "" }, Now: time.Now}}
			err = a.readNotes(r, w.dir)
			if !strings.Contains(errOut.String(), "one moment") || exitCode(err) != code || (code == 0) != (fail == nil) {
				t.Errorf("exit %d, told %d: %s%s", code, exitCode(err), &out, &errOut)
			}
		})
	}
}

func itoa(n int) string { return fmtUint(uint64(n)) }

// TestBackgroundArguments: all flags reach the node in the background, and no token.
func TestBackgroundArguments(t *testing.T) {
	u := &upFlags{o: UpOptions{Data: "/d", Name: "n", Listen: "l", Advertise: "a", Token: "muster1.secret", Slots: 2, Replica: true, Timers: "wan", Verbose: true}, labels: []string{"k=v", "x="}}
	got := strings.Join(u.args(), " ")
	if got != "up --data /d --progress-fd 3 --name n --listen l --advertise a --timers wan --label k=v --label x= --slots 2 --replica --verbose --join -" {
		t.Errorf("got %s", got)
	}
	if again := strings.Join(AgainArgs(u.args()), " "); !strings.Contains(again, "--progress-fd -1 ") {
		t.Errorf("after a restart nobody listens on fd 3: %s", again)
	}
}

// TestRestartBinary: named once, used once; what cannot be started is refused before anything stops.
func TestRestartBinary(t *testing.T) {
	dir := t.TempDir()
	exe := filepath.Join(dir, "muster2")
	if err := os.WriteFile(exe, nil, 0o755); err != nil {
		t.Fatal(err)
	}
	if got := TakeBinary(dir); got != "" {
		t.Errorf("without a word: %q", got)
	}
	if err := leaveBinary(dir, exe); err != nil {
		t.Fatal(err)
	}
	if got := TakeBinary(dir); got != exe {
		t.Errorf("got %q", got)
	}
	if got := TakeBinary(dir); got != "" {
		t.Errorf("a second time: %q", got)
	}
	for _, bad := range []string{dir, filepath.Join(dir, "none")} {
		if err := leaveBinary(dir, bad); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

// TestRestart waits until the node that answers is a new one.
func TestRestart(t *testing.T) {
	w := newWorld(t, apitest.New())
	c := w.start("restart")
	if again := <-w.f.Stopped; !again {
		t.Error("it was told to stop for good")
	}
	select {
	case code := <-c.code:
		t.Fatalf("ended with %d while the old node answers", code)
	case <-time.After(30 * time.Millisecond):
	}
	w.f.Again()
	if code := c.end(t); code != 0 || !strings.Contains(c.out.String(), "node atlas is up again") {
		t.Errorf("exit %d: %s%s", code, c.out, c.err)
	}
}

// TestStopTellsWhatGoesOn: sessions outlive their node, and by when their leases end them.
func TestStopTellsWhatGoesOn(t *testing.T) {
	w := newWorld(t, story())
	out := w.ok("stop")
	if again := <-w.f.Stopped; again {
		t.Error("it was told to start again")
	}
	if !strings.Contains(out, "node atlas is stopped") || !strings.Contains(out, "session of d-2 (run d-2.1) goes on; its lease ends it in 10m") {
		t.Errorf("got %s", out)
	}
}

// TestWaitFree: stop returns when the folder is free, so that the next start does not collide.
func TestWaitFree(t *testing.T) {
	dir := t.TempDir()
	lock, err := os.Create(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	if err := waitFree(t.Context(), dir, 30*time.Millisecond); err == nil {
		t.Error("a held folder counts as free")
	}
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_UN); err != nil {
		t.Fatal(err)
	}
	if err := waitFree(t.Context(), dir, 5*time.Second); err != nil {
		t.Error(err)
	}
	if err := waitFree(t.Context(), filepath.Join(dir, "none"), time.Second); err != nil {
		t.Errorf("a folder that is not here: %v", err)
	}
}

package launcher

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/board"
)

// hooked lets a session leave a script for the hook in its workspace, and then sends
// its card through it. It answers the run.
func (n *testNodeT) hooked(script string) *board.Run {
	n.t.Helper()
	run := n.start("agent", leaves(script))
	n.launched(run)
	eventually(n.t, "its hook", func() bool { return exists(filepath.Join(n.fleet.run(run).Workspace, "hook")) })
	must(n.t, n.event(n.fleet.run(run).Card, "to_merge"))
	return n.fleet.run(run)
}

func leaves(script string) string {
	return "cat > .hook <<'END'\n" + script + "\nEND\nmv .hook hook; " + untilStopped
}

// answered waits for the answer of a card's hook: its event and its payload.
func (f *fleet) answered(t *testing.T, card string) (kind string, p map[string]any) {
	t.Helper()
	eventually(t, "the end of the hook of "+card, func() bool {
		_ = f.view(func(v board.View) error {
			board.EachEvent(v, "", func(_ string, e *board.Event) bool {
				if e.Card == card && strings.HasPrefix(e.Kind, "hook_") {
					kind = e.Kind
					_ = json.Unmarshal(e.Payload, &p)
				}
				return kind == ""
			})
			return nil
		})
		return kind != ""
	})
	return kind, p
}

func (n *testNodeT) hookOrders() (list []*board.Order) {
	_ = n.view(func(v board.View) error {
		board.EachOrder(v, testNode, func(o *board.Order) bool {
			if o.Kind == board.OrderHook {
				list = append(list, o)
			}
			return true
		})
		return nil
	})
	return list
}

func (n *testNodeT) flow(yaml string) {
	n.t.Helper()
	req := request(person(), board.VBoardApply, board.BoardApply{Board: "web", YAML: yaml})
	if res := n.do(context.Background(), &req); res.Err != nil {
		n.t.Fatal(res.Err)
	}
}

// TRI-08, M-17: the node of a card's workspace runs the hook there, without a session's
// secret, ends what it leaves behind, and answers with its code and its last words.
func TestHookRunsInTheWorkspace(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	pids := filepath.Join(t.TempDir(), "pid")
	r := n.hooked(`set -e; test "$PWD" = "$MUSTER_WORKSPACE"; test -f "$PWD/hook"; test "$MUSTER_BOARD $BASE" = "web main"; test "$OTHER" = "$HOME"
test -z "$MUSTER_RUN$MUSTER_SECRET_FILE$MUSTER_SOCKET$MUSTER_LOCK"; test -n "$MUSTER_PORT_BASE"
echo "merged $MUSTER_CARD"; sh -c 'trap "" TERM; echo $$ > ` + pids + `; while :; do sleep 1; done' & while [ ! -s ` + pids + ` ]; do sleep 0.02; done`)
	kind, p := n.answered(t, r.Card)
	if c := n.card(r.Card); kind != "hook_done" || p["output"] != "merged "+r.Card || p["code"] != 0.0 || c.Status != "done" || c.Hook != "" {
		t.Errorf("%s %v; the card is %s", kind, p, c.Status)
	}
	if pid := pidIn(t, pids); alive(pid) {
		t.Errorf("the hook's child %d lives", pid)
	}
	eventually(t, "its folder gone", func() bool { return len(n.oldHooks()) == 0 })
}

// TRI-08: a hook that fails is told with the reason and its last words, and the workflow goes on.
func TestHookThatFails(t *testing.T) {
	t.Parallel()
	short := strings.Replace(testWorkflow, "timeout: 600", "timeout: 1", 1)
	none := strings.Replace(testWorkflow, `[sh, -c, 'sh "$MUSTER_WORKSPACE/hook"']`, "[no-such-program-here]", 1)
	unset := strings.Replace(testWorkflow, "{from: HOME}", "{from: NO_SUCH_NAME}", 1)
	for name, c := range map[string]struct {
		yaml, script string
		gone         bool
		says         []string
	}{
		"exit code":   {testWorkflow, "seq 1000; echo conflict in a; exit 3", false, []string{"exit code 3:\n", "\n1000\nconflict in a"}},
		"limit":       {short, "echo begun; while :; do sleep 0.05; done", false, []string{"took longer than 1s", "begun"}},
		"workspace":   {testWorkflow, "exit 0", true, []string{"/workspaces/web-1 of card web-1 is gone from this machine"}},
		"program":     {none, "exit 0", false, []string{"no-such-program-here"}},
		"environment": {unset, "exit 0", false, []string{"NO_SUCH_NAME, which is not set"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			n := newNode(t, nil)
			n.flow(c.yaml)
			estop := filepath.Join(n.cfg.Dir, "ESTOP")
			if c.gone {
				n.flow(testWorkflow)
			}
			run := n.start("agent", leaves(c.script))
			n.launched(run)
			r := n.fleet.run(run)
			eventually(t, "its hook", func() bool { return exists(filepath.Join(r.Workspace, "hook")) })
			if c.gone {
				must(t, os.WriteFile(estop, nil, 0o600)) // it waits until the folder is away
			}
			must(t, n.event(r.Card, "to_merge"))
			if c.gone {
				n.gone(run)
				must(t, os.RemoveAll(r.Workspace))
				must(t, os.Remove(estop))
				n.Contact()
			}
			kind, p := n.answered(t, r.Card)
			said, _ := p["error"].(string)
			for _, words := range c.says {
				if kind != "hook_failed" || !strings.Contains(said, words) || len(said) > 1500 {
					t.Errorf("%s %q does not say %q", kind, said, words)
				}
			}
			if c := n.card(r.Card); c.Status != "ready" || c.Failures != 1 {
				t.Errorf("the card is %s, with %d failures", c.Status, c.Failures)
			}
		})
	}
}

// M-16: ESTOP holds a hook; it runs when that is lifted.
func TestEstopHoldsAHook(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	run := n.start("agent", leaves("exit 0"))
	n.launched(run)
	r := n.fleet.run(run)
	eventually(t, "its hook", func() bool { return exists(filepath.Join(r.Workspace, "hook")) })
	estop := filepath.Join(n.cfg.Dir, "ESTOP")
	must(t, os.WriteFile(estop, nil, 0o600))
	must(t, n.event(r.Card, "to_merge"))
	n.gone(run)
	n.ask(n.round)
	if list := n.hookOrders(); len(list) != 1 || len(n.oldHooks()) != 0 {
		t.Fatalf("%d orders, begun: %v", len(list), n.oldHooks())
	}
	must(t, os.Remove(estop))
	n.Contact()
	if kind, p := n.answered(t, r.Card); kind != "hook_done" {
		t.Errorf("%s %v", kind, p)
	}
}

// A card that goes on without its hook: the hook is ended before the next session works there.
func TestHookOfACardThatLeftIsEnded(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	pids := filepath.Join(t.TempDir(), "pid")
	r := n.hooked("trap '' TERM; echo $$ > " + pids + "; while :; do sleep 0.05; done")
	pid := pidIn(t, pids)
	must(t, n.event(r.Card, "from_merge"))
	req := request(board.Platform(), board.VStart, board.Start{Card: r.Card, Node: testNode})
	res := n.do(context.Background(), &req)
	if res.Err != nil {
		t.Fatal(res.Err)
	}
	var a struct{ Run string }
	must(t, json.Unmarshal(res.Data, &a))
	n.launched(a.Run)
	if alive(pid) || len(n.hookOrders()) != 0 || len(n.oldHooks()) != 0 {
		t.Errorf("alive %v, folders %v", alive(pid), n.oldHooks())
	}
}

// M-17: a node that is killed while a hook runs finds it again: how it ended, that it
// still runs, or that its keeper was killed as well. It never runs it twice.
func TestHookOutlivesItsNode(t *testing.T) {
	for name, c := range map[string]struct{ kind, says string }{
		"ended": {"merged", ""}, "running": {"merged", ""}, "killed": {"merge failed", "keeper died"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := newProcess(t)
			dir := t.TempDir()
			p.mustAsk(order{Op: "file", Profile: "agent", Script: leaves("echo x >> " + dir + "/marks; echo $$ > " + dir + "/pid; while [ ! -e " + dir + "/go ]; do sleep 0.02; done; exit 0")})
			a := p.until("the start", func(a answer) bool { return a.Runs[0].Launched != 0 })
			eventually(t, "its hook", func() bool { return exists(filepath.Join(a.Runs[0].Workspace, "hook")) })
			p.mustAsk(order{Op: "event", Card: "web-1", Event: "to_merge"})
			pid := pidIn(t, dir+"/pid")
			jobs, err := filepath.Glob(filepath.Join(p.dir, "jobs", hookPrefix+"*"))
			if err != nil || len(jobs) != 1 {
				t.Fatalf("%v %v", jobs, err)
			}
			p.kill()
			if !alive(pid) {
				t.Fatal("the hook ended with its node")
			}
			switch name {
			case "ended":
				must(t, os.WriteFile(dir+"/go", nil, 0o600))
				eventually(t, "its end", func() bool { return ReadExitMust(jobs[0]) != nil })
			case "killed":
				proc, err := ReadProc(jobs[0])
				must(t, err)
				killTree(t, proc.Keeper)
			}
			p.run()
			if name == "running" {
				p.mustAsk(order{Op: "runs"})
				must(t, os.WriteFile(dir+"/go", nil, 0o600))
			}
			want := map[string]string{"merged": "done", "merge failed": "ready"}[c.kind]
			p.until("the answer", func(a answer) bool { return a.Cards["web-1"] == want })
			if b, _ := os.ReadFile(dir + "/marks"); string(b) != "x\n" {
				t.Errorf("run as %q", b)
			}
			if alive(pid) {
				t.Error("it lives")
			}
		})
	}
}

// M-17: a hook whose folder was written and that never began is run by the next life of its node.
func TestHookThatNeverBegan(t *testing.T) {
	t.Parallel()
	n := newNode(t, nil)
	marks := filepath.Join(t.TempDir(), "marks")
	run := n.start("agent", leaves("echo x >> "+marks))
	n.launched(run)
	r := n.fleet.run(run)
	eventually(t, "its hook", func() bool { return exists(filepath.Join(r.Workspace, "hook")) })
	estop := filepath.Join(n.cfg.Dir, "ESTOP")
	must(t, os.WriteFile(estop, nil, 0o600))
	must(t, n.event(r.Card, "to_merge"))
	n.gone(run)
	o := n.hookOrders()[0]
	var h board.HookSpec
	must(t, json.Unmarshal(o.Spec, &h))
	must(t, n.writeHook(n.hookDir(o.ID), o, &h))
	must(t, n.Close())
	must(t, os.Remove(estop))
	n.open()
	if kind, p := n.answered(t, r.Card); kind != "hook_done" {
		// Nothing of it was executed: the next round begins it.
		t.Errorf("%s %v", kind, p)
	}
	if b, _ := os.ReadFile(marks); string(b) != "x\n" {
		t.Errorf("run as %q", b)
	}
}

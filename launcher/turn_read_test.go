package launcher

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster/board"
)

// tell is somebody's message to a run's session; it answers what is to be typed.
func (n *testNodeT) tell(run, text string) (typed string) {
	n.t.Helper()
	req := request(person(), board.VSend, board.Send{To: board.CardOfRun(run), Text: text})
	if res := n.do(context.Background(), &req); res.Err != nil {
		n.t.Fatal(res.Err)
	}
	return "ann@atlas: " + text
}

func prompted(text string) string {
	b, _ := json.Marshal(text)
	return `{"hook_event_name":"UserPromptSubmit","prompt":` + string(b) + `}`
}

// M-17: a message is delivered when its program says that it has read it, also when that is after the end of the node
// that typed it; of one whose program says nothing, nobody knows.
func TestDeliveryIsConfirmed(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	n.Close()
	n.cfg.evidence = slow
	n.open()
	file := filepath.Join(t.TempDir(), "read")
	run := n.start("tui", tui(file, "ready> "))
	prompt := n.promptOf(run)
	n.says(run, `{"hook_event_name":"SessionStart","source":"startup"}`)
	touch(t, file+".0")
	n.reads(file, prompt+"\r")
	n.says(run, prompted(prompt))
	eventually(t, "the prompt to be delivered", func() bool {
		state := ""
		n.ask(func() { state = n.typed[promptKey(run)] })
		return state == typedDelivered
	})
	n.says(run, `{"hook_event_name":"Stop"}`)
	one := n.tell(run, "first\n  line two")
	n.reads(file, prompt+"\r"+one+"\r")
	if s := n.deliveryState(run, "first"); s != board.DeliveryOrdered {
		t.Errorf("it is %q before it was read", s)
	}
	n.says(run, prompted(one))
	eventually(t, "its delivery", func() bool { return n.deliveryState(run, "first") == "" })
	two := n.tell(run, "second")
	n.reads(file, prompt+"\r"+one+"\r"+two+"\r")
	must(t, n.Close())
	n.says(run, prompted(two))
	n.cfg.evidence = 100 * time.Millisecond
	n.open()
	eventually(t, "its delivery", func() bool { return n.deliveryState(run, "second") == "" })
	n.tell(run, "third")
	eventually(t, "nobody knows", func() bool { return n.deliveryState(run, "third") == board.DeliveryUnknown })
}

// Nothing is typed while a program asks a person; what waits is typed when it was answered.
func TestNothingIsTypedAtAQuestion(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	file := filepath.Join(t.TempDir(), "read")
	run := n.start("tui", tui(file, "ready> "))
	prompt := n.promptOf(run)
	n.says(run, `{"hook_event_name":"PermissionRequest","tool_name":"Bash","tool_input":{"command":"make"}}`)
	touch(t, file+".0")
	n.turn(run, board.TurnPermission)
	quiet := func() bool {
		ok := false
		n.ask(func() {
			st, is := n.runs[run].paneOf()
			ok = is && st.Shown && st.Quiet && !n.runs[run].typing
		})
		return ok
	}
	n.logHas(run, "ready> ")
	eventually(t, "the pane to be quiet", quiet)
	if b, _ := os.ReadFile(file); len(b) > 0 {
		t.Errorf("%q was typed at a question", b)
	}
	n.says(run, `{"hook_event_name":"PostToolUse"}`)
	n.reads(file, prompt+"\r")
}

// A pane that does not take what is to be told to it is told of, once, and that it does as well, also by another life of the node.
func TestDeafPaneIsTold(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	n.Close()
	n.cfg.deaf = 50 * time.Millisecond
	n.open()
	file := filepath.Join(t.TempDir(), "read")
	run := n.start("tui", tui(file, "loading", "ready> "))
	n.launched(run)
	touch(t, file+".0")
	eventually(t, "a word of it", func() bool { return n.fleet.run(run).Session.Deaf != 0 })
	if why := n.fleet.run(run).Session.DeafWhy; why != "a text waits: it does not show ready>" {
		t.Errorf("why: %q", why)
	}
	must(t, n.Close())
	n.open()
	touch(t, file+".1")
	n.reads(file, n.prompt(run)+"\r")
	eventually(t, "a word of it", func() bool { return n.fleet.run(run).Session.Deaf == 0 })
	if times := n.fleet.told(run, board.ReportDeaf); times != 1 {
		t.Errorf("told %d times", times)
	}
}

// told is how often a run's node has told a kind of report. What is sent again, because the node ended
// before the answer came, has the number that it had.
func (f *fleet) told(run, kind string) int {
	numbers := map[uint64]bool{}
	f.set(func() {
		for _, r := range f.seen {
			var rep board.Report
			if r.Verb == board.VReport && json.Unmarshal(r.Args, &rep) == nil && rep.Run == run && rep.Kind == kind {
				numbers[r.Number] = true
			}
		}
	})
	return len(numbers)
}

// Of a program without hooks, its screen tells that a person has to choose.
func TestAChoiceOnTheScreenAsks(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	file := filepath.Join(t.TempDir(), "read")
	run := n.start("tui", tui(file, "ready> 1. Yes, proceed"))
	n.showsLife(run)
	touch(t, file+".0")
	n.logHas(run, "proceed")
	must(t, n.Close())
	hour := time.Now().Add(-time.Hour)
	must(t, os.Chtimes(filepath.Join(n.cfg.Dir, "runs", run, fileLog), hour, hour))
	n.open()
	n.turn(run, board.TurnPermission)
}

package launcher

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/board"
	"muster/launcher/tmux"
)

// tui is a program that reads its terminal byte by byte into a file. It shows each of
// the screens when a file named after its number is there, and then reads.
func tui(file string, screens ...string) string {
	s := "stty raw -echo; echo up; "
	for i, screen := range screens {
		s += "until [ -e " + file + "." + string(rune('0'+i)) + " ]; do sleep 0.05; done; printf '\\033[2J\\033[H" + screen + "'; "
	}
	return s + "exec cat > " + file
}

func touch(t *testing.T, path string) {
	t.Helper()
	must(t, os.WriteFile(path, nil, 0o600))
}

func (n *testNodeT) reads(file, want string) {
	n.t.Helper()
	var got string
	eventually(n.t, "what was typed", func() bool {
		b, _ := os.ReadFile(file)
		got = string(b)
		return len(got) >= len(want)
	})
	if got != want {
		n.t.Errorf("the program read %q, want %q", got, want)
	}
}

// readsOn waits until the program has read first and then last. What the board tells a session that waits between two runs
// may stand between them: whether it is typed before the next prompt is a matter of time, and the prompt has it, too.
func (n *testNodeT) readsOn(file, first, last string) {
	n.t.Helper()
	const notice = "[automated notice of board web; nobody reads a reply]\n"
	var got string
	eventually(n.t, "what was typed", func() bool {
		b, _ := os.ReadFile(file)
		got = string(b)
		return len(got) >= len(first)+len(last) && strings.HasSuffix(got, last)
	})
	mid, ok := strings.CutPrefix(strings.TrimSuffix(got, last), first)
	if !ok || mid != "" && (!strings.HasPrefix(mid, notice) || strings.Count(mid, "\r") != 1) {
		n.t.Errorf("the program read %q, want %q and %q", got, first, last)
	}
}

func (n *testNodeT) prompt(run string) string {
	n.t.Helper()
	b, err := os.ReadFile(filepath.Join(n.cfg.Dir, "runs", run, fileBrief))
	must(n.t, err)
	return strings.TrimRight(tmux.Text(string(b)), "\n")
}

// T13: the prompt reaches the program when it waits for it, as one block and with
// an Enter; what a card's words hold runs nothing. At a question to a person nothing is typed.
func TestPromptIsTypedWhenItIsWaitedFor(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	file := filepath.Join(t.TempDir(), "read")
	hostile := " # $(touch " + file + ".canary) #(touch " + file + ".canary) `touch " + file + ".canary` ; \x1b[201~\r \\; 'x\""
	run := n.start("tui", tui(file, "ready> 1. Yes, proceed", "ready> ")+hostile)
	n.showsLife(run)
	touch(t, file+".0")
	n.logHas(run, "proceed")
	eventually(t, "the question to be seen", func() bool {
		seen := false
		n.ask(func() {
			st, _ := n.runs[run].paneOf()
			seen = st.Quiet && n.runs[run].deaf == st.News
		})
		return seen
	})
	n.ask(func() {
		if n.typed[promptKey(run)] != "" {
			t.Error("something was typed at a question to a person")
		}
	})
	touch(t, file+".1")
	n.reads(file, n.prompt(run)+"\r")
	if exists(file + ".canary") {
		t.Error("something of the card's words was run")
	}
}

// A program that shows nothing, and whose preset names no sign, is typed at when it is quiet.
func TestPromptOfASilentProgram(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	file := filepath.Join(t.TempDir(), "read")
	run := n.start("mute", "stty raw -echo; exec cat > "+file)
	n.launched(run)
	n.reads(file, n.prompt(run)+"\r")
}

// M-17: a message goes into the pane once; that it was typed is no proof that it was
// read, and it is not typed again: not after an answer that was lost, not by the node's next life.
func TestMessageIsTypedOnce(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	file := filepath.Join(t.TempDir(), "read")
	run := n.start("tui", tui(file, "ready> "))
	touch(t, file+".0")
	prompt := n.promptOf(run)
	n.reads(file, prompt+"\r")
	send := func(text string) string {
		t.Helper()
		req := request(person(), board.VSend, board.Send{To: board.CardOfRun(run), Text: text})
		if res := n.do(context.Background(), &req); res.Err != nil {
			t.Fatal(res.Err)
		}
		return "ann@atlas: " + text + "\r"
	}
	one := send("first\nline two")
	n.reads(file, prompt+"\r"+one)
	eventually(t, "its state", func() bool { return n.deliveryState(run, "first") == board.DeliveryUnknown })
	must(t, n.Close())
	n.open()
	two := send("second")
	n.reads(file, prompt+"\r"+one+two)
	eventually(t, "its state", func() bool { return n.deliveryState(run, "second") == board.DeliveryUnknown })
	eventually(t, "the journal to forget it", func() bool {
		left := 0
		n.ask(func() { left = len(n.typed) })
		return left == 1 // the prompt of a run that lives
	})
}

// M-17: a node that ended while it typed says so, and types nothing again.
func TestMessageThatWasBegun(t *testing.T) {
	t.Parallel()
	n := paneNode(t)
	file := filepath.Join(t.TempDir(), "read")
	run := n.start("tui", tui(file, "nothing", "ready> "))
	touch(t, file+".0")
	n.logHas(run, "nothing")
	req := request(person(), board.VSend, board.Send{To: board.CardOfRun(run), Text: "once"})
	if res := n.do(context.Background(), &req); res.Err != nil {
		t.Fatal(res.Err)
	}
	var order string
	must(t, n.view(func(v board.View) error {
		board.EachOrder(v, testNode, func(o *board.Order) bool {
			if o.Kind == board.OrderDeliver {
				order = o.ID
			}
			return true
		})
		return nil
	}))
	if order == "" {
		t.Fatal("no order to deliver it")
	}
	n.ask(func() { must(t, n.markTyped(order, typedBegun)); must(t, n.markTyped(promptKey(run), typedBegun)) })
	must(t, n.Close())
	n.open()
	eventually(t, "its state", func() bool { return n.deliveryState(run, "once") == board.DeliveryUnknown })
	touch(t, file+".1")
	n.logHas(run, "ready> ")
	eventually(t, "the pane to be quiet, with nothing to type", func() bool {
		quiet := false
		n.ask(func() {
			st, ok := n.runs[run].paneOf()
			quiet = ok && st.Quiet && !n.runs[run].typing
		})
		return quiet
	})
	if b, _ := os.ReadFile(file); len(b) != 0 {
		t.Errorf("%q was typed again", b)
	}
}

// promptOf is prompt, when the run's folder is there.
func (n *testNodeT) promptOf(run string) string {
	n.t.Helper()
	n.launched(run)
	return n.prompt(run)
}

func (n *testNodeT) deliveryState(run, text string) (state string) {
	n.t.Helper()
	must(n.t, n.view(func(v board.View) error {
		board.EachDelivery(v, board.CardOfRun(run), func(d *board.Delivery) bool {
			if strings.Contains(d.Text, text) {
				state = d.State
			}
			return true
		})
		return nil
	}))
	return state
}

func TestWaitsForText(t *testing.T) {
	for _, c := range []struct {
		screen, ready string
		want          bool
	}{
		{"❯ ", "❯", true},
		{"│ ❯ Try \"fix lint errors\"   │", "❯", true},
		{"Do you trust this folder?\n❯ 1. Yes, proceed\n  2. No, exit", "❯", false},
		{"› 2) No", "›", false},
		{"❯ 12 monkeys", "❯", true},
		{"a > b", "❯", false},
		{"", "❯", false},
	} {
		if err := waitsForText(c.screen, c.ready); (err == nil) != c.want {
			t.Errorf("%q: %v, want %v", c.screen, err, c.want)
		}
	}
}

package cli

import (
	"strings"
	"testing"

	"muster/board"
	"muster/cmd/muster/api/apitest"
)

// CLI-01: what each verb of a card asks for: its event or request, with the card of the session it is said in, and what
// was given under the names that workflows read.
func TestVerbsAskForTheirEvent(t *testing.T) {
	w := newWorld(t, story())
	w.f.Fail = board.Errorf(board.Refused, "no") // nothing of one verb is there for the next
	asks := func(line, verb, args string, asked func() []board.Request) {
		t.Helper()
		before := len(asked())
		_, err, code := w.run(strings.Split(line, "|")...)
		said := asked()
		if len(said) != before+1 {
			t.Errorf("%s: asked %d times (exit %d): %s", line, len(said)-before, code, err)
			return
		}
		if r := said[before]; r.Verb != verb || string(r.Args) != args {
			t.Errorf("%s: asked for %s %s, want %s %s", line, r.Verb, r.Args, verb, args)
		}
	}
	for _, x := range []struct{ line, verb, args string }{
		{"unblock|d-1|--why|here", "event", `{"card":"d-1","event":"unblock","payload":{"why":"here"}}`},
		{"reassign|d-1|codex", "event", `{"card":"d-1","event":"reassign","payload":{"assignee":"codex"}}`},
		{"reassign|d-1|codex|--agent|ag-1", "event", `{"card":"d-1","event":"reassign","payload":{"assignee":"codex"},"agent":"ag-1"}`},
		{"agent|declare|d-1|--role|reviewer|--after|2", "agent.declare", `{"card":"d-1","role":"reviewer","after":2}`},
		{"agent|end|d-1|--why|enough", "agent.end", `{"agent":"d-1","why":"enough"}`},
		{"agent|fork|d-1|--key|k", "agent.fork", `{"agent":"d-1","key":"k"}`},
		{"agent|memory|d-1|restore|abcdef", "agent.memory", `{"agent":"d-1","hash":"abcdef"}`},
		{"stop-run|d-1|--why|no", "event", `{"card":"d-1","event":"stop_run","why":"no"}`},
		{"reclaim|d-1|--force|--why|dead", "event", `{"card":"d-1","event":"reclaim","force":true,"why":"dead"}`},
		{"cancel|d-1", "event", `{"card":"d-1","event":"cancel"}`},
		{"reopen|d-1|--why|w", "event", `{"card":"d-1","event":"reopen","payload":{"why":"w"}}`},
		{"archive|d-1", "event", `{"card":"d-1","event":"archive"}`},
		{"unarchive|d-1", "event", `{"card":"d-1","event":"unarchive"}`},
		{"event|d-1|depart|--set|to=3|--payload|{\"a\":true}", "event", `{"card":"d-1","event":"depart","payload":{"a":true,"to":3}}`},
		{"card|add|a part|--subtask-of|d-2", "card.add", `{"board":"default","subtask_of":"d-2","title":"a part"}`},
		{"card|link|d-1|--after|d-3|--after|d-4", "card.link", `{"card":"d-1","after":["d-3","d-4"]}`},
		{"card|unlink|d-1|--after|d-3", "card.unlink", `{"card":"d-1","after":["d-3"]}`},
		{"card|put|d-1|todo|--why|stuck", "card.put", `{"card":"d-1","status":"todo","why":"stuck"}`},
		{"card|edit|d-1|--priority|3|--label|a=b", "card.edit", `{"card":"d-1","priority":3,"labels":{"a":"b"}}`},
		{"start|d-1|--force|--why|now", "start", `{"card":"d-1","force":true,"why":"now"}`},
		{"move|d-1|--machine|any", "move", `{"card":"d-1","machine":"any"}`},
		{"forget|d-1", "forget", `{"card":"d-1"}`},
		{"send|d-1|use the blue one", "send", `{"to":"d-1","text":"use the blue one"}`},
		{"subscribe|d-1|--kind|block", "subscribe", `{"card":"d-1","kinds":["block"]}`},
	} {
		asks(x.line, x.verb, x.args, w.f.Asked)
	}
	w.inSession("d-2.1", "d-2", "s2")
	for _, x := range []struct{ line, verb, args string }{
		{"comment|half of it", "event", `{"card":"d-2","event":"comment","payload":{"text":"half of it"}}`},
		{"block|a key|--kind|needs_input", "event", `{"card":"d-2","event":"block","payload":{"kind":"needs_input","reason":"a key"}}`},
		{"request-review|--summary|it works", "event", `{"card":"d-2","event":"request_review","payload":{"summary":"it works"}}`},
		{"request-changes|not yet", "event", `{"card":"d-2","event":"request_changes","payload":{"text":"not yet"}}`},
		{"complete|--summary|done", "event", `{"card":"d-2","event":"complete","payload":{"summary":"done"}}`},
		{"specify|--title|T|--body|B", "event", `{"card":"d-2","event":"specify","payload":{"body":"B","title":"T"}}`},
		{"decompose|--child|one@codex|--child|two", "event", `{"card":"d-2","event":"decompose","payload":{"children":[{"profile":"codex","title":"one"},{"title":"two"}]}}`},
		{"card|add|a part|--subtask-of|d-2", "card.add", `{"board":"default","subtask_of":"d-2","title":"a part"}`},
	} {
		asks(x.line, x.verb, x.args, w.f.Said)
	}
}

// CLI-02, M-20: the board is named by --board or MUSTER_BOARD and left out when it is `default`; a node by --data, its
// socket or --node. There is no root and no address of a board.
func TestAddressing(t *testing.T) {
	w := newWorld(t, story())
	if out := w.ok("card", "add", "x", "-q"); !strings.HasPrefix(out, "d-") {
		t.Errorf("no board named: %s", out)
	}
	if out := w.ok("card", "add", "x", "-q", "--board", "web"); !strings.HasPrefix(out, "w-") {
		t.Errorf("--board: %s", out)
	}
	w.env["MUSTER_BOARD"] = "web"
	if out := w.ok("card", "add", "x", "-q"); !strings.HasPrefix(out, "w-") {
		t.Errorf("MUSTER_BOARD: %s", out)
	}
	if out := w.ok("card", "add", "x", "-q", "--board", "default"); !strings.HasPrefix(out, "d-") {
		t.Errorf("--board before MUSTER_BOARD: %s", out)
	}
	delete(w.env, "MUSTER_HOME")
	wants(t, w.ok("--data", w.dir, "card", "show", "d-1"), "d-1")
	for _, flag := range []string{"--root", "--at"} {
		if _, err, code := w.run("card", "list", flag, "x"); code != ExitUsage || !strings.Contains(err, "unknown flag") {
			t.Errorf("%s: exit %d: %s", flag, code, err)
		}
	}
}

// CLI-04: an error is one message on stderr with exit code 1, never a stack; what was said before stands on stdout.
func TestErrorsAreOneMessage(t *testing.T) {
	w := newWorld(t, apitest.New())
	for _, args := range [][]string{{"card", "show", "d-99"}, {"board", "show", "none"}, {"start", "d-99"}, {"complete", "d-99", "--summary", "x"}, {"why", "d-99"}} {
		out, err, code := w.run(args...)
		if code != ExitFailed || out != "" || !strings.HasPrefix(err, "muster: ") || strings.Contains(err, "goroutine") || strings.Count(err, "\n") > 2 {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", args, code, out, err)
		}
	}
}

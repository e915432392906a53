package cli

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/cmd/muster/api/apitest"
)

// What cannot be meant is refused with exit code 2 and one line that says what is
// wrong, and nothing is changed: bytes that are no text, empty names, times and
// durations that nobody can wait for, flags without effect.
func TestInputIsRefused(t *testing.T) {
	w := newWorld(t, story())
	file := func(name, text string) string {
		path := filepath.Join(w.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	bad, empty := "a\xff\xfe", file("empty", "")
	for _, x := range []struct {
		name, stdin, words string
		args               []string
	}{
		{"title of bytes", "", "argument 3 is no text in UTF-8 (byte 2 of 3 is 0xff)", []string{"card", "add", bad}},
		{"label of bytes", "", "no text in UTF-8", []string{"card", "add", "x", "--label", "k=" + bad}},
		{"board of bytes", "", "no text in UTF-8", []string{"card", "list", "--board", bad}},
		{"comment of bytes", "", "no text in UTF-8", []string{"comment", "d-1", bad}},
		{"summary of bytes", "", "no text in UTF-8", []string{"complete", "d-5", "--summary", bad}},
		{"payload of bytes", "", "no text in UTF-8", []string{"event", "d-1", "comment", "--set", "text=" + bad}},
		{"body of bytes", bad, "stdin is no text in UTF-8", []string{"card", "add", "x", "--body", "-"}},
		{"comment of bytes on stdin", bad, "stdin is no text in UTF-8", []string{"comment", "d-1", "-"}},
		{"message of bytes on stdin", bad, "stdin is no text in UTF-8", []string{"send", "d-2", "-"}},
		{"workflow of bytes", "", "no text in UTF-8", []string{"board", "apply", "-f", file("flow.yaml", "name: "+bad)}},
		{"children of bytes", "", "no text in UTF-8", []string{"decompose", "d-5", "-f", file("children", `[{"title":"`+bad+`"}]`)}},
		{"nothing on stdin", "", "stdin holds no text", []string{"comment", "d-1", "-"}},
		{"empty card", "", "which card?", []string{"card", "show", ""}},
		{"empty card of why", "", "which card?", []string{"why", ""}},
		{"empty card of runs", "", "which card?", []string{"runs", ""}},
		{"empty card of log", "", "which card?", []string{"log", " "}},
		{"empty card of context", "", "which card?", []string{"context", ""}},
		{"empty card of wait", "", "which card?", []string{"wait", "", "--until", "done"}},
		{"empty card of edit", "", "which card?", []string{"card", "edit", "", "--title", "x"}},
		{"empty card of link", "", "which card?", []string{"card", "link", "", "--after", "d-1"}},
		{"empty card of start", "", "which card?", []string{"start", ""}},
		{"empty card of comment", "", "which card?", []string{"comment", "", "text"}},
		{"empty card of complete", "", "which card?", []string{"complete", "", "--summary", "x"}},
		{"empty card of event", "", "which card?", []string{"event", "", "archive"}},
		{"empty card of move", "", "which card?", []string{"move", "", "--machine", "any"}},
		{"empty card of subscribe", "", "which card?", []string{"subscribe", ""}},
		{"empty run of send", "", "which card|run?", []string{"send", "", "x"}},
		{"empty comment", "", "use: muster comment", []string{"comment", "d-1", ""}},
		{"empty event", "", "EVENT is empty", []string{"event", "d-1", ""}},
		{"empty machine", "", "N is empty", []string{"node", "show", ""}},
		{"empty token id", "", "ID is empty", []string{"token", "revoke", ""}},
		{"empty title", "", "TITLE is empty", []string{"card", "add", " "}},
		{"empty --after", "", "--after is empty", []string{"card", "add", "x", "--after", ""}},
		{"empty --card", "", "--card is empty", []string{"events", "--card", ""}},
		{"empty --status", "", "--status is empty", []string{"card", "list", "--status", ""}},
		{"empty --board", "", "--board is empty", []string{"card", "list", "--board", ""}},
		{"empty --node", "", "--node is empty", []string{"status", "--node", ""}},
		{"1ns", "", "at least 1s", []string{"card", "add", "x", "--max-runtime", "1ns"}},
		{"no runtime", "", "at least 1s", []string{"card", "add", "x", "--max-runtime", "0s"}},
		{"runtime below zero", "", "at least 1s", []string{"card", "edit", "d-1", "--max-runtime", "-5s"}},
		{"half a second more", "", "whole seconds", []string{"card", "add", "x", "--max-runtime", "1500ms"}},
		{"year 9999", "", "1970 to 2200", []string{"card", "add", "x", "--start-after", "9999-12-31"}},
		{"after 250 years", "", "1970 to 2200", []string{"card", "add", "x", "--start-after", "+2200000h"}},
		{"a moment before time", "", "1970 to 2200", []string{"card", "add", "x", "--start-after", "1601-01-01"}},
		{"token for nobody", "", "give --node too", []string{"status", "--token-file", filepath.Join(w.dir, "none")}},
		{"token for nobody at up", "", "give --node too", []string{"up", "--token-file", empty}},
		{"label of two lines", "", "one line", []string{"up", "--label", "a\nb=c"}},
	} {
		t.Run(x.name, func(t *testing.T) {
			before := w.f.Hash()
			w.stdin = x.stdin
			out, err, code := w.run(x.args...)
			if code != 2 || !strings.Contains(err, x.words) || out != "" || strings.Count(err, "\n") > 2 {
				t.Errorf("exit %d, want 2 with %q\n%s\n%s", code, x.words, out, err)
			}
			if after := w.f.Hash(); after != before {
				t.Errorf("it has changed the state: %s, was %s", after, before)
			}
		})
	}
	if out, _, code := w.run("card", "add", bad, "--json"); code != 2 || !strings.Contains(out, `"check":"usage"`) {
		t.Errorf("as JSON: exit %d, %s", code, out)
	}
}

// A text may come from stdin in every verb that takes one, and comes as it is.
func TestTextFromStdin(t *testing.T) {
	w := newWorld(t, story())
	w.stdin = "from stdin: ä€\n"
	w.ok("comment", "d-1", "-")
	w.ok("complete", "d-5", "--summary", "-")
	w.ok("card", "add", "x", "--body", "-", "--max-runtime", "1s", "--start-after", "2200-12-31")
	for card, least := range map[string]int{"d-1": 1, "d-6": 1} {
		if out := w.ok("card", "show", card, "--json"); strings.Count(out, `from stdin: ä€\n`) < least {
			t.Errorf("%s does not have the text: %s", card, out)
		}
	}
	if out := w.ok("events", "--card", "d-5"); !strings.Contains(out, "from stdin") {
		t.Errorf("the summary is not there: %s", out)
	}
	if out := w.ok("why", "d-6"); strings.Contains(out, "-1") || !strings.Contains(out, "another 1") {
		t.Errorf("a moment in 2200 is told as %s", out)
	}
}

// A start that the flags rule out is a wrong call, not a failure.
func TestUsageOfUp(t *testing.T) {
	w := newWorld(t, apitest.New())
	w.deps.Up = func(context.Context, UpOptions) error { return Usage(os.ErrInvalid) }
	if _, err, code := w.run("up"); code != 2 || !strings.Contains(err, "invalid argument") {
		t.Errorf("exit %d: %s", code, err)
	}
}

// A token that was given as an argument does not stay in the list of processes: a
// node that stays in the foreground begins again and reads it from stdin.
func TestTokenLeavesTheArguments(t *testing.T) {
	w := newWorld(t, apitest.New())
	const token = "muster1.secret"
	up, again, said := 0, []string(nil), ""
	w.deps.Up = func(context.Context, UpOptions) error { up++; return nil }
	w.deps.Again = func(args []string, stdin string) error { again, said = args, stdin; return nil }
	for call, want := range map[string]string{
		"join TOKEN --name b":       "join - --name b",
		"up --join TOKEN --slots 2": "up --join - --slots 2",
		"up --join=TOKEN":           "up --join=-",
		"join -":                    "",
		"up":                        "",
	} {
		up, again, said, w.stdin = 0, nil, "", token+"\n"
		if _, err, code := w.run(strings.Fields(strings.ReplaceAll(call, "TOKEN", token))...); code != 0 {
			t.Fatalf("%s: exit %d: %s", call, code, err)
		}
		if got := strings.Join(again, " "); got != want || want != "" && (up != 0 || said != token+"\n") || want == "" && up != 1 {
			t.Errorf("%s: begins again as %q with %q on stdin, %d starts; want %q", call, got, said, up, want)
		}
	}
}

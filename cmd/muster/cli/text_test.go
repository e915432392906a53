package cli

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"muster/board"
	"muster/cmd/muster/api/apitest"
)

// steering finds what could steer a terminal in text meant for one.
func steering(s string) string {
	if !utf8.ValidString(s) {
		return fmt.Sprintf("bytes that are no text in %q", s)
	}
	for i, r := range s {
		switch {
		case r == '\n':
		case r < 0x20, r >= 0x7f && r <= 0x9f, unicode.Is(unicode.Bidi_Control, r), r == 0x200b, r == 0x2028, r == 0x2029, r == 0xfeff:
			return fmt.Sprintf("%q in %q", r, s[max(0, i-20):min(len(s), i+20)])
		}
	}
	return ""
}

var paint = regexp.MustCompile("\x1b\\[[0-9;]*m")

// hostile is a fleet whose every text is hostile, as far as the executor lets it in.
func hostile(t *testing.T) *apitest.Fleet {
	t.Helper()
	f := story()
	x := apitest.Hostile + "\xff\xfe"
	line := strings.NewReplacer("\n", " ", "\r", " ").Replace(x)
	label := strings.Map(func(r rune) rune {
		if unicode.IsControl(r) || r == '=' {
			return -1
		}
		return r
	}, line)
	m := apitest.Manager()
	m.Name = line
	f.Must(m, board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &line, Body: &x, Labels: map[string]string{label: label}, Skills: &[]string{line}}})
	say(f, "d-6", "comment", map[string]any{"text": x})
	say(f, "d-6", "block", map[string]any{"kind": "needs_input", "reason": x})
	f.Must(m, board.VBoardCreate, board.BoardCreate{Slug: "h", Label: line})
	f.Log("d-2.1", x, true)
	f.RoundLog[0].Queued[0].Text = x
	return f
}

// TestNothingSteersTheTerminal (T16, invariant 25): whatever stands in cards,
// comments, labels, logs and names, a terminal gets no control characters but
// line ends, and our own colours.
func TestNothingSteersTheTerminal(t *testing.T) {
	w := newWorld(t, hostile(t))
	more := [][]string{{"card", "show", "d-6"}, {"why", "d-6"}, {"card", "add", "\x1b[31m", "--board", "h"}, {"events", "--last", "500"}, {"events", "--since", "0"}, {"log", "d-2"},
		{"card", "show", "\x1b]0;x\x07"}, {"frob\x1b[31m"}, {"card", "list", "--board", "\x1b[31m"}, {"node", "show", "\u202e"}, {"wait", "d-6", "--timeout", "20ms"}, {"board", "show", "h"}}
	for _, plain := range []bool{true, false} {
		w.terminal = true
		for _, args := range append(reads[:len(reads):len(reads)], more...) {
			if plain {
				args = append(args[:len(args):len(args)], "--no-color")
			}
			out, err, _ := w.run(args...)
			if !plain || args[0] == "log" { // a log keeps its colours
				out = paint.ReplaceAllString(out, "")
			}
			if bad := steering(out); bad != "" {
				t.Errorf("%q, stdout: %s", args, bad)
			}
			if bad := steering(err); bad != "" {
				t.Errorf("%q, stderr: %s", args, bad)
			}
		}
	}
}

// TestColoursAreForTerminals: not into pipes, not with NO_COLOR, not with --no-color.
func TestColoursAreForTerminals(t *testing.T) {
	w := newWorld(t, story())
	coloured := func(args ...string) bool { return strings.Contains(w.ok(append(args, "card", "list")...), "\x1b[") }
	if coloured() {
		t.Error("colours in a pipe")
	}
	w.terminal = true
	if !coloured() {
		t.Error("no colours on a terminal")
	}
	if coloured("--no-color") {
		t.Error("colours with --no-color")
	}
	w.env["NO_COLOR"] = "1"
	if coloured() {
		t.Error("colours with NO_COLOR")
	}
}

// FuzzVisible: what is made visible steers nothing, and text without control characters stays as it is.
func FuzzVisible(f *testing.F) {
	for _, s := range []string{"", "plain", "two\nlines", apitest.Hostile, "\xff\x80", "ä€\u202e", "\x1b[31m"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if bad := steering(oneLine(s)); bad != "" || strings.Contains(oneLine(s), "\n") {
			t.Errorf("oneLine: %s", bad)
		}
		if bad := steering(strings.ReplaceAll(visible(s), "\t", " ")); bad != "" {
			t.Errorf("visible: %s", bad)
		}
		if bad := steering(paint.ReplaceAllString(strings.ReplaceAll(coloured(s), "\t", " "), "")); bad != "" {
			t.Errorf("coloured: %s", bad)
		}
		if steering(s) == "" && visible(s) != s {
			t.Errorf("visible changes %q to %q", s, visible(s))
		}
	})
}

func TestAge(t *testing.T) {
	for d, want := range map[time.Duration]string{-time.Second: "0s", 0: "0s", 99 * time.Second: "99s", 100 * time.Second: "1m", 99 * time.Minute: "99m", 100 * time.Minute: "1h", 47 * time.Hour: "47h", 72 * time.Hour: "3d"} {
		if got := age(d); got != want {
			t.Errorf("age(%s) = %s, want %s", d, got, want)
		}
	}
}

func TestMoment(t *testing.T) {
	now := time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)
	for s, want := range map[string]string{"+90m": "2030-01-02T04:34:05Z", "2031-05-06": "2031-05-06T00:00:00Z", "2031-05-06 07:08": "2031-05-06T07:08:00Z", "2031-05-06T07:08:09+02:00": "2031-05-06T05:08:09Z"} {
		got, err := moment(s, now)
		if err != nil || got.UTC().Format(time.RFC3339) != want {
			t.Errorf("moment(%s) = %s, %v; want %s", s, got.UTC().Format(time.RFC3339), err, want)
		}
	}
	for _, s := range []string{"", "soon", "+soon", "90m", "2031-13-01"} {
		if got, err := moment(s, now); err == nil {
			t.Errorf("moment(%q) = %s", s, got)
		}
	}
}

func TestValue(t *testing.T) {
	for s, want := range map[string]string{"3": "3", "true": "true", "null": "null", "two words": `"two words"`, `{"a":1}`: `{"a":1}`, "": `""`, "1,5": `"1,5"`} {
		if got := string(value(s)); got != want {
			t.Errorf("value(%q) = %s, want %s", s, got, want)
		}
	}
}

func TestShellWord(t *testing.T) {
	for s, want := range map[string]string{"a/b-c": "a/b-c", "": "''", "two words": "'two words'", "it's": `'it'\''s'`, "$x": "'$x'"} {
		if got := shellWord(s); got != want {
			t.Errorf("shellWord(%q) = %s, want %s", s, got, want)
		}
	}
}

package tmux

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

// hostile are texts that mean something to a shell, to tmux or to a terminal.
// CANARY stands for a file that must not come to be.
func hostile() map[string]string {
	var every strings.Builder
	for c := range 256 {
		every.WriteByte(byte(c))
	}
	return map[string]string{
		"newlines":          "one\ntwo\r\nthree\rfour\n",
		"quotes":            `it's "so" ` + "`touch CANARY`",
		"substitution":      "$(touch CANARY) ${HOME} $HOME ~root",
		"format":            "#(touch CANARY) #{pane_id} #[fg=red] ##",
		"command":           "x ; run-shell 'touch CANARY' ;",
		"command by line":   "\nrun-shell 'touch CANARY'\nkill-server\n",
		"trailing ;":        ";",
		"backslash":         `\; \073 \n \u0041 \`,
		"escape sequences":  "\x1b[31mred\x1b]52;c;aGk=\x07\x1bPtmux;\x1b\x1b]0;x\x07\x1b\\",
		"end of a paste":    "a\x1b[201~\rtouch CANARY\r\x1b[200~b",
		"C1 end of a paste": "a\u009b201~\rtouch CANARY\r",
		"keys":              "\x03\x04\x1a\x1c\x1d\x02:kill-server\r",
		"answers":           "%end 1 2 3\n%error 1 2 3\n%exit\n",
		"every byte":        every.String(),
		"100 kB":            strings.Repeat("0123456789abcde\n", 100<<10/16),
		"not UTF-8":         "\xff\xfe\x80 \xc3",
		"wide":              "日本語 é 🙂 \u202egnp.exe",
		"option":            "-t",
		"empty":             "",
	}
}

func canary(t *testing.T, text string) (with, file string) {
	file = filepath.Join(t.TempDir(), "canary")
	return strings.ReplaceAll(text, "CANARY", file), file
}

// T13: what is pasted reaches the program byte for byte, and nothing else
// happens: not in a terminal that knows pastes, and not in one that does not.
func TestHostileTextIsReadAsItIs(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for name, text := range hostile() {
		t.Run(name, func(t *testing.T) {
			text, file := canary(t, text)
			plain, bracketed := newReader(t, s, "plain", "x"), newReader(t, s, "bracketed", "bracketed")
			for _, r := range []*reader{plain, bracketed} {
				must(t, s.Paste(t.Context(), r.ID, []byte(text)))
				must(t, s.Enter(t.Context(), r.ID))
			}
			plain.reads(text + "\r")
			if text == "" { // an empty paste is none to tmux
				bracketed.reads("\r")
			} else {
				bracketed.reads("\x1b[200~" + text + "\x1b[201~\r")
			}
			for _, r := range []*reader{plain, bracketed} {
				must(t, s.Kill(t.Context(), r.ID))
			}
			if _, err := os.Stat(file); err == nil {
				t.Error("something of it was run")
			}
			if left, _ := filepath.Glob(s.path("muster-*")); len(left) > 0 {
				t.Errorf("files of pastes are left: %q", left)
			}
		})
	}
}

// T12, T13: the words of a program reach it as they are, whatever they hold.
func TestHostileWordsReachTheProgram(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	for name, text := range hostile() {
		if len(text) > 10_000 {
			text = text[:10_000]
		}
		t.Run(name, func(t *testing.T) {
			text, file := canary(t, strings.ReplaceAll(text, "\x00", ""))
			r := newReader(t, s, text, "x", text)
			got, err := os.ReadFile(r.file + ".words")
			must(t, err)
			if want := "x\x00" + text; string(got) != want {
				t.Errorf("the program was given %.200q, want %.200q", got, want)
			}
			must(t, s.Kill(t.Context(), r.ID))
			if _, err := os.Stat(file); err == nil {
				t.Error("something of it was run")
			}
		})
	}
}

// T13: of what somebody wrote, nothing is left that a terminal obeys.
func TestTextObeysNobody(t *testing.T) {
	for name, text := range hostile() {
		harmless(t, name, Text(text))
	}
	for _, c := range []struct{ text, want string }{
		{"a\x1b[201~\rb", "a␛[201~\nb"}, {"a\r\nb\tc", "a\nb\tc"}, {"\x00\x7f\u009b\xff", "␀␡��"}, {"日本 🙂", "日本 🙂"},
	} {
		if got := Text(c.text); got != c.want {
			t.Errorf("Text(%q) = %q, want %q", c.text, got, c.want)
		}
	}
}

func harmless(t *testing.T, name, text string) {
	t.Helper()
	if !utf8.ValidString(text) {
		t.Errorf("%s: %q is not UTF-8", name, text)
	}
	for _, r := range text {
		if r < 0x20 && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			t.Errorf("%s: %q holds %U", name, text, r)
			return
		}
	}
}

func FuzzText(f *testing.F) {
	for _, text := range hostile() {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		harmless(t, "text", Text(text))
		if once := Text(text); Text(once) != once {
			t.Errorf("%q changes when it is read again", once)
		}
	})
}

// A quoted command is one line, and read as tmux reads it its words come back.
func FuzzLine(f *testing.F) {
	for _, text := range hostile() {
		f.Add(text, "x")
	}
	f.Fuzz(func(t *testing.T, a, b string) {
		l, err := line("set-buffer", a, b)
		if strings.Contains(a+b, "\x00") {
			if err == nil {
				t.Fatal("a zero byte was taken")
			}
			return
		}
		must(t, err)
		if got := words(t, l); len(got) != 3 || got[1] != a || got[2] != b {
			t.Errorf("%q became %q", []string{a, b}, got)
		}
	})
}

// words reads a command as far as line writes it: quoted words and octal codes.
func words(t *testing.T, l string) (list []string) {
	t.Helper()
	l, ok := strings.CutSuffix(l, "\n")
	if !ok || strings.ContainsAny(l, "\n\r;#$~'`{}") {
		t.Fatalf("%q is not one harmless line", l)
	}
	for {
		rest, ok := strings.CutPrefix(l, `"`)
		if !ok {
			t.Fatalf("%q is no quoted word", l)
		}
		word, after, ok := strings.Cut(rest, `"`)
		if !ok {
			t.Fatalf("%q does not end", l)
		}
		list = append(list, unoctal(t, word))
		if after == "" {
			return list
		}
		l = strings.TrimPrefix(after, " ")
	}
}

func unoctal(t *testing.T, word string) string {
	var b strings.Builder
	for i := 0; i < len(word); i++ {
		if word[i] != '\\' {
			b.WriteByte(word[i])
			continue
		}
		if i+3 >= len(word) {
			t.Fatalf("%q ends in a code", word)
		}
		b.WriteByte((word[i+1]-'0')<<6 | (word[i+2]-'0')<<3 | (word[i+3] - '0'))
		i += 3
	}
	return b.String()
}

package bench

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// fake benches: one that measures, one that lacks something, one that fails.
func fakes() []Bench {
	return []Bench{
		{Name: "good", About: "measures", Run: func(ctx context.Context, env Env) ([]Result, error) {
			s := &script{machine: []float64{1}, a: []float64{4}, b: []float64{2}}
			c := env.Config("good", "ms", Goal{Name: "gate", AtMost: 3})
			c.Calibrate = s.calibrate
			r, err := Pair(ctx, c, s.side("A", s.a), s.side("B", s.b))
			return []Result{r}, err
		}},
		{Name: "lacking", About: "needs what is not there", Run: func(context.Context, Env) ([]Result, error) {
			return nil, &Missing{"luck", "it is a lottery"}
		}},
		{Name: "bad", About: "fails", Run: func(_ context.Context, env Env) ([]Result, error) {
			if err := os.WriteFile(filepath.Join(env.Dir, "rubbish"), nil, 0o600); err != nil {
				return nil, err
			}
			return nil, errors.New("broke")
		}},
		{Name: "piece", About: "of another", Part: true, Run: func(context.Context, Env) ([]Result, error) {
			return nil, &Missing{"a name", "it is measured with the whole"}
		}},
	}
}

func TestMainMeasuresSkipsAndFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		args   []string
		code   int
		stdout []string
		stderr string
	}{
		{"one", []string{"good"}, 0, []string{"machine:", "A/B 2.00x", "gate <= 3x: met", "A syncs: 40"}, ""},
		{"missing", []string{"lacking"}, 0, []string{"lacking: skipped: needs luck: it is a lottery"}, ""},
		{"all, one fails", nil, 1, []string{"A/B 2.00x", "skipped"}, "broke"},
		{"a part, named", []string{"piece"}, 0, []string{"measured with the whole"}, ""},
		{"unknown", []string{"nix"}, 2, nil, `no bench "nix"`},
		{"bad flag", []string{"-windows", "x"}, 2, nil, "invalid value"},
		{"help", []string{"-h"}, 0, nil, "usage: muster bench"},
		{"list", []string{"-list"}, 0, []string{"good", "needs what is not there"}, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			var stdout, stderr bytes.Buffer
			args := append([]string{"-dir", dir, "-window", "1ms"}, c.args...)
			if code := run(fakes(), args, &stdout, &stderr); code != c.code {
				t.Errorf("exit %d, want %d\n%s", code, c.code, &stderr)
			}
			for _, want := range c.stdout {
				if !strings.Contains(stdout.String(), want) {
					t.Errorf("stdout lacks %q:\n%s", want, &stdout)
				}
			}
			if c.args == nil && strings.Contains(stdout.String(), "measured with the whole") {
				t.Errorf("a part was measured with all:\n%s", &stdout)
			}
			if !strings.Contains(stderr.String(), c.stderr) {
				t.Errorf("stderr lacks %q:\n%s", c.stderr, &stderr)
			}
			if left, err := os.ReadDir(dir); err != nil || len(left) != 0 {
				t.Errorf("left behind: %v %v", left, err)
			}
		})
	}
}

// The JSON holds a version, the machine and every window, also when a bench
// failed.
func TestMainWritesTheEnvelope(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "out.json")
	var stdout, stderr bytes.Buffer
	if code := run(fakes(), []string{"-dir", dir, "-window", "1ms", "-json", file}, &stdout, &stderr); code != 1 {
		t.Fatalf("exit %d\n%s", code, &stderr)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var e Envelope
	if err := json.Unmarshal(text, &e); err != nil {
		t.Fatal(err)
	}
	if e.V != 1 || e.Kind != "muster-bench" || e.At.IsZero() || e.Machine.Cores < 1 || e.Machine.Folder != dir || e.Machine.Go == "" {
		t.Errorf("envelope: %+v", e)
	}
	if len(e.Results) != 1 || len(e.Results[0].Windows) != 7 || !e.Results[0].Verdict || e.Results[0].Windows[0].Machine[2].Fdatasync == 0 {
		t.Errorf("results: %+v", e.Results)
	}
	if len(e.Skipped) != 1 || e.Skipped[0].Name != "lacking" {
		t.Errorf("skipped: %+v", e.Skipped)
	}
	stdout.Reset()
	if code := run(fakes(), []string{"-dir", dir, "-window", "1ms", "-json", "-", "good"}, &stdout, &stderr); code != 0 || !json.Valid(stdout.Bytes()) {
		t.Errorf("exit %d, stdout is not JSON alone:\n%s", code, &stdout)
	}
}

func TestBenchesHaveNamesAndWords(t *testing.T) {
	seen := map[string]bool{}
	for _, b := range Benches() {
		if b.Name == "" || b.About == "" || b.Run == nil || seen[b.Name] {
			t.Errorf("bench %+v", b)
		}
		seen[b.Name] = true
	}
}

func TestFilesystemOf(t *testing.T) {
	mounts := "/dev/a / ext4 rw 0 0\ntmpfs /tmp tmpfs rw 0 0\n/dev/b /tmp/x xfs rw 0 0\nbroken\n"
	for folder, want := range map[string]string{
		"/home/me": "/dev/a ext4", "/tmp/y": "tmpfs tmpfs", "/tmp": "tmpfs tmpfs", "/tmpfile": "/dev/a ext4", "/tmp/x/deep": "/dev/b xfs", "/": "/dev/a ext4",
	} {
		if got := filesystemOf(mounts, folder); got != want {
			t.Errorf("%s: %s, want %s", folder, got, want)
		}
	}
	if got := filesystemOf("", "/tmp"); got != "unknown" {
		t.Errorf("no mounts: %s", got)
	}
}

func TestNumber(t *testing.T) {
	for v, want := range map[float64]string{0: "0", 12345.6: "12346", 99.96: "100.0", 12.34: "12.3", 1.234: "1.23", 0.2345: "0.234", 0.00471: "0.0047"} {
		if got := number(v); got != want {
			t.Errorf("%g: %s, want %s", v, got, want)
		}
	}
}

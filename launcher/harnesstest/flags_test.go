package harnesstest

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/board/workflow"
)

var update = flag.Bool("update", false, "write testdata/flags anew from the pinned programs")

// HLS-02: every option that a preset uses, under every condition, is one of its
// program's, with a value that it takes; so is every option that was recorded
// when the version was pinned.
func TestPresetsUseOptionsOfTheRealPrograms(t *testing.T) {
	dir, err := Folder()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Pins() {
		t.Run(p.Harness, func(t *testing.T) {
			t.Parallel()
			Program(t, p.Harness)
			preset := workflow.Default().Harnesses[p.Harness]
			help := NewHelp(dir, p)
			bad, n, err := help.Check(t.Context(), preset)
			if err != nil {
				t.Fatal(err)
			}
			if n < 4 {
				t.Errorf("only %d options were looked at: the preset is not read", n)
			}
			for _, b := range bad {
				t.Error(b)
			}
			have, err := help.Options(t.Context(), preset)
			if err != nil {
				t.Fatal(err)
			}
			if *update {
				if err := os.WriteFile(filepath.Join("testdata", "flags", p.Harness+".txt"), []byte(strings.Join(have, "\n")+"\n"), 0o644); err != nil {
					t.Fatal(err)
				}
				return
			}
			want, err := Recorded(p)
			if err != nil {
				t.Fatal(err)
			}
			if !slices.Equal(have, want) {
				t.Errorf("the options of %s %s are not those recorded; -update writes them anew", p.Package, p.Version)
			}
		})
	}
}

// An option that is not there, one that its command does not have and a value that
// it does not take are seen; of an argv's words only a lone one is a command.
func TestWhatIsWrongWithAnArgv(t *testing.T) {
	h := &Help{name: "x", texts: map[string]string{
		"x": "Commands:\n  run <what>  work\n  x list      more\n\nOptions:\n  -m, --model <m>  which\n      --mode [string] [choices: \"a\", \"b\"]\n",
		"x run": "Options:\n  --json  lines\n" +
			"  --wide <MODE>\n        how\n        [possible values: yes, no]\n",
	}}
	wf, report := workflow.Load([]byte(`
version: 1
name: t
extends: default
harnesses:
  x:
    prompt: stdin
    session: none
    headless:
      fresh: [x, -m, run, --mode, c, run, --json, {when: profile.model != nil, args: [--model, m]}, {when: profile.model == nil, args: [--wide, perhaps]}, --wide=yes]
`), nil)
	if wf == nil {
		t.Fatal(report)
	}
	bad, n, err := h.Check(t.Context(), wf.Harnesses["x"])
	want := []string{`x --mode takes no "c": [string] [choices: "a", "b"]`, "x run has no option --model", `x run --wide takes no "perhaps": <MODE> how [possible values: yes, no]`}
	if err != nil || n != 6 || !slices.Equal(bad, want) {
		t.Errorf("of %d: %q, %v", n, bad, err)
	}
}

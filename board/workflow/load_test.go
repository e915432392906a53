package workflow

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files anew")

// load loads a file that must be right.
func load(t testing.TB, src string) *Workflow {
	t.Helper()
	w, report := Load([]byte(src), nil)
	if w == nil {
		t.Fatalf("does not load:\n%s", report)
	}
	return w
}

// overlay is a file over the default workflow.
func overlay(t testing.TB, src string) *Workflow {
	t.Helper()
	return load(t, "version: 1\nname: test\nextends: default\n"+src)
}

// WFL-01: what is wrong in a file is told with line, column and advice, all of it at once.
func TestLoadErrors(t *testing.T) {
	files, err := filepath.Glob("testdata/errors/*.yaml")
	if err != nil || len(files) < 15 {
		t.Fatalf("%d files, %v", len(files), err)
	}
	for _, file := range files {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".yaml"), func(t *testing.T) {
			src, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			w, report := Load(src, func(slug string) ([]byte, error) { return nil, fmt.Errorf("no board %s", slug) })
			if w != nil || report.Err() == nil {
				t.Fatal("it loads")
			}
			got := report.String() + "\n"
			golden := strings.TrimSuffix(file, ".yaml") + ".golden"
			if *update {
				if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(golden)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(want) {
				t.Errorf("got:\n%s\nwant:\n%s", got, want)
			}
		})
	}
}

// WFL-02: a file extends the default workflow or another board's: maps merge key by key, a list or a value replaces,
// null removes.
func TestExtends(t *testing.T) {
	w := overlay(t, `
params: {lease: null, review: false, mine: 5, merge: null}
statuses:
  reviewing: {run: {session: other}, on: {exited: null}}
  todo: {on: {promote: null}}
on:
  complete: [{by: [manager], target: done, do: [{end_run: completed}]}]
  reclaim: null
profiles: {codex: null, claude: {model: big, workspace: {kind: dir, path: /x}}}
`)
	p := w.Params(nil)
	if v, ok := p["lease"]; v != nil || !ok || p["review"] != false || p["mine"] != int64(5) || p["grace"] != int64(60) {
		t.Errorf("params: %v", p)
	}
	if s := w.Statuses["reviewing"].Run; s.Session.Source() != "other" || s.Role != "reviewer" {
		t.Errorf("a map is not merged key by key: %+v", s)
	}
	if len(w.Transitions("reviewing", "exited")) != 5 || len(w.Transitions("todo", "promote")) != 0 || len(w.On["reclaim"]) != 0 {
		t.Error("null does not remove")
	}
	if n := len(w.On["complete"]); n != 1 {
		t.Errorf("a list of 1 replaced one of 3 and there are %d", n)
	}
	if w.Profile("codex") != nil || w.Profile("claude").Model != "big" || w.Profile("claude").Workspace.Path != "/x" || w.Profile("claude-pane").Model != "big" {
		t.Errorf("profiles: %+v", w.Profiles)
	}
	if w.Name != "test" || Default().Name != "default" || Default().Profile("codex") == nil {
		t.Error("the default workflow has changed")
	}
}

// WFL-02: a chain of boards, and a circle of them.
func TestExtendsBoards(t *testing.T) {
	files := map[string]string{
		"a":   "version: 1\nname: a\nextends: default\nparams: {lease: 1, stale: 1}\n",
		"b":   "version: 1\nname: b\nextends: board:a\nparams: {lease: 2}\n",
		"c":   "version: 1\nname: c\nextends: board:d\n",
		"d":   "version: 1\nname: d\nextends: board:c\n",
		"bad": "version: 1\nname: bad\nextends: default\nnonsense: 1\n",
	}
	base := func(slug string) ([]byte, error) {
		if src, ok := files[slug]; ok {
			return []byte(src), nil
		}
		return nil, fmt.Errorf("there is no board %s", slug)
	}
	w, report := Load([]byte(files["b"]), base)
	if w == nil {
		t.Fatal(report)
	}
	if p := w.Params(nil); p["lease"] != int64(2) || p["stale"] != int64(1) || p["grace"] != int64(60) {
		t.Errorf("params: %v", p)
	}
	for src, part := range map[string]string{
		files["c"]: "extend each other", "version: 1\nname: x\nextends: board:nope": "there is no board nope", "version: 1\nname: x\nextends: board:bad": "board:bad:4:1",
		"version: 1\nname: x\nextends: other": "extends default or board:SLUG",
	} {
		if w, report := Load([]byte(src), base); w != nil || !strings.Contains(report.String(), part) {
			t.Errorf("%q: %v, want %q", src, report, part)
		}
	}
	if _, report := Load([]byte(files["b"]), nil); !strings.Contains(report.String(), "only be read in a fleet") {
		t.Errorf("without a fleet: %v", report)
	}
}

// M-22: versions of a workflow are told apart by what they do, not by how they are written.
func TestVersion(t *testing.T) {
	a := overlay(t, "params: {lease: 5, note: \"a\\u0007b\"}\nprofiles: {q: {parent: claude, model: null}}\n")
	b := overlay(t, "# a comment\nprofiles:\n  q:\n    model: ~\n    parent: 'claude'\nparams: {note: \"a\\x07b\", lease: 5.0}\n")
	if a.Version() != b.Version() {
		t.Errorf("the same workflow has two versions:\n%s\n%s", a.Canonical(), b.Canonical())
	}
	for _, other := range []string{"params: {lease: 6}", "params: {lease: '5'}", "params: {lease: null}", "profiles: {q: {parent: claude}}"} {
		if overlay(t, other).Version() == a.Version() {
			t.Errorf("%s has the same version", other)
		}
	}
	for _, w := range []*Workflow{a, Default()} {
		again := load(t, string(w.Canonical()))
		if again.Version() != w.Version() || string(again.Canonical()) != string(w.Canonical()) {
			t.Errorf("the canonical form loads as another workflow:\n%s", again.Canonical())
		}
	}
}

// Invariant 27: hostile files end in a report, within bounds.
func TestNastyFiles(t *testing.T) {
	head := "version: 1\nname: x\nextends: default\n"
	bomb := "a: &a [x,x,x,x,x,x,x,x,x]\n"
	for c := 'b'; c < 'k'; c++ {
		bomb += fmt.Sprintf("%c: &%c [%s]\n", c, c, strings.TrimSuffix(strings.Repeat(fmt.Sprintf("*%c,", c-1), 9), ","))
	}
	for name, src := range map[string]string{
		"brackets": strings.Repeat("[", 200_000), "braces": strings.Repeat("{a: ", 50_000), "dashes": strings.Repeat("- ", 100_000), "questions": strings.Repeat("? ", 100_000),
		"bomb": bomb, "big": head + strings.Repeat("#", MaxSize), "many": head + "params:\n" + strings.Repeat("  - 1\n", 30_000), "utf8": head + "params: {a: \"\xff\xfe\"}",
		"null": "\x00\x00", "bom": "\xef\xbb\xbf" + strings.Repeat("\xef\xbb\xbf", 1000), "quotes": head + strings.Repeat(`"`, 99_999), "colons": strings.Repeat(": ", 60_000),
		"merge key": head + "<<: {params: {a: 1}}", "key map": head + "? {a: b}\n: c", "nan": head + "params: {a: .nan}",
		"deep profile chain": head + "profiles:\n" + chain(40), "anchors": head + "params: &x {}", "comment": strings.Repeat("#\n", 100_000),
		"wrong everywhere": head + "on:\n  e:\n" + strings.Repeat("    - {guard: x, foo: 1, do: [bar]}\n", 3000),
	} {
		w, report := Load([]byte(src), nil)
		if w != nil {
			t.Errorf("%s loads", name)
		}
		if n := len(report.Findings); n == 0 || n > maxFindings || len(report.String()) > 64<<10 {
			t.Errorf("%s: %d findings, %d bytes", name, n, len(report.String()))
		}
	}
}

func chain(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "  p%d: {parent: p%d}\n", i, i+1)
	}
	fmt.Fprintf(&b, "  p%d: {harness: command, args: [x]}\n", n)
	return b.String()
}

func FuzzLoad(f *testing.F) {
	f.Add([]byte("version: 1\nname: x\nextends: default\nparams: {a: [1, {b: null}]}\n"))
	f.Add([]byte("version: 1\nname: x\ninitial: todo\nstatuses: {todo: {stored_as: todo, on: {go: [{guard: card.due, target: '{{ \"todo\" }}', do: [{comment: x}]}]}}}\n"))
	f.Add([]byte("version: 1\nname: x\nextends: default\nprofiles: {a: {parent: claude, env: {A: {from: B}}, args: ['{{ card.id }}'], memory: 1G}}\n"))
	f.Add([]byte("version: 1\nname: x\nextends: default\nharnesses: {a: {headless: {fresh: [x, {each: profile.args, args: ['{{ item }}']}]}, exit: {1: auth}}}\n"))
	f.Fuzz(func(t *testing.T, src []byte) {
		w, report := Load(src, nil)
		if w == nil {
			if !report.Failed() {
				t.Error("nothing is wrong and nothing is loaded")
			}
			return
		}
		Lint(w)
		again, report := Load(w.Canonical(), nil)
		if again == nil || again.Version() != w.Version() {
			t.Errorf("the canonical form of %q does not load as itself: %s\n%s", src, w.Canonical(), report)
		}
	})
}

func BenchmarkLoadDefault(b *testing.B) {
	b.ReportAllocs()
	for b.Loop() {
		if w, report := Load(defaultSource, nil); w == nil {
			b.Fatal(report)
		}
	}
}

func BenchmarkLintDefault(b *testing.B) {
	w := Default()
	for b.Loop() {
		Lint(w)
	}
}

// migrate maps statuses, and under roles and slots those of live runs; what it leads to must be there.
func TestMigrate(t *testing.T) {
	w := load(t, small+"migrate: {old: todo, roles: {maker: implementer}, slots: {desk: worker}}\n")
	if w.Migrate["old"] != "todo" || w.MigrateRoles["maker"] != "implementer" || w.MigrateSlots["desk"] != "worker" || len(w.Migrate) != 1 {
		t.Errorf("%v %v %v", w.Migrate, w.MigrateRoles, w.MigrateSlots)
	}
	for line, want := range map[string]string{
		"migrate: {old: mars}": `no status "mars"`, "migrate: {roles: {maker: mars}}": `no role "mars"`, "migrate: {old: {a: b}}": "only roles and slots have a map", "migrate: {slots: {desk: Über}}": "is no name",
	} {
		if w, report := Load([]byte(small+line+"\n"), nil); w != nil || !strings.Contains(report.String(), want) {
			t.Errorf("%s: %v, want %q", line, report, want)
		}
	}
}

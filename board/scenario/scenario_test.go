package scenario

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"muster/board/workflow"
)

func player(t testing.TB, source string) *Player {
	t.Helper()
	p, err := NewPlayer([]byte(source))
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func load(t testing.TB, src string) []*Scenario {
	t.Helper()
	list, report := Load([]byte(src))
	if list == nil {
		t.Fatal(report)
	}
	return list
}

// standard plays on the default workflow, compiled once; stories do not see each other.
var standard = sync.OnceValues(func() (*Player, error) { return NewPlayer(workflow.DefaultSource()) })

// failures plays a file on the default workflow and gives what went wrong.
func failures(t testing.TB, src string) (texts []string) {
	t.Helper()
	p, err := standard()
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range load(t, src) {
		for _, f := range p.Play(s).Failures {
			texts = append(texts, f.String())
		}
	}
	return texts
}

// WFL-01, issue 3: the default workflow does what its own scenarios say, and every transition of it is taken by one.
func TestDefaultScenarios(t *testing.T) {
	p := player(t, string(workflow.DefaultSource()))
	for _, s := range load(t, string(DefaultSource())) {
		for _, f := range p.Play(s).Failures {
			t.Errorf("%s: %s", s.Name, f)
		}
	}
	lines := p.Coverage()
	if len(lines) < 50 {
		t.Errorf("the default workflow has %d transitions", len(lines))
	}
	for _, l := range lines {
		if l.Taken == 0 {
			t.Errorf("%s (line %d) is taken by none of its scenarios: %s", l.Path, l.Line, l.Says)
		}
	}
}

// The same story gives the same answer, whatever was played before.
func TestPlayTwice(t *testing.T) {
	p := player(t, string(workflow.DefaultSource()))
	list := load(t, string(DefaultSource()))
	play := func() (all []string) {
		for _, s := range list {
			all = append(all, fmt.Sprint(s.Name, p.Play(s).Failures))
		}
		return all
	}
	first := play()
	slices.Reverse(list)
	second := play()
	slices.Reverse(second)
	if !slices.Equal(first, second) {
		t.Errorf("first %v, then %v", first, second)
	}
}

const running = `
- name: x
  cards: [{id: a, status: running, failures: 1, run: {role: implementer, source: ready, profile: claude}}, {id: b, status: todo, after: [a]}]
  steps:
    - `

// Every key of `then` fails when it is not so, says what was wanted and what is, and where; the right one passes.
func TestThen(t *testing.T) {
	crash := "{event: exited, card: a, payload: {code: 1, error: out of luck}, then: {%s}}"
	review := "{event: request_review, card: a, by: implementer, payload: {summary: it works}, then: {%s}}"
	for _, c := range []struct{ step, right, wrong, says string }{
		{crash, "status: blocked", "status: ready", `status: want "ready", got "blocked"`},
		{crash, "stored: blocked", "stored: done", `stored: want "done", got "blocked"`},
		{crash, "previous: running", "previous: ready", `previous: want "ready", got "running"`},
		{crash, "failures: 2", "failures: 1", "failures: want 1, got 2"},
		{crash, "outcome: crashed", "outcome: null", `outcome: want none, got "crashed"`},
		{crash, "run: null", "run: true", "run: want true, got none"},
		{crash, "orders: [stop]", "orders: []", `orders: want [], got ["stop"]`},
		{crash, "error: luck", "error: joy", `error: want "joy", got "out of luck"`},
		{crash, "attention: failed 2 times", "attention: null", "attention: want none, got"},
		{crash, "block: capability, reason: in a row", "block: needs_input", `block: want "needs_input", got "capability"`},
		{crash, "events: [exited]", "events: [exited, launched]", "events: want"},
		{crash, "cards: {b: todo}", "cards: {b: ready}", `cards: want {b: "ready"}, got {b: "todo"}`},
		{crash, "new: []", "new: [c]", `new: want ["c"], got 0 cards`},
		{crash, "assignee: claude, machine: null, priority: 0, title: card a", "assignee: codex", `assignee: want "codex", got "claude"`},
		{review, "status: review, comment: works", "comment: fails", `comment: want "fails", got "it works"`},
		{"{event: machine_offline, card: a, payload: {seconds: 1}, then: {%s}}", "nothing: true", "nothing: false", "nothing: want false, got it changed nothing"},
		{crash, "nothing: false", "nothing: true", "it changed something"},
		{"{event: complete, card: a, by: implementer, then: {%s}}", "refused: a review is wanted", "refused: no_transition", `refused: want "no_transition", got "card t-1: a review is wanted here`},
		{crash, "refused: false", "refused: true", "refused: want true, got it was taken"},
		{"{event: specify, card: b, by: manager, then: {%s}}", "refused: true", "status: todo", "specify was refused: "},
		{"{event: comment, card: a, by: manager, then: {%s}}", "run: {role: implementer, slot: worker, source: ready, profile: claude, n: 1}", "run: {profile: codex}", "run: want"},
		{"{event: comment, card: a, by: manager, then: {%s}}", "run: implementer", "run: reviewer", `run: want "reviewer", got implementer`},
		{"{event: start, card: c, then: {%s}}", "", "status: x", `there is no card "c" in this story; there are [a b]`},
		{"{event: comment, card: b, by: reviewer, then: {%s}}", "", "status: x", "nobody plays reviewer on card b now"},
		{"{event: start, card: b, machine: mars, then: {%s}}", "", "status: x", "there is no machine mars"},
	} {
		if c.right != "" {
			if got := failures(t, running+fmt.Sprintf(c.step, c.right)); len(got) != 0 {
				t.Errorf("%s is so, and it says %v", c.right, got)
			}
		}
		got := failures(t, running+fmt.Sprintf(c.step, c.wrong))
		if len(got) != 1 || !strings.Contains(got[0], c.says) || !strings.HasPrefix(got[0], "5:") || !strings.Contains(got[0], "step 1") {
			t.Errorf("%s is not so, and it says %q; want %q with line and step", c.wrong, got, c.says)
		}
	}
}

// A step that fails ends its story; what is unknown in a file is told with line and column, all at once.
func TestLoadErrors(t *testing.T) {
	for src, want := range map[string]string{
		"- {name: x, steps: [{event: e, card: a, then: {statsu: done}}]}": "1:48: error: [0].steps[0].then: unknown key \"statsu\"; did you mean status?",
		"- {name: x, stpes: []}":                                             "1:13: error: [0]: unknown key \"stpes\"; did you mean steps?",
		"- {name: x, steps: [{evnt: e}]}":                                    "1:22: error: [0].steps[0]: unknown key \"evnt\"; did you mean event?",
		"- {name: x, cards: [{id: a, stat: b}], steps: []}":                  "unknown key \"stat\"",
		"- {steps: [{after: 1}]}":                                            "a scenario has a name",
		"- {name: x}":                                                        "a scenario has steps",
		"- {name: x, steps: [{event: e}]}":                                   "which card?",
		"- {name: x, steps: [{by: manager}]}":                                "a step is an event, an add, or time that passes",
		"- {name: x, steps: [{after: -1}]}":                                  "a number of seconds",
		"- {name: x, steps: [{after: 1}]}\n- {name: x, steps: [{after: 1}]}": "there is a scenario \"x\" in line 1",
		"- {name: x, zone: Mars, steps: [{after: 1}]}":                       "no time zone",
		"- {name: x, at: noon, steps: [{after: 1}]}":                         "a time is wanted",
		"- {name: x, at: &t x, steps: [{after: 1}]}":                         "anchors and aliases",
		"- {name: x, name: y, steps: [{after: 1}]}":                          "stands once",
		"- {name: !!int x, steps: [{after: 1}]}":                             "tags",
		"- [":                                                                "this is no YAML",
		"":                                                                   "the file is empty",
		"a: b":                                                               "a list is wanted here",
		"- {name: x, steps: [{after: 1}]}\n---\n- {}":                        "after the end of its first document",
		"- {name: x, cards: [{id: a, status: b, creator: cat}], steps: [{after: 1}]}": "a creator is person, run or platform",
		"- {name: x, steps: [{add: {title: t}, card: a}]}":                            "it has neither event nor card",
		strings.Repeat("[", 2000):                                                     "1:",
		strings.Repeat("#", MaxSize+1):                                                "more than 262144",
	} {
		list, report := Load([]byte(src))
		if list != nil || !strings.Contains(strings.ReplaceAll(report.String(), " (", "; ("), want) && !strings.Contains(report.String(), want) {
			t.Errorf("%.80q: %v, want %q", src, report, want)
		}
	}
	_, report := Load([]byte("- {nme: x, stps: []}\n- {x: 1, y: 2}"))
	if n := len(report.Findings); n < 6 {
		t.Errorf("%d findings: not all at once: %v", n, report)
	}
}

// What a story sets up wrongly is told before its first step.
func TestSetUpErrors(t *testing.T) {
	for src, want := range map[string]string{
		"cards: [{id: a, status: nowhere}]":                         `the workflow has no status "nowhere"`,
		"cards: [{id: a, status: running}]":                         `status "running" has a run: say whose (run: {role: implementer})`,
		"cards: [{id: a, status: todo, run: {role: implementer}}]":  `status "todo" has no run`,
		"cards: [{id: a, status: todo}, {id: a, status: todo}]":     "two cards of that name",
		"cards: [{id: a, status: todo, after: [b]}]":                `no card "b"`,
		"cards: [{id: a, status: running, run: {source: mars}}]":    `a status "mars" that the workflow does not have`,
		"cards: [{id: a, status: running, run: {machine: mars}}]":   "no machine mars",
		"cards: [{id: a, status: running, run: {profile: nobody}}]": `no profile "nobody"`,
		"params: {nonsense: 1}":                                     `no parameter "nonsense"`,
		"machines: [{name: m}, {name: m}]":                          "two machines m",
		"profiles: {x: {harness: nothing}}":                         "nothing",
	} {
		got := failures(t, "- {name: x, "+src+", steps: [{after: 1}]}")
		if len(got) != 1 || !strings.Contains(got[0], want) || strings.Contains(got[0], "step") {
			t.Errorf("%s: %q, want %q", src, got, want)
		}
	}
}

// Machines obey: a start is launched, a stop ends its session, and a session whose own word ended its run leaves,
// before the next step; so the next start is never held up.
func TestMachinesObey(t *testing.T) {
	if got := failures(t, `
- name: three runs after each other
  cards: [{id: a, status: ready, assignee: claude}]
  steps:
    - {event: start, card: a, then: {orders: [start], run: {n: 1}}}
    - {event: reclaim, card: a, by: manager, then: {orders: [stop], status: ready}}
    - {event: start, card: a, then: {orders: [start], run: {n: 2}}}
    - {event: request_review, card: a, by: implementer, then: {status: review}}
    - {event: request_changes, card: a, by: manager, then: {status: ready}}
    - {event: start, card: a, then: {run: {n: 3}}}
`); len(got) != 0 {
		t.Error(got)
	}
}

// Time passes as the leader sees it: what becomes due on the way is done at its time, in order.
func TestTimePasses(t *testing.T) {
	if got := failures(t, `
- name: limits and times come by themselves
  at: 2026-03-02T10:00:00Z
  cards:
    - {id: a, status: running, max_runtime: 60, run: {source: ready, profile: claude}}
    - {id: b, status: todo, start_after: 30}
  steps:
    - {after: 31, then: {cards: {a: running, b: ready}}}
    - {after: 30, event: comment, card: a, by: manager, payload: {text: x}, then: {status: ready, failures: 1, outcome: timed_out}}
`); len(got) != 0 {
		t.Error(got)
	}
}

// Coverage counts by transition; one that is refused afterwards by a validator is not taken.
func TestCoverage(t *testing.T) {
	p := player(t, string(workflow.DefaultSource()))
	p.Play(load(t, running+"{event: complete, card: a, by: implementer, then: {refused: true}}\n    - {event: comment, card: a, by: manager, payload: {text: x}}\n    - {event: comment, card: b, by: manager, payload: {text: x}}\n")[0])
	taken := map[string]int{}
	for _, l := range p.Coverage() {
		if l.Taken > 0 {
			taken[l.Path] = l.Taken
		}
	}
	if len(taken) != 1 || taken["on.comment[0]"] != 2 {
		t.Errorf("taken: %v", taken)
	}
}

// The example of workflow.md is taken as it stands there, but that what waits for nothing is ready at once.
func TestFormatExample(t *testing.T) {
	src, err := os.ReadFile("testdata/format/example.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if got := failures(t, string(src)); len(got) != 0 {
		t.Error(got)
	}
}

// Whatever a file of scenarios holds, loading and playing it ends, without a panic.
func FuzzScenario(f *testing.F) {
	f.Add(string(DefaultSource())[:4000])
	f.Add(running + "{event: exited, card: a, payload: {code: 1}, then: {status: blocked}}")
	f.Add("- {name: x, cards: [{id: a, status: todo, after: [a]}], steps: [{after: 1e9, then: {cards: {a: x}}}]}")
	f.Add("- {name: x, params: {idle_interval: []}, steps: [{add: {title: [1], after: {}}, then: {new: 1}}]}")
	f.Add("- {name: x, machines: [{name: '', slots: -5}], steps: [{event: start, card: a, by: '', payload: {a: {b: [null]}}}]}")
	p := player(f, string(workflow.DefaultSource()))
	f.Fuzz(func(t *testing.T, src string) {
		list, report := Load([]byte(src))
		if (list == nil) != report.Failed() && src != "[]" {
			t.Fatalf("scenarios %v with %v", list, report)
		}
		if len(report.Findings) > maxFindings {
			t.Fatalf("%d findings", len(report.Findings))
		}
		for i, s := range list {
			if i < 5 {
				p.Play(s)
			}
		}
	})
}

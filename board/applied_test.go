package board

import (
	"encoding/json"
	"strings"
	"testing"
)

// M-22: what cannot work is not saved, whoever sends it; a warning is no refusal.
func TestWhatCanNotWorkIsNotSaved(t *testing.T) {
	f, _, _, _ := underWay(t)
	f.must(f.person(VBoardApply), BoardApply{Board: "x", YAML: renamed("initial: idea", "initial: idea\nparams: {spare: 1}")})
	left := strings.Replace(flowOf, "do: [{end_run: ok}]", "do: [{comment: ok}]", 1)
	seq := f.v.Seq()
	refused(t, f.apply(left), "workflow", "without ending it")
	refused(t, f.do(f.person(VBoardCreate), BoardCreate{Slug: "y", YAML: left}).Err, "workflow", "cannot work")
	if f.v.Seq() != seq || GetBoard(f.v, "y") != nil {
		t.Error("a refusal wrote something")
	}
}

// Issue 3, item 6: an apply says which cards name a profile that the version does not have, and what of the board's own
// parameters counts for nothing or names nobody; it is no refusal, for a person mends it with the next word.
func TestApplyChecksProfiles(t *testing.T) {
	f, idle, busy, parked := underWay(t)
	with := func(params string) string {
		return renamed("initial: idea", "initial: idea\nparams: "+params+"\nroles: {writer: 'card.assignee ?? params.who'}")
	}
	notes := func(yaml string) string {
		list, _ := f.must(f.person(VBoardApply), BoardApply{Board: "x", YAML: yaml})["notes"].([]any)
		var all []string
		for _, n := range list {
			all = append(all, n.(string))
		}
		return strings.Join(all, "\n")
	}
	if got := notes(with("{who: null, pace: 1}")); got != "" {
		t.Errorf("nothing is wrong, and it says: %s", got)
	}
	set := func(key, val string) *Error {
		return f.do(f.person(VBoardSet), BoardSet{Board: "x", Set: map[string]json.RawMessage{key: json.RawMessage(val)}}).Err
	}
	if err := set("params.who", `"ghost"`); err == nil || !strings.Contains(err.Message, "profile \"ghost\"") || !strings.Contains(err.Hint, "sh") {
		t.Errorf("a role is given to nobody: %v", err)
	}
	for _, kv := range [][2]string{{"params.who", `"sh"`}, {"params.pace", "2"}} {
		if err := set(kv[0], kv[1]); err != nil {
			t.Fatal(err)
		}
	}
	got := notes(strings.ReplaceAll(with("{who: null}"), "{sh: {", "{ksh: {"))
	for _, want := range []string{
		"board x sets params.pace, which this version does not have",
		`params.who gives role writer to profile "sh", which there is not`,
		"3 card(s) are given to profile sh, which this version does not have (" + strings.Join([]string{idle, busy, parked}, ", ") + ")",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("it does not say %q:\n%s", want, got)
		}
	}
}

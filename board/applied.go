package board

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"muster/board/workflow"
)

// How much an apply says: its answer is kept with its request's id.
const (
	maxNotes = 10
	maxNamed = 5 // cards in a note
)

// linted refuses what [workflow.Lint] calls an error: every word of the file is known, and it cannot work all the same
// (M-22: saving validates everything first). An import is not asked: what it brings was in force somewhere.
func (t *tx) linted(b *Board) *Error {
	fl, err := t.flow(b)
	if err != nil {
		return err
	}
	var lines []string
	for _, f := range workflow.Lint(fl.wf) {
		if f.Severity == workflow.Error {
			lines = append(lines, f.String())
		}
	}
	if len(lines) == 0 {
		return nil
	}
	return Errorf(Invalid, "board %s: its workflow cannot work: %s", b.Slug, clip(strings.Join(lines, "\n"), 4000)).
		WithCheck("workflow").WithHint("see: muster workflow lint FILE")
}

// profileNotes say what a new version leaves without a profile, for who applies it: cards that name one that it does not
// have wait until somebody gives them another; values that the board itself gave count for nothing or name nobody.
func (t *tx) profileNotes(b *Board) (notes []string) {
	fl, err := t.flow(b)
	if err != nil {
		return nil
	}
	var own map[string]any
	if json.Unmarshal(b.Params, &own) == nil {
		for _, name := range sortedKeys(own) {
			if _, ok := fl.wf.Defaults[name]; !ok {
				notes = append(notes, fmt.Sprintf("board %s sets params.%s, which this version does not have: it counts for nothing", b.Slug, name))
			}
		}
	}
	for _, p := range fl.wf.StrangePlayers(fl.params) {
		notes = append(notes, p.String()+": cards of it wait; set another: muster board set "+b.Slug+" params."+p.Param+"=PROFILE")
	}
	lost := map[string][]string{}
	EachCard(t, b, func(c *Card) bool {
		if c.Assignee != "" && !Finished(c.Stored) && fl.wf.Profiles[c.Assignee] == nil {
			lost[c.Assignee] = append(lost[c.Assignee], c.ID)
		}
		return true
	})
	for _, name := range sortedKeys(lost) {
		ids := lost[name]
		slices.Sort(ids)
		more := ""
		if len(ids) > maxNamed {
			ids, more = ids[:maxNamed], ", ..."
		}
		notes = append(notes, fmt.Sprintf("%d card(s) are given to profile %s, which this version does not have (%s%s): they wait; give them another: muster reassign CARD P", len(lost[name]), name, strings.Join(ids, ", "), more))
	}
	if more := len(notes) - maxNotes; more > 0 {
		notes = append(notes[:maxNotes], fmt.Sprintf("and %d more like these", more))
	}
	return notes
}

// knownPlayer refuses a value of a parameter that gives a role to a profile which is not there.
func (t *tx) knownPlayer(b *Board, set []string) *Error {
	fl, err := t.flow(b)
	if err != nil {
		return err
	}
	for _, p := range fl.wf.StrangePlayers(fl.params) {
		if slices.Contains(set, "params."+p.Param) {
			return Errorf(Invalid, "board %s: %s", b.Slug, p.String()).WithHint("profiles: %s", strings.Join(sortedKeys(fl.wf.Profiles), ", "))
		}
	}
	return nil
}

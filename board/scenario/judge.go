package scenario

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"muster/board"
	"muster/board/rule"
)

// probe compares one key of `then` with what is so. It answers what there is instead; ok: as wanted.
type probe func(w *world, r *result, want any) (got string, ok bool)

// probes are the keys of `then`.
var probes = map[string]probe{
	"status":    ofCard(func(c *board.Card) any { return c.Status }),
	"stored":    ofCard(func(c *board.Card) any { return c.Stored }),
	"previous":  ofCard(func(c *board.Card) any { return c.Previous }),
	"failures":  ofCard(func(c *board.Card) any { return c.Failures }),
	"outcome":   ofCard(func(c *board.Card) any { return c.LastOutcome }),
	"assignee":  ofCard(func(c *board.Card) any { return c.Assignee }),
	"machine":   ofCard(func(c *board.Card) any { return c.Machine }),
	"title":     ofCard(func(c *board.Card) any { return c.Title }),
	"priority":  ofCard(func(c *board.Card) any { return c.Priority }),
	"block":     ofCard(func(c *board.Card) any { return c.BlockKind }),
	"reason":    inCard(func(c *board.Card) string { return c.BlockReason }),
	"error":     inCard(func(c *board.Card) string { return c.LastError }),
	"attention": inCard(func(c *board.Card) string { return c.Attention.Text }),
	"body":      body,
	"comment":   comment,
	"run":       runIs,
	"orders":    ordersAre,
	"events":    eventsHave,
	"refused":   refusedWith,
	"nothing":   nothing,
	"new":       added,
	"cards":     others,
}

// judge holds a step against what it says must be so.
func (r *result) judge(w *world, st *Step) (fails []Failure) {
	add := func(f Failure) { fails = append(fails, f) }
	if r.err != nil {
		return []Failure{{Pos: st.Pos, Text: r.err.Error()}}
	}
	expected := slices.ContainsFunc(st.Then, func(c Check) bool { return c.Key == "refused" || c.Key == "nothing" })
	if r.denied != nil && !expected {
		return []Failure{{Pos: st.Pos, Text: fmt.Sprintf("%s was refused: %v", orElse(st.Event, "add"), told(r.denied))}}
	}
	// Names first: what follows may speak of the new cards.
	for _, first := range []bool{true, false} {
		for _, c := range st.Then {
			if (c.Key == "new") != first {
				continue
			}
			if got, ok := probes[c.Key](w, r, c.Want); !ok {
				add(Failure{Pos: c.Pos, Text: fmt.Sprintf("%s: want %s, got %s", c.Key, show(c.Want), got)})
			}
		}
	}
	return fails
}

// show writes a value for people.
func show(v any) string {
	switch x := v.(type) {
	case nil:
		return "none"
	case string:
		return fmt.Sprintf("%q", x)
	case []any, []string:
		return strings.ReplaceAll(fmt.Sprintf("%q", x), " ", ", ")
	case map[string]any:
		var parts []string
		for _, k := range keys(x) {
			parts = append(parts, k+": "+show(x[k]))
		}
		return "{" + strings.Join(parts, ", ") + "}"
	case bool:
		return fmt.Sprint(x)
	}
	return rule.Format(v)
}

// ofCard compares a field: null is an empty one.
func ofCard(get func(*board.Card) any) probe {
	return func(w *world, r *result, want any) (string, bool) {
		c := board.GetCard(w.v, r.card)
		if c == nil {
			return "no card", false
		}
		return compare(get(c), want)
	}
}

func compare(got, want any) (string, bool) {
	switch x := got.(type) {
	case int64:
		got = float64(x)
	case string:
		if x == "" {
			got = nil
		}
	}
	if want == "" {
		want = nil
	}
	return show(got), reflect.DeepEqual(got, want)
}

// inCard looks for a text in a field; null is none.
func inCard(get func(*board.Card) string) probe {
	return func(w *world, r *result, want any) (string, bool) {
		c := board.GetCard(w.v, r.card)
		if c == nil {
			return "no card", false
		}
		return contains(get(c), want)
	}
}

func contains(got string, want any) (string, bool) {
	part, ok := want.(string)
	if want == nil || ok && part == "" {
		return show(nonEmpty(got)), got == ""
	}
	return show(nonEmpty(got)), ok && strings.Contains(got, part)
}

func nonEmpty(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func body(w *world, r *result, want any) (string, bool) {
	return contains(board.GetBody(w.v, r.card), want)
}

// comment looks for a text in the newest comment.
func comment(w *world, r *result, want any) (string, bool) {
	newest := ""
	if c := board.GetCard(w.v, r.card); c != nil {
		board.EachComment(w.v, c, func(c *board.Comment) bool { newest = c.Body; return true })
	}
	return contains(newest, want)
}

// runIs compares the card's run: none, the role, or what a map says of it.
func runIs(w *world, r *result, want any) (string, bool) {
	c := board.GetCard(w.v, r.card)
	if c == nil {
		return "no card", false
	}
	run := board.GetRun(w.v, c.Run)
	if run == nil {
		return "none", want == nil || want == false
	}
	is := map[string]any{"role": run.Role, "slot": run.Slot, "source": run.Source, "profile": run.Profile, "surface": run.Surface,
		"mode": run.Mode, "machine": w.nodes[run.Node].Name, "n": float64(run.N)}
	switch x := want.(type) {
	case bool:
		return show(is), x
	case string:
		return run.Role, x == run.Role
	case map[string]any:
		for k, v := range x {
			if is[k] != v {
				return show(is), false
			}
		}
		return show(is), true
	}
	return show(is), false
}

func ordersAre(_ *world, r *result, want any) (string, bool) {
	got := slices.Clone(r.orders)
	slices.Sort(got)
	list := strs(want)
	slices.Sort(list)
	return show(got), slices.Equal(got, list)
}

// eventsHave looks for the kinds among the card's events of this step, in order.
func eventsHave(_ *world, r *result, want any) (string, bool) {
	rest := r.events
	for _, kind := range strs(want) {
		i := slices.Index(rest, kind)
		if i < 0 {
			return show(r.events), false
		}
		rest = rest[i+1:]
	}
	return show(r.events), true
}

func strs(v any) []string {
	list := []string{}
	items, ok := v.([]any)
	if !ok && v != nil {
		items = []any{v}
	}
	for _, x := range items {
		list = append(list, rule.Format(x))
	}
	return list
}

func refusedWith(_ *world, r *result, want any) (string, bool) {
	if r.denied == nil {
		return "it was taken", want == false
	}
	said := r.denied.Message + " " + r.denied.Hint + " " + r.denied.Check
	if want == true {
		return said, true
	}
	part, ok := want.(string)
	return show(strings.TrimSpace(said)), ok && strings.Contains(said, part)
}

// nothing: no transition took the event, or one that does nothing.
func nothing(w *world, r *result, want any) (string, bool) {
	none := r.after == r.seq && (r.denied == nil || r.denied.Check == board.NoTransition)
	got := "it changed nothing"
	switch {
	case r.denied != nil && r.denied.Check != board.NoTransition:
		got = "it was refused: " + r.denied.Message
	case !none:
		got = "it changed something: " + show(r.events)
		if c := board.GetCard(w.v, r.card); c != nil {
			got += ", status " + c.Status
		}
	}
	return got, want == none
}

// added compares how many cards were filed, and names them for the rest of the story.
func added(w *world, r *result, want any) (string, bool) {
	if n, ok := want.(float64); ok {
		return fmt.Sprint(len(r.added)), int(n) == len(r.added)
	}
	names := strs(want)
	if len(names) != len(r.added) {
		return fmt.Sprintf("%d cards (%s)", len(r.added), strings.Join(r.added, ", ")), false
	}
	for i, id := range r.added {
		if w.ids[names[i]] != "" {
			return "there is a card " + names[i] + " already", false
		}
		w.name(names[i], id)
	}
	return show(names), true
}

// others compares the status of other cards of the story.
func others(w *world, _ *result, want any) (string, bool) {
	m, ok := want.(map[string]any)
	if !ok {
		return "a map from cards to their status is wanted here", false
	}
	got := map[string]any{}
	for name := range m {
		got[name] = nil
		if id, err := w.id(name); err == nil {
			got[name] = board.GetCard(w.v, id).Status
		}
	}
	return show(got), reflect.DeepEqual(got, m)
}

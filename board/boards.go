package board

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"
)

var (
	slugRE   = regexp.MustCompile(`^[a-z][a-z0-9-]{0,31}$`)
	prefixRE = regexp.MustCompile(`^[a-z][a-z0-9]{0,11}$`)
)

const (
	maxYAML = 256 << 10
)

func boardCreate(t *tx) (any, *Error) {
	a, err := args[BoardCreate](t)
	if err != nil {
		return nil, err
	}
	return t.makeBoard(a)
}

func (t *tx) makeBoard(a BoardCreate) (any, *Error) {
	if !slugRE.MatchString(a.Slug) {
		return nil, Errorf(Invalid, "board %q: a slug is a lower-case letter, then letters, digits and dashes, at most 32", clip(a.Slug, 40))
	}
	if importing(t, a.Slug, a.Prefix) {
		return nil, Errorf(Conflict, "board %q, or one with its prefix, is being imported", a.Slug)
	}
	if t.Has(TBoard, a.Slug) {
		return nil, Errorf(Conflict, "board %q exists", a.Slug).WithHint("see: muster board show %s", a.Slug)
	}
	prefix := a.Prefix
	if prefix == "" {
		prefix = t.freePrefix(a.Slug)
	}
	if !prefixRE.MatchString(prefix) {
		return nil, Errorf(Invalid, "card prefix %q: a lower-case letter, then letters and digits, at most 12", clip(prefix, 40))
	}
	if t.Has(TPrefix, prefix) {
		return nil, Errorf(Conflict, "the card prefix %q is another board's", prefix).WithHint("give another: prefix=...")
	}
	b := &Board{Slug: a.Slug, Prefix: prefix, Label: clip(orElse(a.Label, a.Slug), 100), Keep: 90, Created: t.env.Now}
	t.write(Op{Table: TPrefix, Key: prefix, Val: []byte(a.Slug)})
	if err := t.saveWorkflow(b, a.YAML); err != nil {
		return nil, err
	}
	if err := t.linted(b); err != nil {
		return nil, err
	}
	t.putBoard(b)
	t.event(nil, Event{Kind: "board_created", Board: b.Slug})
	return map[string]any{"slug": b.Slug, "prefix": b.Prefix}, nil
}

// freePrefix makes a card prefix of a slug: its letters and digits, numbered when taken.
func (t *tx) freePrefix(slug string) string {
	p := clipTo(strings.ReplaceAll(slug, "-", ""), 12)
	for i := 2; (t.Has(TPrefix, p) || importing(t, "", p)) && i < 10_000; i++ {
		n := fmt.Sprint(i)
		p = clipTo(strings.ReplaceAll(slug, "-", ""), 12-len(n)) + n
	}
	return p
}

func clipTo(s string, n int) string { return s[:min(len(s), n)] }

// boardApply saves a workflow after validating everything (M-22).
func boardApply(t *tx) (any, *Error) {
	a, err := args[BoardApply](t)
	if err != nil {
		return nil, err
	}
	b, err := t.board(a.Board)
	if err != nil {
		return nil, err
	}
	if a.Was != 0 && a.Was != b.Workflow {
		return nil, Errorf(Conflict, "board %s: its workflow was changed meanwhile: version %d is in force, and yours was written against %d", b.Slug, b.Workflow, a.Was).
			WithCheck("changed").WithHint("look again: muster workflow show --board %s", b.Slug)
	}
	was, version := t.flowBefore(b), b.Workflow
	if err := b.settled(t); err != nil {
		return nil, err
	}
	if err := t.saveWorkflow(b, a.YAML); err != nil {
		return nil, err
	}
	if err := t.linted(b); err != nil {
		return nil, err
	}
	notes := t.profileNotes(b)
	moved, later, err := t.migrate(b, was)
	if err != nil {
		return nil, err
	}
	if later {
		t.carryAll(b, version, b.Params)
	}
	t.putBoard(b)
	t.event(nil, Event{Kind: "board_applied", Board: b.Slug, Payload: jsonOf(map[string]any{"version": b.Workflow, "moved": moved})})
	if a.DryRun {
		t.out = nil
	}
	out := map[string]any{"board": b.Slug, "version": b.Workflow, "moved": moved, "in_steps": later, "dry_run": a.DryRun}
	if len(notes) > 0 {
		out["notes"] = notes
	}
	return out, nil
}

// settled refuses another change of what its cards are carried over to before the last of them is. A version that
// cannot be used carries none over: what mends it is taken, and gives up what it had begun.
func (b *Board) settled(t *tx) *Error {
	if b.Carry == "" {
		return nil
	}
	if _, err := t.flow(b); err == nil {
		return Errorf(Conflict, "board %s: its cards are still being carried over to version %d", b.Slug, b.Workflow).WithCheck("migrate").WithHint("try again in a moment")
	}
	b.carried()
	return nil
}

// saveWorkflow validates a workflow and stores it as the board's next version.
func (t *tx) saveWorkflow(b *Board, yaml string) *Error {
	if len(yaml) > maxYAML {
		return Errorf(Exhausted, "a workflow of %d bytes; the bound is %d", len(yaml), maxYAML)
	}
	if strings.TrimSpace(yaml) == "" {
		yaml = "version: 1\nname: " + b.Slug + "\nextends: default\n"
	}
	b.Workflow++
	t.put(TWorkflow, WorkflowKey(b.Slug, b.Workflow), &WorkflowDoc{Board: b.Slug, Version: b.Workflow, Source: []byte(yaml), By: t.req.Actor, At: t.env.Now})
	if _, err := t.flow(b); err != nil {
		bad := *err
		bad.Code = Invalid // it is the file that is wrong
		return bad.WithHint("see: muster workflow lint FILE")
	}
	return nil
}

func (t *tx) board(slug string) (*Board, *Error) {
	b := GetBoard(t, orElse(slug, "default"))
	if b == nil {
		return nil, Errorf(NotFound, "no board %q", clip(slug, 40)).WithHint("see: muster board list")
	}
	if b.Archived {
		return nil, archived(b)
	}
	return b, nil
}

// boardSet changes single values of a board.
func boardSet(t *tx) (any, *Error) {
	a, err := args[BoardSet](t)
	if err != nil {
		return nil, err
	}
	b, err := t.board(a.Board)
	if err != nil {
		return nil, err
	}
	params := map[string]json.RawMessage{}
	if len(b.Params) > 0 && json.Unmarshal(b.Params, &params) != nil {
		params = map[string]json.RawMessage{}
	}
	for _, k := range sortedKeys(a.Was) {
		if !sameValue(a.Was[k], t.boardValue(b, k, params)) {
			return nil, Errorf(Conflict, "board %s: its %s was changed meanwhile", b.Slug, clip(k, 40)).WithCheck("changed").WithHint("look again: muster board show %s", b.Slug)
		}
	}
	for _, k := range sortedKeys(a.Set) {
		if err := t.boardSetOne(b, k, a.Set[k], params); err != nil {
			return nil, err
		}
	}
	was, old := t.flowNow(b), b.Params
	if b.Params = jsonOf(params); len(params) == 0 {
		b.Params = nil
	}
	if !bytes.Equal(old, b.Params) {
		if err := b.settled(t); err != nil {
			return nil, err
		}
		if err := t.retell(b, was, old); err != nil {
			return nil, err
		}
	}
	t.putBoard(b)
	if err := t.knownPlayer(b, sortedKeys(a.Set)); err != nil {
		return nil, err
	}
	t.event(nil, Event{Kind: "board_set", Board: b.Slug, Payload: jsonOf(map[string]any{"keys": sortedKeys(a.Set)})})
	return map[string]any{"board": b.Slug}, nil
}

// boardValue is what a key of board.set stands at; nil is nothing.
func (t *tx) boardValue(b *Board, key string, params map[string]json.RawMessage) json.RawMessage {
	if name, ok := strings.CutPrefix(key, "params."); ok {
		return params[name]
	}
	switch key {
	case "keep":
		return jsonOf(b.Keep)
	case "label":
		return jsonOf(b.Label)
	case "zone":
		return jsonOf(b.Zone)
	case "home":
		if n := GetNode(t, b.Home); n != nil {
			return jsonOf(n.Name)
		}
	}
	return nil
}

// sameValue compares JSON by what it says; nothing, null and an empty text are the same.
func sameValue(x, y json.RawMessage) bool {
	norm := func(raw json.RawMessage) string {
		d := json.NewDecoder(bytes.NewReader(raw))
		d.UseNumber()
		var v any
		if len(raw) == 0 || d.Decode(&v) != nil || v == nil || v == "" {
			return ""
		}
		return string(jsonOf(v))
	}
	return norm(x) == norm(y)
}

func (t *tx) boardSetOne(b *Board, key string, val json.RawMessage, params map[string]json.RawMessage) *Error {
	if name, ok := strings.CutPrefix(key, "params."); ok {
		return t.setParam(b, name, val, params)
	}
	var s string
	if !bytes.Equal(val, []byte("null")) && json.Unmarshal(val, &s) != nil {
		s = string(val)
	}
	switch key {
	case "label":
		b.Label = clip(s, 100)
	case "home":
		if s != "" {
			n, err := FindNode(t, s)
			if err != nil {
				return err
			}
			s = n.ID
		}
		b.Home = s
	case "zone":
		if _, err := time.LoadLocation(s); err != nil {
			return Errorf(Invalid, "zone %q is not a time zone", clip(s, 40)).WithHint("use a name like Europe/Berlin")
		}
		b.Zone = s
	case "keep":
		var n int64
		if json.Unmarshal(val, &n) != nil && json.Unmarshal([]byte(s), &n) != nil || n < 1 || n > 36500 {
			return Errorf(Invalid, "keep=%s: days, 1 to 36500", clip(string(val), 40))
		}
		if b.Keep, n = n, b.Keep; b.Keep < n {
			t.keepAll(b)
		}
	default:
		return Errorf(Invalid, "board has no key %q", clip(key, 40)).WithHint("use label, home, keep, zone or params.NAME")
	}
	return nil
}

func (t *tx) setParam(b *Board, name string, val json.RawMessage, params map[string]json.RawMessage) *Error {
	fl, err := t.flow(b)
	if err != nil {
		return err
	}
	if _, ok := fl.wf.Defaults[name]; !ok {
		names := sortedKeys(fl.wf.Defaults)
		return Errorf(Invalid, "board %s has no parameter %q", b.Slug, clip(name, 40)).WithHint("it has: %s", strings.Join(names, ", "))
	}
	if err := sameKind(name, val, fl.params[name], fl.wf.Defaults[name]); err != nil {
		return err
	}
	params[name] = slices.Clone(val) // null as well: it overrides a value
	return nil
}

// sameKind holds a new value of a parameter against the one in force and the
// workflow's: what is a number there must not become a text, which would only be
// found when an expression needs it. Where both are null nothing is known.
func sameKind(name string, val json.RawMessage, known ...any) *Error {
	var v any
	if err := json.Unmarshal(val, &v); err != nil {
		return Errorf(Invalid, "params.%s: %v", name, err)
	}
	if v == nil {
		return nil
	}
	for _, k := range known {
		want := kindOf(k)
		if want == "" {
			continue
		}
		if got := kindOf(v); got != want {
			return Errorf(Invalid, "params.%s is %s, and %s is %s", name, want, clip(string(val), 60), got).
				WithHint("it is %s now; null clears it", clip(string(jsonOf(k)), 60))
		}
		return nil
	}
	return nil
}

func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return ""
	case bool:
		return "true or false"
	case string:
		return "a text"
	case []any, []string:
		return "a list"
	case map[string]any, map[string]string:
		return "a map"
	}
	return "a number"
}

package document

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// kind is what the values of a field are.
type kind uint8

const (
	textKind kind = iota // string
	intKind              // int64
	flagKind             // bool
	listKind             // []string
	dictKind             // map[string]string
	timeKind             // int64, ms; RFC 3339 in the file
)

// field is one line of a card's front matter. Its value is absent where it says
// nothing: "", 0, false, an empty list.
type field struct {
	name string
	kind kind
	own  bool // the board's own word: it is read, never taken back
	opt  bool // 0 says something and absent is something else
	what string
}

// Names of what is no plain field of a card.
const (
	fieldID     = "id"
	fieldStatus = "status"
	fieldAfter  = "after"
	fieldBody   = "body"
	fieldSaid   = "said" // the thread
)

// fields are those of a card, in the order of the file. Names are those of `card edit` and of the API.
var fields = []field{
	{name: fieldID, own: true, what: "the card's id; leave it out in a new file to file a new card"},
	{name: "title", what: "one line"},
	{name: fieldStatus, what: "its status in the workflow; a change is taken only by apply --put (in a new card: triage, or nothing)"},
	{name: "assignee", what: "profile that works it"},
	{name: "machine", what: "machine it is bound to"},
	{name: "priority", kind: intKind, what: "higher starts first"},
	{name: "kind", what: "what kind of work it is"},
	{name: "labels", kind: dictKind, what: "names and values"},
	{name: fieldAfter, kind: listKind, what: "ids of the cards it waits for, or names of new files without .md"},
	{name: "skills", kind: listKind, what: "skills for its session"},
	{name: "model", what: "model of its sessions"},
	{name: "workspace", what: "scratch, dir:PATH or worktree:REPO"},
	{name: "branch", what: "branch of its worktree"},
	{name: "max_runtime", kind: intKind, what: "seconds; a run takes no longer"},
	{name: "max_retries", kind: intKind, opt: true, what: "failures in a row that block it"},
	{name: "goal", kind: flagKind, what: "its session is asked to go on until the goal is reached"},
	{name: "goal_max_turns", kind: intKind, opt: true, what: "... so often"},
	{name: "start_after", kind: timeKind, what: "not before this time, RFC 3339"},
	{name: "subtask_of", own: true, what: "card it is a part of; taken in a new card"},
	{name: "tenant", own: true, what: "whose work it is"},
	{name: "created_at", kind: timeKind, own: true, what: "when it was filed"},
	{name: "created_by", own: true, what: "who filed it"},
	{name: "run", own: true, what: "its current run"},
	{name: "failures", kind: intKind, own: true, what: "failures in a row"},
	{name: "last_error", own: true, what: "what its last run failed of"},
	{name: "block_kind", own: true, what: "what it is blocked by"},
	{name: "block_reason", own: true, what: "why it is blocked"},
	{name: "attention", own: true, what: "why it needs a person"},
}

var fieldNamed = func() map[string]field {
	m := map[string]field{}
	for _, f := range fields {
		m[f.name] = f
	}
	return m
}()

// Values are what is said of a card or of a board, by field; absent is nothing said.
type Values map[string]any

func (v Values) text(name string) string { s, _ := v[name].(string); return s }

func (v Values) list(name string) []string { l, _ := v[name].([]string); return l }

func (v Values) dict(name string) map[string]string { m, _ := v[name].(map[string]string); return m }

// set notes a value, unless it says nothing.
func (v Values) set(name string, x any) {
	switch x := x.(type) {
	case nil:
		return
	case string:
		if x == "" {
			return
		}
	case int64:
		if x == 0 && !fieldNamed[name].opt {
			return
		}
	case *int64:
		if x != nil {
			v.set(name, *x)
		}
		return
	case bool:
		if !x {
			return
		}
	case []string:
		if len(x) == 0 {
			return
		}
	case map[string]string:
		if len(x) == 0 {
			return
		}
	}
	v[name] = x
}

// same tells whether two values say the same. Line ends that an editor changed are no change.
func same(a, b any) bool {
	if (a == nil) != (b == nil) {
		return false
	}
	x, y := plain(a), plain(b)
	return x == y || unwindows(x) == unwindows(y)
}

func unwindows(s string) string { return strings.ReplaceAll(s, `\r\n`, `\n`) }

// plain is a value as JSON; of a map the keys are in order.
func plain(v any) string {
	if v == nil {
		return "null"
	}
	if raw, ok := v.(json.RawMessage); ok {
		return string(raw)
	}
	b, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v) // none of the kinds of values fails
	}
	return string(b)
}

// Hash is what a base remembers of a value: enough to tell whether it was changed.
func Hash(v any) string {
	sum := sha256.Sum256([]byte(plain(v)))
	return hex.EncodeToString(sum[:8])
}

// Show is a value for people, on one line.
func Show(v any) string {
	switch x := v.(type) {
	case nil:
		return "nothing"
	case []string:
		return "[" + strings.Join(x, ", ") + "]"
	case string:
		return strconv.Quote(short(x, 60))
	}
	return short(plain(v), 80)
}

func short(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "..."
}

func stamp(ms int64) string { return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.000Z") }

func sorted[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }

package rule

import (
	"fmt"
	"slices"
	"strings"
)

// Kind is what an expression gives, or what its place in the workflow wants.
type Kind uint8

const (
	Any    Kind = iota // anything, or not known before it is evaluated
	Truth              // true or false; nil is false
	Number             // a number; a duration is in seconds
	Time               // a number: seconds since the epoch; a template shows it as date and time
	String             // a string
	List               // a list
	Map                // a map with free keys
	Record             // a named thing of the scope with known members: card, run, ...
	Nil                // the constant nil
)

var kindNames = [...]string{"anything", "a truth", "a number", "a time", "text", "a list", "a map", "a record", "nil"}

func (k Kind) String() string { return kindNames[k] }

// kinded is a static type: a kind, the members a record has, the kind of a list's items.
type kinded struct {
	kind    Kind
	item    Kind
	members map[string]*kinded
	open    bool // a record that may have members beyond the known ones
}

func of(k Kind) *kinded { return &kinded{kind: k} }

// record reads "name kind" lines such as "title text, tools list:text".
func record(open bool, spec string) *kinded {
	r := &kinded{kind: Record, members: map[string]*kinded{}, open: open}
	for _, field := range strings.Split(spec, ",") {
		name, kind, _ := strings.Cut(strings.TrimSpace(field), " ")
		kind, item, _ := strings.Cut(kind, ":")
		r.members[name] = &kinded{kind: kindWord(kind), item: kindWord(item)}
	}
	return r
}

func kindWord(w string) Kind {
	switch w {
	case "truth":
		return Truth
	case "number":
		return Number
	case "time":
		return Time
	case "text":
		return String
	case "list":
		return List
	case "map":
		return Map
	}
	return Any
}

// scopeKinds is the documented scope of workflow.md. A name that is not in it does not compile.
var scopeKinds = &kinded{kind: Record, members: map[string]*kinded{
	"card": record(false, `id text, board text, title text, body text, assignee text, machine text, priority number, labels map,
		skills list:text, model text, harness text, max_runtime number, max_retries number, goal_mode truth, goal_max_turns number,
		workspace any, branch text, tenant text, provider text, effort text, start_after time, started_at time, created_at time, updated_at time, entered_at time, kind text,
		status text, stored text, previous text, finished truth, parents_done truth, due truth, subtasks_open number,
		subtask_of text, creator text, run text, runs number, failures number, blocks map, block_kind text, block_reason text,
		last_outcome text, last_error text, session_live truth`),
	"params":  of(Map),
	"payload": of(Map),
	"actor":   record(false, "kind text, role text, name text"),
	"run": record(false, `id text, role text, slot text, surface text, machine text, source text, outcome text, profile text,
		harness text, started_at time, ended_at time`),
	"profile": record(true, `name text, harness text, surface text, model text, capacity number, placement text, verdict text,
		account text, permissions text, memory number, labels map, workspace map, fallback list:text, who list:text,
		args list:text, env map, parent text`),
	"machine": record(false, "id text, name text, labels map, tools list:text, always_on truth, online truth, age number"),
	"host":    record(false, "memory_pressure text, slots number, load number, free_mb number"),
	"tick":    record(false, "local_started number"),
	"board":   record(false, "id text, label text, home text, zone text, prefix text"),
	"now":     of(Time),
	"item":    of(Any),
	"context": of(String), "arc_context": of(String), "doors": of(String), "where": of(String), "news": of(String),
	"session": record(false, "id text, mode text"),
	"prompt":  of(String), "brief": of(String),
}}

// ScopeNames lists the variables of the scope and the members of its closed records ("card.title"), sorted.
func ScopeNames() []string {
	var names []string
	for name, k := range scopeKinds.members {
		names = append(names, name)
		for m := range k.members {
			names = append(names, name+"."+m)
		}
	}
	slices.Sort(names)
	return names
}

// Members lists the known members of a variable of the scope, sorted; nil when it has none.
func Members(variable string) []string {
	k := scopeKinds.members[variable]
	if k == nil {
		return nil
	}
	return keysOf(k.members)
}

func keysOf(m map[string]*kinded) []string {
	names := make([]string, 0, len(m))
	for n := range m {
		names = append(names, n)
	}
	slices.Sort(names)
	return names
}

// Suggest gives "; did you mean NAME?" for a word that is near one of the names, else "; one of: ..." when
// the names are few, else nothing.
func Suggest(word string, names []string) string {
	best, at := 3, ""
	if len(word) < 4 {
		best = 2
	}
	for _, n := range names {
		if d := distance(word, n, best); d < best {
			best, at = d, n
		}
	}
	if at != "" {
		return fmt.Sprintf("; did you mean %s?", at)
	}
	if len(names) > 0 && len(names) <= 24 {
		return "; one of: " + strings.Join(names, ", ")
	}
	return ""
}

// distance is the edit distance of two short words, or limit when it is at least that.
func distance(a, b string, limit int) int {
	if len(a) > 64 || len(b) > 64 || len(a)-len(b) >= limit || len(b)-len(a) >= limit {
		return limit
	}
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		left := row[0]
		row[0] = i + 1
		for j := range len(b) {
			d := left
			if a[i] != b[j] {
				d++
			}
			left = row[j+1]
			row[j+1] = min(d, row[j]+1, left+1)
		}
	}
	return min(row[len(b)], limit)
}

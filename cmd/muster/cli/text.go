package cli

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"muster/board"
)

// doneAnswer is what requests are answered with: each fills what it has.
type doneAnswer struct {
	ID      string   `json:"id"`
	Status  string   `json:"status"`
	From    string   `json:"from"`
	To      string   `json:"to"`
	Run     string   `json:"run"`
	Machine string   `json:"machine"`
	Node    string   `json:"node"`
	Board   string   `json:"board"`
	Slug    string   `json:"slug"`
	Prefix  string   `json:"prefix"`
	Version uint64   `json:"version"`
	Moved   int      `json:"moved"`
	InSteps bool     `json:"in_steps"`
	Now     []string `json:"now"` // of an edit: what counts at once, and what with the next run
	NextRun []string `json:"next_run"`
	DryRun  bool     `json:"dry_run"`
	Notes   []string `json:"notes"` // of an apply: what it leaves without a profile
	Left    []string `json:"left"`  // what a move leaves behind
	Role    string   `json:"role"`
	Voters  int      `json:"voters"` // of a promotion or demotion: how many vote now, and will soon
	Soon    int      `json:"voters_soon"`

	Notified         []board.Told `json:"notified"` // whom an event was told to, and who could not be
	NotifiedCount    int          `json:"notified_count"`
	Undelivered      []board.Told `json:"undelivered"`
	UndeliveredCount int          `json:"undelivered_count"`
}

// fields prints names and values, and leaves out what is empty.
func (a *app) fields(rows [][2]string) {
	width := 0
	for _, r := range rows {
		if r[1] != "" {
			width = max(width, len(r[0]))
		}
	}
	for _, r := range rows {
		if r[1] != "" {
			a.printf("%s  %s\n", a.color(dim, fmt.Sprintf("%-*s", width, r[0])), oneLine(r[1]))
		}
	}
}

func dict(m map[string]string) string {
	var l []string
	for k, v := range m {
		l = append(l, k+"="+v)
	}
	slices.Sort(l)
	return strings.Join(l, " ")
}

func join(l []string) string { return strings.Join(l, ", ") }

func fmtUint(n uint64) string { return fmt.Sprint(n) }

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}

func mark(b bool, s string) string {
	if b {
		return s
	}
	return ""
}

func mb(n int64) string {
	if n == 0 {
		return ""
	}
	return fmt.Sprintf("%d MB", n)
}

// pair splits KEY=VALUE.
func pair(s string) (k, v string, err error) {
	k, v, ok := strings.Cut(s, "=")
	if !ok || k == "" {
		return "", "", usagef("%q: use KEY=VALUE", s)
	}
	return k, v, nil
}

// value is VALUE as JSON when it is JSON, else as text.
func value(s string) json.RawMessage {
	if json.Valid([]byte(s)) {
		return json.RawMessage(s)
	}
	b, _ := json.Marshal(s) // a string always can be
	return b
}

// moment reads a time: RFC 3339, a local date or time, or +D from now; not before
// 1970, and not after 2200: what is told of it, and waits for it, counts in nanoseconds.
func moment(s string, now time.Time) (time.Time, error) {
	t, err := readMoment(s, now)
	if y := t.UTC().Year(); err == nil && (y < 1970 || y > 2200) {
		return t, usagef("%q is in the year %d: give one from 1970 to 2200", s, y)
	}
	return t, err
}

func readMoment(s string, now time.Time) (time.Time, error) {
	if d, ok := strings.CutPrefix(s, "+"); ok {
		if d, err := time.ParseDuration(d); err == nil {
			return now.Add(d), nil
		}
	}
	if t, err := time.Parse(time.RFC3339, s); err == nil {
		return t, nil
	}
	for _, layout := range []string{"2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.ParseInLocation(layout, s, time.Local); err == nil {
			return t, nil
		}
	}
	return time.Time{}, usagef("%q is no time: use +2h, 2030-01-31, \"2030-01-31 09:00\" or RFC 3339", s)
}

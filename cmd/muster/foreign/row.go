package foreign

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// row is one record of the source, as names and values. What nobody took of it
// is left over, and told.
type row struct {
	b     *Board
	where string // for people: "row 7"
	vals  map[string]any
	used  map[string]bool
}

func (b *Board) row(where string, vals map[string]any) *row {
	r := &row{b: b, where: where, vals: map[string]any{}, used: map[string]bool{}}
	for k, v := range vals {
		if k = strings.ToLower(strings.TrimSpace(k)); k != "" && !empty(v) {
			r.vals[k] = v
		}
	}
	return r
}

func empty(v any) bool {
	switch x := v.(type) {
	case nil:
		return true
	case string:
		return strings.TrimSpace(x) == ""
	case []any:
		return len(x) == 0
	case map[string]any:
		return len(x) == 0
	}
	return false
}

// take gives the first value there is under one of the names; with it all of them count as taken.
func (r *row) take(names ...string) (v any) {
	for _, n := range names {
		if x, ok := r.vals[n]; ok {
			if v == nil {
				v = x
			}
			r.used[n] = true
		}
	}
	return v
}

// rest tells what nobody took.
func (r *row) rest(kind string) {
	for k, v := range r.vals {
		if !r.used[k] {
			r.b.leave(kind+" "+k, show(v))
		}
	}
}

func show(v any) string {
	if s, ok := v.(string); ok {
		return s
	}
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(raw)
}

func (r *row) text(names ...string) string {
	v := r.take(names...)
	if v == nil {
		return ""
	}
	return strings.TrimSpace(show(v))
}

// number is nil when there is none; one that cannot be read is told.
func (r *row) number(names ...string) *int64 {
	v := r.take(names...)
	if v == nil {
		return nil
	}
	if t, ok := v.(bool); ok {
		n := int64(0)
		if t {
			n = 1
		}
		return &n
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(show(v)), 64)
	if err != nil || f != float64(int64(f)) {
		r.b.leave(names[0]+" that is no number", show(v))
		return nil
	}
	n := int64(f)
	return &n
}

// positive is a number from 0 to 2^31.
func (r *row) positive(names ...string) *int64 {
	n := r.number(names...)
	if n != nil && (*n < 0 || *n > 1<<31) {
		r.b.leave(names[0]+" that is out of range", fmt.Sprint(*n))
		return nil
	}
	return n
}

func (r *row) count(names ...string) int64 {
	if n := r.number(names...); n != nil {
		return *n
	}
	return 0
}

func (r *row) flag(names ...string) bool {
	v := r.take(names...)
	switch s := strings.ToLower(strings.TrimSpace(show(v))); {
	case v == nil || s == "false" || s == "0" || s == "no":
		return false
	case s == "true" || s == "1" || s == "yes":
		return true
	}
	r.b.leave(names[0]+" that is neither true nor false", show(v))
	return false
}

// seconds is a duration: a number of seconds, or text like 1h30m.
func (r *row) seconds(names ...string) *int64 {
	v := r.take(names...)
	if v == nil {
		return nil
	}
	if d, err := time.ParseDuration(strings.TrimSpace(show(v))); err == nil && d >= time.Second {
		n := int64(d / time.Second)
		return &n
	}
	r.vals[names[0]] = v
	return r.positive(names[0])
}

// at is a moment, in ms: RFC 3339, a date, or a number of seconds (or ms) since 1970; 0 is none.
func (r *row) at(names ...string) int64 {
	v := r.take(names...)
	if v == nil {
		return 0
	}
	s := strings.TrimSpace(show(v))
	if f, err := strconv.ParseFloat(s, 64); err == nil && f >= 0 && f < 1e15 {
		if f < 1e11 {
			f *= 1000
		}
		return int64(f)
	}
	for _, layout := range []string{time.RFC3339, "2006-01-02T15:04:05", "2006-01-02 15:04:05", "2006-01-02 15:04", "2006-01-02"} {
		if t, err := time.Parse(layout, s); err == nil && t.UnixMilli() >= 0 {
			return t.UnixMilli()
		}
	}
	r.b.leave(names[0]+" that is no time", s)
	return 0
}

// list is a list, or text with commas, semicolons or spaces between; JSON in text is read.
func (r *row) list(names ...string) (out []string) {
	switch v := r.take(names...).(type) {
	case nil:
	case []any:
		for _, x := range v {
			out = append(out, strings.TrimSpace(show(x)))
		}
	default:
		s := strings.TrimSpace(show(v))
		var in []string
		if strings.HasPrefix(s, "[") && json.Unmarshal([]byte(s), &in) == nil {
			return in
		}
		out = strings.FieldsFunc(s, func(c rune) bool { return c == ',' || c == ';' || c == ' ' || c == '\t' || c == '\n' })
	}
	return out
}

// dict is an object, or a list of k=v; a name without a value gets "yes".
func (r *row) dict(names ...string) map[string]string {
	out := map[string]string{}
	if m, ok := r.take(names...).(map[string]any); ok {
		for k, v := range m {
			out[k] = show(v)
		}
		return out
	}
	for _, s := range r.list(names...) {
		k, v, ok := strings.Cut(s, "=")
		if !ok {
			v = "yes"
		}
		out[k] = v
	}
	return out
}

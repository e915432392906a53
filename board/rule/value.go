package rule

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Scope is what an expression can see: nil, bool, int64 or float64 (int is taken too), string, []any
// and map[string]any, nested. Times are seconds since the epoch, durations are seconds.
type Scope = map[string]any

// Bounds of a single evaluation. What exceeds them is an error of the evaluation (a refusal).
const (
	MaxSource   = 1 << 10   // bytes of an expression's text
	MaxTemplate = 64 << 10  // bytes of a template's text
	MaxString   = 256 << 10 // bytes of a string that is read, built or rendered
	MaxItems    = 10_000    // items of a list or map that is visited
	maxNodes    = 200       // nodes of an expression's tree
	maxSteps    = 1_000_000 // steps of one evaluation; a step is a node, an item, or 64 bytes of text
	maxNesting  = 32        // depth of lists and maps that are compared or printed
)

// plain brings a value of the scope into the one value model: numbers become float64.
func plain(v any) (any, error) {
	switch x := v.(type) {
	case nil, bool, []any, map[string]any:
		return v, nil
	case string:
		if len(x) > MaxString {
			return nil, fmt.Errorf("text of %d bytes is longer than %d", len(x), MaxString)
		}
		return v, nil
	case int64:
		return float64(x), nil
	case int:
		return float64(x), nil
	case float64:
		if math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, fmt.Errorf("%v is no number", x)
		}
		return v, nil
	}
	return nil, fmt.Errorf("a %T is no value of an expression", v)
}

// parseNumber reads a number that came as text; M-23: parsed or refused, never NaN.
func parseNumber(s string) (float64, bool) {
	n, err := strconv.ParseFloat(strings.TrimSpace(s), 64)
	if err != nil || math.IsNaN(n) || math.IsInf(n, 0) {
		return 0, false
	}
	return n, true
}

// Compare orders any two values of the model: nil first (EXP-12: an absent ordering key sorts as minus
// infinity), then booleans, numbers, texts, then lists and maps, which are all equal to each other.
// Numbers that are not finite sort as absent.
func Compare(a, b any) int {
	ra, rb := rank(&a), rank(&b)
	if ra != rb {
		return ra - rb
	}
	switch x := a.(type) {
	case bool:
		y := b.(bool)
		switch {
		case x == y:
			return 0
		case y:
			return -1
		}
		return 1
	case float64:
		y := b.(float64)
		switch {
		case x < y:
			return -1
		case x > y:
			return 1
		}
	case string:
		return strings.Compare(x, b.(string))
	}
	return 0
}

func rank(v *any) int {
	p, err := plain(*v)
	if err != nil {
		p = nil
	}
	*v = p
	switch p.(type) {
	case nil:
		return 0
	case bool:
		return 1
	case float64:
		return 2
	case string:
		return 3
	}
	return 4
}

// Format writes a value as a template does: nil is empty, a list is comma separated, a map is
// key=value in key order.
func Format(v any) string {
	var b strings.Builder
	format(&b, v, 0)
	return b.String()
}

func format(b *strings.Builder, v any, depth int) {
	if depth > maxNesting || b.Len() > MaxString {
		b.WriteString("...")
		return
	}
	switch x := v.(type) {
	case nil:
	case string:
		b.WriteString(x)
	case bool:
		b.WriteString(strconv.FormatBool(x))
	case int:
		b.WriteString(strconv.Itoa(x))
	case int64:
		b.WriteString(strconv.FormatInt(x, 10))
	case float64:
		b.WriteString(formatNumber(x))
	case []any:
		for i, e := range x {
			if i > 0 {
				b.WriteString(", ")
			}
			format(b, e, depth+1)
		}
	case map[string]any:
		for i, k := range sortedKeys(x) {
			if i > 0 {
				b.WriteString(", ")
			}
			b.WriteString(k)
			b.WriteByte('=')
			format(b, x[k], depth+1)
		}
	default:
		fmt.Fprintf(b, "%v", x)
	}
}

func formatNumber(n float64) string {
	if math.Abs(n) < 1e15 {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return strconv.FormatFloat(n, 'g', -1, 64)
}

// formatTime writes a moment for people and sessions, in the board's zone.
func formatTime(seconds float64, zone *time.Location) string {
	return time.Unix(int64(math.Floor(seconds)), 0).In(zone).Format("2006-01-02 15:04 MST")
}

func sortedKeys(m map[string]any) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// named says a value's kind to people.
func named(v any) string {
	switch x := v.(type) {
	case nil:
		return "nil"
	case bool:
		return strconv.FormatBool(x)
	case float64:
		return formatNumber(x)
	case string:
		if len(x) > 40 {
			x = strings.ToValidUTF8(x[:40], "") + "..."
		}
		return strconv.Quote(x)
	case []any:
		return "a list"
	}
	return "a map"
}

package bench

import (
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strings"
	"time"
)

// A Goal is a limit for the ratio A/B. Exactly one of AtMost and AtLeast is
// set.
type Goal struct {
	Name    string  `json:"name"` // gate, target, moonshot
	AtMost  float64 `json:"at_most,omitempty"`
	AtLeast float64 `json:"at_least,omitempty"`
}

func (g Goal) String() string {
	if g.AtLeast > 0 {
		return fmt.Sprintf("%s >= %gx", g.Name, g.AtLeast)
	}
	return fmt.Sprintf("%s <= %gx", g.Name, g.AtMost)
}

func (g Goal) met(ratio float64) bool {
	if g.AtLeast > 0 {
		return ratio >= g.AtLeast
	}
	return ratio <= g.AtMost
}

func (g Goal) limit() float64 { return max(g.AtLeast, g.AtMost) }

// An Outcome is a goal held against a result.
type Outcome struct {
	Goal
	Met bool `json:"met"`
	// Close: the limit lies within the middle 50 % of the windows, so another
	// run may well say the opposite.
	Close bool `json:"close"`
}

// A Spread is a median with the middle 50 % around it.
type Spread struct {
	Q1     float64 `json:"q1"`
	Median float64 `json:"median"`
	Q3     float64 `json:"q3"`
}

func spreadOf(values []float64) Spread {
	return Spread{quantile(values, 0.25), median(values), quantile(values, 0.75)}
}

// A Result is one comparison. Without a verdict its figures are those of the
// windows that counted (of all windows when none did), to look at and not to
// quote, and Goals is empty.
type Result struct {
	Name         string        `json:"name"`
	Unit         string        `json:"unit"`
	NameA        string        `json:"name_a"`
	NameB        string        `json:"name_b"`
	WindowLength time.Duration `json:"window_ns"`
	DriftLimit   float64       `json:"drift_limit"`

	Verdict   bool   `json:"verdict"`
	NoVerdict string `json:"no_verdict,omitempty"` // why there is none

	A      Spread    `json:"a"`
	B      Spread    `json:"b"`
	Ratio  float64   `json:"ratio"`         // of the medians, A/B
	Middle Spread    `json:"window_ratios"` // of the windows' own ratios
	Goals  []Outcome `json:"goals,omitempty"`

	CountersA map[string]float64 `json:"counters_a,omitempty"` // medians
	CountersB map[string]float64 `json:"counters_b,omitempty"`
	Windows   []Window           `json:"windows"`
}

// Counted is the number of windows the figures come from.
func (r *Result) Counted() int {
	n := 0
	for _, w := range r.Windows {
		if w.Counts {
			n++
		}
	}
	return n
}

// judge fills the figures from the windows that count.
func (r *Result) judge(cfg Config) {
	var a, b, ratios []float64
	var countersA, countersB []map[string]float64
	worst, none := 0.0, r.Counted() == 0
	for _, w := range r.Windows {
		if !w.Counts {
			worst = max(worst, w.Drift)
		}
		if !w.Counts && !none { // when none counts, all are shown, under the words that there is no verdict
			continue
		}
		a, b, ratios = append(a, w.A.Value), append(b, w.B.Value), append(ratios, w.Ratio)
		countersA, countersB = append(countersA, w.A.Counters), append(countersB, w.B.Counters)
	}
	if len(ratios) > 0 {
		r.A, r.B, r.Middle = spreadOf(a), spreadOf(b), spreadOf(ratios)
		r.Ratio = r.A.Median / r.B.Median
		r.CountersA, r.CountersB = medians(countersA), medians(countersB)
	}
	switch {
	case r.Counted() < cfg.Windows:
		r.NoVerdict = fmt.Sprintf("the machine drifted: window %d was measured %d times and its calibrations stayed up to %s apart (limit %gx); try again when it is quieter",
			r.Counted()+1, cfg.Repeats+1, times(worst), cfg.Drift)
	case cfg.Windows < leastWindows:
		r.NoVerdict = fmt.Sprintf("only %d windows; a verdict needs %d", cfg.Windows, leastWindows)
	default:
		r.Verdict = true
		for _, g := range cfg.Goals {
			inside := g.limit() > r.Middle.Q1 && g.limit() < r.Middle.Q3
			r.Goals = append(r.Goals, Outcome{Goal: g, Met: g.met(r.Ratio), Close: inside})
		}
	}
}

// medians takes the median of each counter over the windows that have it.
func medians(windows []map[string]float64) map[string]float64 {
	all := map[string][]float64{}
	for _, w := range windows {
		for name, v := range w {
			all[name] = append(all[name], v)
		}
	}
	if len(all) == 0 {
		return nil
	}
	m := make(map[string]float64, len(all))
	for name, values := range all {
		m[name] = median(values)
	}
	return m
}

// WriteText prints the result for a person.
func (r *Result) WriteText(w io.Writer) error {
	var s strings.Builder
	fmt.Fprintf(&s, "%s: A %s\n%s  B %s\n", r.Name, r.NameA, strings.Repeat(" ", len(r.Name)), r.NameB)
	if len(r.Windows) > 0 {
		windows := fmt.Sprintf("%d windows", r.Counted())
		if r.Counted() == 0 {
			windows = fmt.Sprintf("%d windows, none of which counts,", len(r.Windows))
		}
		fmt.Fprintf(&s, "  A %s   B %s\n", spread(r.A, r.Unit), spread(r.B, r.Unit))
		fmt.Fprintf(&s, "  A/B %s (middle 50 %% of %s of %s: %s to %s)\n",
			times(r.Ratio), windows, r.WindowLength, times(r.Middle.Q1), times(r.Middle.Q3))
	}
	if !r.Verdict {
		fmt.Fprintf(&s, "  NO VERDICT: %s\n", r.NoVerdict)
	}
	for _, g := range r.Goals {
		word := "not met"
		if g.Met {
			word = "met"
		}
		if g.Close {
			word += " (the limit lies within the spread)"
		}
		fmt.Fprintf(&s, "  %s: %s\n", g.Goal, word)
	}
	writeCounters(&s, "A", r.CountersA)
	writeCounters(&s, "B", r.CountersB)
	r.writeMachine(&s)
	_, err := io.WriteString(w, s.String())
	return err
}

func writeCounters(s *strings.Builder, side string, counters map[string]float64) {
	for _, name := range slices.Sorted(maps.Keys(counters)) {
		fmt.Fprintf(s, "  %s %s: %s\n", side, name, number(counters[name]))
	}
}

// writeMachine says how steady the machine was.
func (r *Result) writeMachine(s *strings.Builder) {
	if len(r.Windows) == 0 {
		return
	}
	worst, dropped := 0.0, 0
	parts := make([][]float64, len(calibrationParts))
	for _, w := range r.Windows {
		if w.Counts {
			worst = max(worst, w.Drift)
		} else {
			dropped++
		}
		for _, c := range w.Machine {
			for i, v := range c.values() {
				parts[i] = append(parts[i], Milliseconds(v))
			}
		}
	}
	s.WriteString("  calibration:")
	for i, name := range calibrationParts {
		p := parts[i]
		fmt.Fprintf(s, " %s %s ms (%s to %s),", name, number(median(p)), number(slices.Min(p)), number(slices.Max(p)))
	}
	if r.Counted() > 0 {
		fmt.Fprintf(s, " worst drift that counts %s,", times(worst))
	}
	fmt.Fprintf(s, " %d windows dropped\n", dropped)
}

func spread(v Spread, unit string) string {
	return fmt.Sprintf("%s %s (%s to %s)", number(v.Median), unit, number(v.Q1), number(v.Q3))
}

func times(v float64) string {
	if v >= incomparable || math.IsNaN(v) {
		return "?"
	}
	return number(v) + "x"
}

// number prints three significant digits, without exponents in the range that
// benches have.
func number(v float64) string {
	switch abs := math.Abs(v); {
	case abs >= 100 || v == 0:
		return fmt.Sprintf("%.0f", v)
	case abs >= 10:
		return fmt.Sprintf("%.1f", v)
	case abs >= 1:
		return fmt.Sprintf("%.2f", v)
	case abs >= 0.1:
		return fmt.Sprintf("%.3f", v)
	default:
		return fmt.Sprintf("%.2g", v)
	}
}

package bench

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"
)

// script plays a machine: calibrations and the values of both sides, in the
// order they are asked for, the last one for ever.
type script struct {
	machine []float64 // what fdatasync costs, in ms, calibration by calibration
	a, b    []float64
	asked   strings.Builder // the order of sides, "ABBA..."
	at      int
}

func (s *script) calibrate(context.Context) (Calibration, error) {
	v := s.machine[min(s.at, len(s.machine)-1)]
	s.at++
	return Calibration{Fdatasync: time.Duration(v * float64(time.Millisecond)), ForkExec: time.Millisecond, Spin: time.Millisecond}, nil
}

func (s *script) side(name string, values []float64) Side {
	n := 0
	return Side{Name: name, Run: func(context.Context, time.Duration) (Sample, error) {
		s.asked.WriteString(name)
		v := values[min(n, len(values)-1)]
		n++
		return Sample{Value: v, Counters: map[string]float64{"syncs": v * 10}}, nil
	}}
}

func (s *script) pair(t *testing.T, change func(*Config)) Result {
	t.Helper()
	c := DefaultConfig("p", "ms", t.TempDir())
	c.Warmup, c.Window, c.Calibrate = 0, time.Millisecond, s.calibrate
	if change != nil {
		change(&c)
	}
	r, err := Pair(t.Context(), c, s.side("A", s.a), s.side("B", s.b))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.Abs(got-want) > 1e-9 {
		t.Errorf("%s is %g, want %g", what, got, want)
	}
}

func TestPairOnASteadyMachine(t *testing.T) {
	s := &script{machine: []float64{1}, a: []float64{2, 4, 6, 8, 10, 12, 14}, b: []float64{2}}
	r := s.pair(t, func(c *Config) {
		c.Goals = []Goal{{Name: "gate", AtMost: 6}, {Name: "target", AtMost: 3}, {Name: "moonshot", AtLeast: 4}}
	})
	if got := s.asked.String(); got != "ABBAABBAABBAAB" {
		t.Errorf("order %s, want ABBA", got)
	}
	if !r.Verdict || r.Counted() != 7 || len(r.Windows) != 7 {
		t.Errorf("verdict %v with %d of %d windows: %s", r.Verdict, r.Counted(), len(r.Windows), r.NoVerdict)
	}
	near(t, "the median of A", r.A.Median, 8)
	near(t, "the ratio of medians", r.Ratio, 4)
	near(t, "the lower quartile of ratios", r.Middle.Q1, 2.5)
	near(t, "the upper quartile of ratios", r.Middle.Q3, 5.5)
	near(t, "the counter of A", r.CountersA["syncs"], 80)
	near(t, "the counter of B", r.CountersB["syncs"], 20)
	want := []Outcome{{r.Goals[0].Goal, true, false}, {r.Goals[1].Goal, false, true}, {r.Goals[2].Goal, true, true}}
	for i, o := range r.Goals {
		if o != want[i] {
			t.Errorf("goal %s: met %v close %v, want %v %v", o.Goal, o.Met, o.Close, want[i].Met, want[i].Close)
		}
	}
}

// The ratio is that of the medians, not the median of the ratios: the two
// differ when sides move in opposite windows.
func TestPairTakesTheRatioOfTheMedians(t *testing.T) {
	s := &script{machine: []float64{1}, a: []float64{1, 1, 1, 10, 10, 10, 10}, b: []float64{1, 1, 1, 1, 5, 5, 5}}
	r := s.pair(t, nil)
	near(t, "the ratio of medians", r.Ratio, 10)
	near(t, "the median of ratios", r.Middle.Median, 2)
}

func TestPairRepeatsAWindowBetweenCalibrationsThatDrifted(t *testing.T) {
	// The third calibration is far off: window 1 is spoilt, and so is its
	// repetition, which begins with it. The second repetition counts.
	s := &script{machine: []float64{1, 1, 2, 1, 1, 1}, a: []float64{100, 100, 4}, b: []float64{1, 1, 2}}
	r := s.pair(t, nil)
	if !r.Verdict || r.Counted() != 7 || len(r.Windows) != 9 {
		t.Fatalf("verdict %v, %d of %d windows count: %s", r.Verdict, r.Counted(), len(r.Windows), r.NoVerdict)
	}
	for i, w := range r.Windows {
		if w.Counts != (i >= 2) {
			t.Errorf("window %d counts: %v (drift %g)", i, w.Counts, w.Drift)
		}
	}
	near(t, "the ratio without the spoilt windows", r.Ratio, 2)
	if got := s.asked.String(); !strings.HasPrefix(got, "ABABABBAAB") {
		t.Errorf("order %s: a repeated window keeps its order", got)
	}
}

func TestPairGivesNoVerdictWhenTheMachineKeepsDrifting(t *testing.T) {
	drifting := []float64{1, 1, 1} // the first window is steady, then nothing is
	for range 20 {
		drifting = append(drifting, 3, 1)
	}
	s := &script{machine: drifting, a: []float64{4}, b: []float64{2}}
	r := s.pair(t, func(c *Config) { c.Goals = []Goal{{Name: "gate", AtMost: 6}} })
	if r.Verdict || len(r.Goals) != 0 {
		t.Errorf("a verdict on a drifting machine: %+v", r.Goals)
	}
	if len(r.Windows) != 1+4 {
		t.Errorf("%d windows, want the steady one and four tries of the next", len(r.Windows))
	}
	if !strings.Contains(r.NoVerdict, "window 2 was measured 4 times") || !strings.Contains(r.NoVerdict, "3.00x apart") {
		t.Errorf("the reason does not say what happened: %s", r.NoVerdict)
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil || !strings.Contains(text.String(), "NO VERDICT: the machine drifted") {
		t.Errorf("%v:\n%s", err, &text)
	}
}

func TestPairLimitOfDriftIsItself(t *testing.T) {
	for _, c := range []struct {
		second float64
		counts bool
	}{{1.49, true}, {1.5, false}, {1 / 1.49, true}, {1 / 1.6, false}} {
		s := &script{machine: []float64{1, c.second}, a: []float64{1}, b: []float64{1}}
		if r := s.pair(t, nil); r.Windows[0].Counts != c.counts {
			t.Errorf("calibrations 1 and %g: counts is %v, want %v", c.second, r.Windows[0].Counts, c.counts)
		}
	}
}

func TestPairOfFewWindowsHasNoVerdict(t *testing.T) {
	s := &script{machine: []float64{1}, a: []float64{4}, b: []float64{2}}
	r := s.pair(t, func(c *Config) { c.Windows = 6 })
	if r.Verdict || r.NoVerdict == "" {
		t.Errorf("a verdict of 6 windows")
	}
	near(t, "the ratio to look at", r.Ratio, 2)
}

func TestPairEndsWithTheFirstError(t *testing.T) {
	broken := errors.New("disk full")
	s := &script{machine: []float64{1}}
	good := s.side("A", []float64{1})
	for _, c := range []struct {
		name string
		b    Side
		want string
	}{
		{"a side fails", Side{"B", func(context.Context, time.Duration) (Sample, error) { return Sample{}, broken }}, "bench p: B: disk full"},
		{"a side measures nothing", s.side("B", []float64{0}), "B: measured 0"},
		{"a side measures no number", s.side("B", []float64{math.NaN()}), "B: measured NaN"},
	} {
		t.Run(c.name, func(t *testing.T) {
			cfg := Config{Name: "p", Unit: "ms", Windows: 7, Window: 1, Drift: 1.5, Calibrate: s.calibrate}
			if _, err := Pair(t.Context(), cfg, good, c.b); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error %v, want %q", err, c.want)
			}
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	cfg := Config{Name: "p", Unit: "ms", Windows: 7, Window: 1, Drift: 1.5, Calibrate: s.calibrate}
	if _, err := Pair(ctx, cfg, good, good); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

func TestConfigNamesWhatIsWrong(t *testing.T) {
	for i, change := range []func(*Config){
		func(c *Config) { c.Name = "" }, func(c *Config) { c.Unit = "" }, func(c *Config) { c.Windows = 0 },
		func(c *Config) { c.Window = 0 }, func(c *Config) { c.Drift = 1 }, func(c *Config) { c.Repeats = -1 },
		func(c *Config) { c.Warmup = -1 }, func(c *Config) { c.Calibrate = nil },
	} {
		c := DefaultConfig("p", "ms", t.TempDir())
		if err := c.Validate(); err != nil {
			t.Fatalf("the default is invalid: %v", err)
		}
		change(&c)
		if err := c.Validate(); err == nil {
			t.Errorf("change %d is taken", i)
		}
	}
}

func TestQuantiles(t *testing.T) {
	for _, c := range []struct {
		values []float64
		q      float64
		want   float64
	}{
		{[]float64{3}, 0.5, 3},
		{[]float64{3, 1}, 0.5, 2},
		{[]float64{3, 1, 2}, 0.5, 2},
		{[]float64{5, 1, 4, 2, 3}, 0.25, 2},
		{[]float64{5, 1, 4, 2, 3}, 0.75, 4},
		{[]float64{1, 2}, 0.25, 1.25},
		{[]float64{1, 2}, 1, 2},
	} {
		near(t, fmt.Sprintf("quantile(%v, %g)", c.values, c.q), quantile(c.values, c.q), c.want)
	}
	if !math.IsNaN(quantile(nil, 0.5)) {
		t.Error("the median of nothing is a number")
	}
	values := []float64{3, 1, 2}
	if _ = median(values); values[0] != 3 {
		t.Error("median sorted its argument")
	}
}

func TestLatencyOf(t *testing.T) {
	var all []time.Duration
	for i := 200; i > 0; i-- {
		all = append(all, time.Duration(i))
	}
	if got, want := LatencyOf(all), (Latency{N: 200, P50: 100, P99: 198, Max: 200}); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if got := LatencyOf([]time.Duration{7}); got != (Latency{1, 7, 7, 7}) {
		t.Errorf("one: %+v", got)
	}
	if got := LatencyOf(nil); got != (Latency{}) {
		t.Errorf("none: %+v", got)
	}
}

// A calibration drifts when any of its parts does.
func TestCalibrationsAreApartByTheirWorstPart(t *testing.T) {
	base := Calibration{Fdatasync: 10, ForkExec: 10, Spin: 10}
	for _, c := range []struct {
		other Calibration
		want  float64
	}{
		{base, 1},
		{Calibration{20, 10, 10}, 2}, {Calibration{10, 30, 10}, 3}, {Calibration{10, 10, 5}, 2},
		{Calibration{10, 10, 0}, incomparable},
	} {
		near(t, fmt.Sprintf("%v from %v", base, c.other), base.Apart(c.other), c.want)
	}
}

package bench

import (
	"context"
	"fmt"
	"time"
)

// A Sample is what one side measured in one window.
type Sample struct {
	Value    float64            `json:"value"` // in Config.Unit; must be positive
	Latency  *Latency           `json:"latency,omitempty"`
	Counters map[string]float64 `json:"counters,omitempty"` // per operation or per 1,000: so that windows compare
}

// A Side is one of the two things compared.
type Side struct {
	Name string
	// Run measures for about the given time and returns when all it started
	// has ended. An error ends the whole comparison.
	Run func(ctx context.Context, window time.Duration) (Sample, error)
}

// Config says how a pair is measured and judged.
type Config struct {
	Name    string        // of the bench
	Unit    string        // of both sides' values: "ms", "events/s"
	Windows int           // pairs of windows that must count; below 7 there is never a verdict
	Window  time.Duration // length of one side's window
	Warmup  time.Duration // run each side so long before the first window; 0 is none
	Drift   float64       // a pair whose calibrations are so far apart does not count
	Repeats int           // how often one pair is measured again
	Goals   []Goal        // what the ratio A/B is held to
	// Calibrate measures the machine; MachineCalibration(dir) outside tests.
	Calibrate func(context.Context) (Calibration, error)
}

// A verdict needs this many pairs of windows (goals.md, "Method").
const leastWindows = 7

// DefaultConfig is the method: seven pairs of 5 s, 1.5x, three repeats,
// calibrated in dir.
func DefaultConfig(name, unit, dir string) Config {
	return Config{
		Name: name, Unit: unit, Windows: leastWindows, Window: 5 * time.Second, Warmup: time.Second,
		Drift: 1.5, Repeats: 3, Calibrate: MachineCalibration(dir),
	}
}

// Validate names the first field that makes no sense.
func (c Config) Validate() error {
	switch {
	case c.Name == "" || c.Unit == "":
		return fmt.Errorf("bench: a comparison needs a name and a unit")
	case c.Windows < 1:
		return fmt.Errorf("bench %s: windows is %d, want 1 or more (%d for a verdict)", c.Name, c.Windows, leastWindows)
	case c.Window <= 0:
		return fmt.Errorf("bench %s: window is %s, want more than 0", c.Name, c.Window)
	case c.Drift <= 1:
		return fmt.Errorf("bench %s: drift is %g, want more than 1", c.Name, c.Drift)
	case c.Repeats < 0 || c.Warmup < 0:
		return fmt.Errorf("bench %s: repeats and warm-up cannot be negative", c.Name)
	case c.Calibrate == nil:
		return fmt.Errorf("bench %s: no calibration", c.Name)
	}
	return nil
}

// A Window is one pair of measurements between three calibrations:
// before, first side, between, second side, after.
type Window struct {
	Order    string         `json:"order"` // "AB" or "BA"
	A        Sample         `json:"a"`
	B        Sample         `json:"b"`
	Ratio    float64        `json:"ratio"` // A/B
	Drift    float64        `json:"drift"` // the worst between neighbouring calibrations
	Counts   bool           `json:"counts"`
	Machine  [3]Calibration `json:"calibration"`
	Repeated int            `json:"repeated"` // 0 for the first try
}

// Pair measures A against B by the house method and judges the ratio A/B.
//
// Windows come in ABBA order. A pair whose neighbouring calibrations are Drift
// or more apart is kept in the result but does not count and is measured again
// at once; when it does not count after Repeats further tries, the comparison
// ends without a verdict, and no more time is spent. An error of a side or of
// the calibration is returned together with what was measured so far.
func Pair(ctx context.Context, cfg Config, a, b Side) (Result, error) {
	if err := cfg.Validate(); err != nil {
		return Result{}, err
	}
	r := Result{Name: cfg.Name, Unit: cfg.Unit, NameA: a.Name, NameB: b.Name, WindowLength: cfg.Window, DriftLimit: cfg.Drift}
	if cfg.Warmup > 0 {
		for _, s := range []Side{a, b} {
			if _, err := measure(ctx, s, cfg.Warmup); err != nil {
				return r, err
			}
		}
	}
	last, err := cfg.Calibrate(ctx)
	if err != nil {
		return r, fmt.Errorf("bench %s: calibration: %w", cfg.Name, err)
	}
	counted := 0
	for counted < cfg.Windows {
		steady := false
		for try := 0; try <= cfg.Repeats && !steady; try++ {
			w, err := window(ctx, cfg, counted%2 == 1, last, a, b)
			if err != nil {
				return r, err
			}
			last = w.Machine[2]
			w.Repeated = try
			w.Counts = w.Drift < cfg.Drift
			steady = w.Counts
			r.Windows = append(r.Windows, w)
		}
		if !steady {
			break
		}
		counted++
	}
	r.judge(cfg)
	return r, nil
}

// window measures one pair; before is the calibration that was just taken.
func window(ctx context.Context, cfg Config, bFirst bool, before Calibration, a, b Side) (Window, error) {
	w := Window{Order: "AB", Machine: [3]Calibration{before}}
	order := []struct {
		side Side
		into *Sample
	}{{a, &w.A}, {b, &w.B}}
	if bFirst {
		w.Order = "BA"
		order[0], order[1] = order[1], order[0]
	}
	for i, o := range order {
		sample, err := measure(ctx, o.side, cfg.Window)
		if err != nil {
			return w, fmt.Errorf("bench %s: %w", cfg.Name, err)
		}
		*o.into = sample
		if w.Machine[i+1], err = cfg.Calibrate(ctx); err != nil {
			return w, fmt.Errorf("bench %s: calibration: %w", cfg.Name, err)
		}
	}
	w.Ratio = w.A.Value / w.B.Value
	w.Drift = max(w.Machine[0].Apart(w.Machine[1]), w.Machine[1].Apart(w.Machine[2]))
	return w, nil
}

func measure(ctx context.Context, s Side, window time.Duration) (Sample, error) {
	if err := ctx.Err(); err != nil {
		return Sample{}, err
	}
	sample, err := s.Run(ctx, window)
	if err != nil {
		return Sample{}, fmt.Errorf("%s: %w", s.Name, err)
	}
	if !(sample.Value > 0) {
		return Sample{}, fmt.Errorf("%s: measured %g, which no ratio can be made of", s.Name, sample.Value)
	}
	return sample, nil
}

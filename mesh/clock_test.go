package mesh

import (
	"testing"
	"time"
)

// Invariant 14: a gap between the clock that counts sleep and the one that does
// not is a wake; so is a long stop of the process. Ordinary jitter is neither.
func TestGapDetector(t *testing.T) {
	const s = time.Second
	d := GapDetector{Every: s, MinSleep: 500 * time.Millisecond, MinStall: 3 * s}
	for i, step := range []struct {
		boot, awake    time.Duration
		slept, stalled time.Duration
		told           bool
	}{
		{boot: 1000 * s, awake: 900 * s}, // the first reading compares with nothing
		{boot: 1 * s, awake: 1 * s},
		{boot: 2 * s, awake: 2 * s, stalled: 1 * s}, // a late tick
		{boot: 3601 * s, awake: 1 * s, slept: 3600 * s, told: true},
		{boot: 1 * s, awake: 1 * s},
		{boot: 9 * s, awake: 9 * s, stalled: 8 * s, told: true},
		{boot: 1*s + 400*time.Millisecond, awake: 1 * s, slept: 400 * time.Millisecond},
		{boot: 1*s - time.Millisecond, awake: 1 * s}, // the two are not read at one moment
	} {
		gap, told := d.Observe(d.boot+step.boot, d.awake+step.awake)
		if told != step.told || gap.Slept != step.slept || gap.Stalled != step.stalled {
			t.Errorf("step %d: got %+v, %v; want %+v", i, gap, told, step)
		}
	}
}

func TestClocksGoOn(t *testing.T) {
	b, a := BootClock(), AwakeClock()
	if b <= 0 || a <= 0 || b < a-time.Millisecond {
		t.Fatalf("boot %v, awake %v", b, a)
	}
	eventually(t, "both clocks go on", func() bool { return BootClock() > b && AwakeClock() > a })
	if step := (BootClock() - b) - (AwakeClock() - a); step > 100*time.Millisecond || step < -100*time.Millisecond {
		t.Errorf("the clocks differ by %v while awake", step)
	}
}

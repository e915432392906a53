package bench

import (
	"context"
	"crypto/sha256"
	"fmt"
	"os/exec"
	"time"
)

// A Calibration is what three fixed pieces of work cost on this machine at one
// moment. Each is the median of many, so that one stall is not a drift.
type Calibration struct {
	Fdatasync time.Duration `json:"fdatasync_ns"` // 4 KiB appended and synced, of 200
	ForkExec  time.Duration `json:"fork_exec_ns"` // true(1) started and waited for, of 50
	Spin      time.Duration `json:"spin_ns"`      // SHA-256 of 1 MiB, of 50
}

var calibrationParts = [...]string{"fdatasync", "fork/exec", "spin"}

func (c Calibration) values() [3]time.Duration {
	return [3]time.Duration{c.Fdatasync, c.ForkExec, c.Spin}
}

// Apart is the largest factor between the parts of two calibrations.
func (c Calibration) Apart(d Calibration) float64 {
	worst := 0.0
	theirs := d.values()
	for i, v := range c.values() {
		worst = max(worst, apart(float64(v), float64(theirs[i])))
	}
	return worst
}

const (
	calibrationSyncs = 200
	calibrationForks = 50
	calibrationSpins = 50
)

// MachineCalibration measures this machine; the syncs go to a file in dir,
// which should be on the disk the sides use. It takes about a quarter of a
// second on a quiet machine.
func MachineCalibration(dir string) func(context.Context) (Calibration, error) {
	return func(ctx context.Context) (Calibration, error) {
		syncs, err := newSyncFile(dir)
		if err != nil {
			return Calibration{}, err
		}
		defer syncs.close()
		program, err := trueProgram()
		if err != nil {
			return Calibration{}, err
		}
		block := make([]byte, 1<<20)
		var c Calibration
		for _, part := range []struct {
			into *time.Duration
			n    int
			work func() error
		}{
			{&c.Fdatasync, calibrationSyncs, syncs.appendAndSync},
			{&c.ForkExec, calibrationForks, func() error { return exec.CommandContext(ctx, program).Run() }},
			{&c.Spin, calibrationSpins, func() error { sha256.Sum256(block); return nil }},
		} {
			d, err := repeat(ctx, part.n, part.work)
			if err != nil {
				return Calibration{}, err
			}
			*part.into = LatencyOf(d).P50
		}
		return c, nil
	}
}

// repeat times n pieces of work.
func repeat(ctx context.Context, n int, work func() error) ([]time.Duration, error) {
	all := make([]time.Duration, 0, n)
	for range n {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		from := time.Now()
		if err := work(); err != nil {
			return nil, err
		}
		all = append(all, time.Since(from))
	}
	return all, nil
}

func trueProgram() (string, error) {
	path, err := exec.LookPath("true")
	if err != nil {
		return "", fmt.Errorf("find true(1), the program that is started to calibrate: %w", err)
	}
	return path, nil
}

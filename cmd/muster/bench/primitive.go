package bench

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"time"
)

// The sides here are what the machine itself can do: the physical limits that
// ratios are taken against. Their value is the p50 in milliseconds.

// Fdatasync appends 4 KiB to a file in dir and syncs it, again and again.
func Fdatasync(dir string) Side {
	return Side{Name: "fdatasync 4 KiB", Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		f, err := newSyncFile(dir)
		if err != nil {
			return Sample{}, err
		}
		defer f.close()
		return p50(ctx, window, f.appendAndSync)
	}}
}

// ForkExec starts true(1) and waits for its end.
func ForkExec() Side {
	return Side{Name: "fork/exec true", Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		program, err := trueProgram()
		if err != nil {
			return Sample{}, err
		}
		return p50(ctx, window, func() error { return exec.CommandContext(ctx, program).Run() })
	}}
}

// FirstWord starts a program and waits for the first byte it writes to stdout:
// from fork to its first instructions, with a pipe in between. Without
// arguments the program is echo.
func FirstWord(argv ...string) Side {
	if len(argv) == 0 {
		argv = []string{"echo", "started"}
	}
	return Side{Name: "fork/exec to first word of " + argv[0], Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		var all []time.Duration
		end := time.Now().Add(window)
		for len(all) == 0 || time.Now().Before(end) {
			took, err := firstWord(ctx, argv)
			if err != nil {
				return Sample{}, err
			}
			all = append(all, took)
		}
		return sampleOf(LatencyOf(all)), nil
	}}
}

// firstWord is one start; reaping the process is not part of the time.
func firstWord(ctx context.Context, argv []string) (time.Duration, error) {
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...)
	out, err := cmd.StdoutPipe()
	if err != nil {
		return 0, fmt.Errorf("pipe from %s: %w", argv[0], err)
	}
	from := time.Now()
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start %s: %w", argv[0], err)
	}
	_, readErr := io.ReadFull(out, make([]byte, 1))
	took := time.Since(from)
	_, _ = io.Copy(io.Discard, out)
	if err := cmd.Wait(); err != nil {
		return 0, fmt.Errorf("run %s: %w", argv[0], err)
	}
	if readErr != nil {
		return 0, fmt.Errorf("%s wrote nothing: %w", argv[0], readErr)
	}
	return took, nil
}

// LoopbackRTT sends 64 bytes over a kept TCP connection on 127.0.0.1 and waits
// for their echo.
func LoopbackRTT() Side {
	return Side{Name: "loopback TCP round trip", Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		ping, closeAll, err := loopback()
		if err != nil {
			return Sample{}, err
		}
		defer closeAll()
		return p50(ctx, window, ping)
	}}
}

// SyncAndRTT is the least a durable answer over a connection can cost: one
// fdatasync in dir and one loopback round trip, in turn in the same window. Its
// value is the sum of the two medians (goals.md P2).
func SyncAndRTT(dir string) Side {
	return Side{Name: "one fdatasync + one loopback round trip", Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		f, err := newSyncFile(dir)
		if err != nil {
			return Sample{}, err
		}
		defer f.close()
		ping, closeAll, err := loopback()
		if err != nil {
			return Sample{}, err
		}
		defer closeAll()
		var syncs, trips []time.Duration
		end := time.Now().Add(window)
		for len(syncs) == 0 || time.Now().Before(end) {
			s, err := repeat(ctx, 1, f.appendAndSync)
			if err != nil {
				return Sample{}, err
			}
			p, err := repeat(ctx, 1, ping)
			if err != nil {
				return Sample{}, err
			}
			syncs, trips = append(syncs, s...), append(trips, p...)
		}
		sync, trip := LatencyOf(syncs), LatencyOf(trips)
		return Sample{Value: Milliseconds(sync.P50) + Milliseconds(trip.P50), Latency: &sync}, nil
	}}
}

// loopback opens a connection to an echo of its own.
func loopback() (ping func() error, closeAll func(), err error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, nil, fmt.Errorf("listen on loopback: %w", err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c, err := l.Accept()
		if err != nil {
			return
		}
		defer c.Close()
		word := make([]byte, 64)
		for { // not io.Copy: it would splice, which is another path through the kernel
			n, err := c.Read(word)
			if err != nil {
				return
			}
			if _, err := c.Write(word[:n]); err != nil {
				return
			}
		}
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		_ = l.Close()
		<-ended
		return nil, nil, fmt.Errorf("dial loopback: %w", err)
	}
	word := make([]byte, 64)
	ping = func() error {
		if _, err := c.Write(word); err != nil {
			return fmt.Errorf("loopback: %w", err)
		}
		if _, err := io.ReadFull(c, word); err != nil {
			return fmt.Errorf("loopback: %w", err)
		}
		return nil
	}
	return ping, func() { _ = c.Close(); _ = l.Close(); <-ended }, nil
}

// p50 repeats the work for the window; the sample's value is its median.
func p50(ctx context.Context, window time.Duration, work func() error) (Sample, error) {
	l, err := ClosedLoop(ctx, window, 1, func(context.Context, int, int) error { return work() })
	if err != nil {
		return Sample{}, err
	}
	return sampleOf(l.Latency), nil
}

func sampleOf(l Latency) Sample { return Sample{Value: Milliseconds(l.P50), Latency: &l} }

package logstore

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"muster/raftstore/logstore/powercut"
)

var (
	powerCuts = flag.Int("power.cuts", 20, "power cuts of each kind")
	powerSeed = flag.Uint64("power.seed", uint64(time.Now().UnixNano()), "seed of the power cuts")
)

// A process works on a disk that forgets what was not synced; the power goes at a random moment, in every third life
// after a kill -9 and a second process on the same disk. What the disk kept opens, always; every acknowledged
// operation is there, and what a second process found is, too.
func TestPowerCut(t *testing.T) {
	t.Parallel()
	mount := t.TempDir()
	unmount, err := powercut.New().Mount(mount)
	if err != nil {
		t.Skipf("needs linux and root and /dev/fuse: a disk that forgets is mounted; "+
			"TestPowerCutReplay runs in its place: %v", err)
	}
	unmount()
	eachKind(t, func(t *testing.T, kind Kind) {
		t.Logf("-power.seed=%d", *powerSeed)
		c := cuts{t: t, kind: kind, rng: rand.New(rand.NewPCG(*powerSeed, 3)), mount: mount, dir: memDir(t)}
		begin, acks := time.Now(), 0
		for i := range *powerCuts {
			if i%10 == 0 { // from an empty disk
				if c.g != nil {
					acks += c.g.acks
				}
				c.g, c.last = newLedger(), ""
			}
			if err := c.life(i); err != nil {
				t.Fatalf("cut %d: %v", i, err)
			}
		}
		acks += c.g.acks
		if c.lossy == 0 || acks < *powerCuts {
			t.Errorf("%d cuts lost something, %d operations acknowledged: the test shows nothing", c.lossy, acks)
		}
		t.Logf("%s: %d cuts, %d of them lost what was not synced, %d operations acknowledged, none lost, %v",
			kind, *powerCuts, c.lossy, acks, time.Since(begin).Round(time.Millisecond))
	})
}

// memDir is a folder in memory if there is one: what a cut leaves needs no more syncs than the test has already had.
func memDir(t *testing.T) string {
	dir, err := os.MkdirTemp("/dev/shm", "powercut")
	if err != nil {
		return t.TempDir()
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	return dir
}

type cuts struct {
	t     *testing.T
	kind  Kind
	rng   *rand.Rand
	mount string
	dir   string
	g     *ledger
	last  string // the folder that survived the last cut, "" for a new disk
	lossy int
}

func (c *cuts) life(i int) error {
	disk := powercut.New()
	if c.last != "" {
		if err := disk.Load(c.last); err != nil {
			return err
		}
	}
	unmount, err := disk.Mount(c.mount)
	if err != nil {
		return err
	}
	survivors := filepath.Join(c.dir, fmt.Sprint(i))
	lost, err := c.onDisk(disk, survivors)
	if err := errors.Join(err, unmount()); err != nil {
		return err
	}
	if !lost.None() {
		c.lossy++
	}
	if err := c.reopen(filepath.Join(survivors, "log")); err != nil {
		return fmt.Errorf("lost %v: %w", lost, err)
	}
	if c.last != "" {
		os.RemoveAll(c.last)
	}
	c.last = survivors
	return nil
}

func (c *cuts) onDisk(disk *powercut.Disk, survivors string) (lost powercut.Lost, err error) {
	dir := filepath.Join(c.mount, "log")
	if c.rng.IntN(3) == 0 {
		p := startChild(c.t, c.kind, dir, c.rng.Uint64())
		if err := untilKilled(p, c.g, c.rng); err != nil {
			p.cmd.Process.Kill()
			return lost, err
		}
	}
	stop, late := disk.StopAfter(1+c.rng.IntN(250), c.rng.IntN(4) > 0), time.After(time.Minute)
	if c.rng.IntN(5) == 0 {
		stop, late = nil, time.After(time.Duration(c.rng.IntN(100))*time.Millisecond)
	}
	p := startChild(c.t, c.kind, dir, c.rng.Uint64())
	dead := func(w word) error {
		if w.What == "fail" && disk.Stopped() {
			return nil
		}
		return c.g.hear(w)
	}
	for on := true; on; {
		select {
		case w, ok := <-p.words:
			if on = ok; !ok {
				break
			}
			if err := dead(w); err != nil {
				return lost, err
			}
		case <-stop:
			on = false
		case <-late:
			on = false
		}
	}
	lost, err = disk.Cut(c.rng, survivors)
	return lost, errors.Join(err, p.kill(dead))
}

// reopen looks at what the disk has kept.
func (c *cuts) reopen(dir string) error {
	if _, err := Check(dir); err != nil && !(errors.Is(err, ErrMissing) && !c.g.opened) {
		return fmt.Errorf("check: %w", err)
	}
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) && c.g.opened {
		return errors.New("the folder is gone")
	}
	l, err := Open(c.kind, dir, Options{SegmentSize: childSegment, MustExist: c.g.opened})
	if err != nil {
		return err
	}
	defer l.Close()
	s, err := look(l)
	if err != nil {
		return err
	}
	return c.g.check(s)
}

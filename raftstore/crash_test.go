package raftstore

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/raftstore/logstore/powercut"
)

const crashEnv = "RAFTSTORE_TEST_CHILD" // boot, folder

func TestMain(m *testing.M) {
	if args := os.Getenv(crashEnv); args != "" {
		boot, dir, _ := strings.Cut(args, ",")
		crashChild(boot, dir, os.NewFile(3, "words"))
		return
	}
	os.Exit(m.Run())
}

// crashChild counts on a store of its own, snapshots on the way, saying before and after each step what it does, until it is killed.
func crashChild(boot, dir string, words io.Writer) {
	say := func(format string, args ...any) {
		if _, err := fmt.Fprintf(words, format+"\n", args...); err != nil {
			os.Exit(0) // the test is over
		}
	}
	s, err := openAlone(boot, dir)
	if err != nil {
		say("fail %v", err)
		return
	}
	for n := 0; ; n++ {
		say("do")
		res := s.Do(context.Background(), toy(verbAdd, "a"))
		if res.Err != nil {
			say("fail %s: %v", res.Err.Message, s.Err())
			return
		}
		say("done %s", res.Data)
		if n%3 == 0 {
			s.Do(context.Background(), toyN(verbFill, fmt.Sprint("k", n%40), 8, 400))
		}
	}
}

// openAlone opens a fleet of one with small snapshots, and waits until it leads.
func openAlone(boot, dir string) (*Store, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	c := DefaultConfig()
	c.Dir, c.Server, c.Listener, c.Exec, c.BootID = dir, "n1/s1", l, toyExec, boot
	c.Timers, c.MmapSize = quick, 1
	c.Snapshots = Snapshots{Entries: 40, Bytes: 1 << 30, Every: 30 * time.Millisecond, Trailing: 60}
	s, err := Open(c)
	if err != nil {
		return nil, err
	}
	if len(s.Servers()) == 0 {
		if err := s.Bootstrap(); err != nil {
			return nil, err
		}
	}
	for end := time.Now().Add(20 * time.Second); !leads(s); <-time.After(2 * time.Millisecond) {
		if s.Err() != nil || time.Now().After(end) {
			return nil, errors.Join(errors.New("does not lead"), s.Err(), s.Close())
		}
	}
	return s, nil
}

// A ledger is what a child has said in all its lives.
type ledger struct {
	acked, begun int
	open         bool // a step was begun and not answered
	failed       string
	done         func() // told at each step that is done
}

func (g *ledger) hear(line string) {
	switch verb, rest, _ := strings.Cut(line, " "); verb {
	case "do":
		g.begun++
		g.open = true
	case "done":
		g.acked, _ = strconv.Atoi(rest)
		g.open = false
		if g.done != nil {
			g.done()
		}
	case "fail":
		g.failed = rest
	}
}

// live runs a child until stop says so (or it fails), then calls end, which kills it.
func (g *ledger) live(t *testing.T, boot, dir string, stop <-chan struct{}, end func(*os.Process) error) error {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command(os.Args[0], "-test.run=^$")
	cmd.Env = append(os.Environ(), crashEnv+"="+boot+","+dir)
	cmd.ExtraFiles = []*os.File{w}
	cmd.Stderr = os.Stderr
	g.failed = ""
	if err := cmd.Start(); err != nil {
		return err
	}
	w.Close()
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		for sc := bufio.NewScanner(r); sc.Scan(); {
			lines <- sc.Text()
		}
	}()
	late := time.After(30 * time.Second)
	for on := true; on; {
		select {
		case line, ok := <-lines:
			if on = ok; ok {
				g.hear(line)
			}
		case <-stop:
			on = false
		case <-late:
			on = false
		}
	}
	err = end(cmd.Process)
	_ = cmd.Process.Kill()
	for line := range lines {
		g.hear(line)
	}
	_ = cmd.Wait()
	return err
}

// check opens what is left, in this process, and compares. What was done and
// not told may be in; it is then the new truth.
func (g *ledger) check(dir, boot string, was int) (int, error) {
	s, err := openAlone(boot, dir)
	if err != nil {
		return 0, err
	}
	defer s.Close()
	n := 0
	if err := s.View(func(v board.View) error { n = count(v, "a"); return nil }); err != nil {
		return 0, err
	}
	most := max(g.acked, was)
	if g.open {
		most++
	}
	if n < g.acked || n > most {
		return n, fmt.Errorf("counted to %d; acknowledged up to %d, and begun at most %d", n, g.acked, most)
	}
	h, err := verifyOpen(s)
	if err != nil {
		return n, err
	}
	if h != s.Hash() {
		return n, errors.New("hash counted anew differs")
	}
	g.open = false
	return n, s.Err()
}

func verifyOpen(s *Store) (hash [16]byte, err error) {
	err = s.state.read(func(v *view) error {
		got, err := sumAll(context.Background(), v.tx)
		hash = got.bytes()
		return err
	})
	return hash, err
}

// Invariants 4 and 8 with a real process: killed -9 at any moment, snapshots on
// the way, it comes back with all that it acknowledged.
func TestKilledAtAnyMoment(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "store")
	rng := rand.New(rand.NewPCG(uint64(*seed), 5))
	var g ledger
	was := 0
	for i := range *kills {
		stop, left := make(chan struct{}), 1+rng.IntN(60)
		g.done = func() {
			if left--; left == 0 { // and a moment more, somewhere inside a step
				time.AfterFunc(time.Duration(rng.IntN(5000))*time.Microsecond, func() { close(stop) })
			}
		}
		if err := g.live(t, "same", dir, stop, func(p *os.Process) error { return p.Kill() }); err != nil || g.failed != "" {
			t.Fatalf("life %d (seed %d): %v %s", i, *seed, err, g.failed)
		}
		var err error
		if was, err = g.check(dir, "same", was); err != nil {
			t.Fatalf("life %d (seed %d): %v", i, *seed, err)
		}
		g.acked = was
	}
	t.Logf("%d kills, counted to %d", *kills, was)
	if was < *kills {
		t.Fatal("hardly anything was counted: this test tests nothing")
	}
}

// R6, M-32: the power goes at any moment, and every byte that was not synced
// with it: state without sync, snapshots, marker. The state is rebuilt; what
// was acknowledged is there.
func TestPowerCutOfAWholeStore(t *testing.T) {
	t.Parallel()
	mount := t.TempDir()
	unmount, err := powercut.New().Mount(mount)
	if err != nil {
		t.Skipf("needs FUSE: %v", err)
	}
	if err := unmount(); err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(uint64(*seed), 6))
	var g ledger
	was, last, lossy := 0, "", 0
	for i := range *cuts {
		disk := powercut.New()
		if last != "" {
			if err := disk.Load(last); err != nil {
				t.Fatal(err)
			}
		}
		unmount, err := disk.Mount(mount)
		if err != nil {
			t.Fatal(err)
		}
		survivors := filepath.Join(t.TempDir(), "survivors")
		var lost powercut.Lost
		stop := disk.StopAfter(20+rng.IntN(80), rng.IntN(2) == 0)
		err = g.live(t, fmt.Sprint("boot", i), filepath.Join(mount, "store"), stop, func(*os.Process) (err error) {
			lost, err = disk.Cut(rng, survivors)
			return err
		})
		if err := errors.Join(err, unmount()); err != nil {
			t.Fatalf("cut %d (seed %d): %v", i, *seed, err)
		}
		if !lost.None() {
			lossy++
		}
		dir := filepath.Join(survivors, "store")
		if g.acked == 0 && !fileExists(filepath.Join(dir, logDir)) {
			continue // cut before there was anything
		}
		if was, err = g.check(dir, fmt.Sprint("after", i), was); err != nil {
			t.Fatalf("cut %d (seed %d), lost %v: %v", i, *seed, lost, err)
		}
		g.acked, last = was, survivors
	}
	t.Logf("%d cuts, %d of them lost something, counted to %d", *cuts, lossy, was)
	if lossy == 0 || was < 2 {
		t.Fatal("nothing was lost or nothing counted: this test tests nothing")
	}
}

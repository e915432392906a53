package logstore

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"muster/raftstore/logstore/powercut"
)

var powerEvery = flag.Bool("power.every", false, "TestPowerCutReplay cuts at every operation of its traces, instead of at -power.cuts random ones")

var powerRecord = flag.Bool("power.record", false, "record the traces for TestPowerCutReplay anew (needs FUSE)")

func traceFile(kind Kind) string { return filepath.Join("testdata", "power-"+string(kind)+".trace.gz") }

// Power cuts at random points of a recorded trace of two lives (the first ended by kill -9), or at each of its points.
// It shows how today's code opens what a cut leaves; that it still syncs where the recorded one did only TestPowerCut
// shows.
func TestPowerCutReplay(t *testing.T) {
	eachKind(t, func(t *testing.T, kind Kind) {
		if *powerRecord {
			record(t, kind)
		}
		f, err := os.Open(traceFile(kind))
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		trace, err := powercut.ReadTrace(f)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("-power.seed=%d", *powerSeed)
		rng := rand.New(rand.NewPCG(*powerSeed, 4))
		acks, mem, tried := 0, memDir(t), *powerCuts
		if *powerEvery {
			tried = len(trace.Ops) + 1
		}
		for i := range tried {
			n := i
			if !*powerEvery {
				n = rng.IntN(len(trace.Ops) + 1)
			}
			dir := filepath.Join(mem, fmt.Sprint(i))
			lost, err := trace.Replay(n).Cut(rng, dir)
			if err != nil {
				t.Fatal(err)
			}
			c := cuts{kind: kind, g: newLedger()}
			if err := c.g.readSaid(trace.Written(saidFile, n)); err != nil {
				t.Fatal(err)
			}
			acks += c.g.acks
			if err := c.reopen(filepath.Join(dir, "log")); err != nil {
				t.Fatalf("cut at %d of %d, lost %v: %v", n, len(trace.Ops), lost, err)
			}
			os.RemoveAll(dir)
		}
		if acks == 0 {
			t.Error("no operation was acknowledged: the test shows nothing")
		}
		t.Logf("%s: %d cuts of a trace of %d operations, none lost", kind, tried, len(trace.Ops))
	})
}

func (g *ledger) readSaid(said []byte) error {
	in := bufio.NewReader(bytes.NewReader(said))
	for {
		line, err := in.ReadBytes('\n')
		if err != nil {
			return nil
		}
		var w word
		if err := json.Unmarshal(line, &w); err != nil {
			return err
		}
		if err := g.hear(w); err != nil {
			return err
		}
	}
}

func record(t *testing.T, kind Kind) {
	t.Helper()
	disk, mount := powercut.New(), t.TempDir()
	trace := disk.Record()
	unmount, err := disk.Mount(mount)
	if err != nil {
		t.Fatal(err)
	}
	defer unmount()
	if err := os.WriteFile(filepath.Join(mount, saidFile), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for seed := uint64(1); seed <= 2; seed++ {
		g := newLedger() // the second life finds what the first left: readSaid checks that
		p := startChild(t, kind, filepath.Join(mount, "log"), seed)
		for g.acks < 60 {
			w, ok := <-p.words
			if !ok || w.What == "fail" {
				t.Fatalf("recording: %+v", w)
			}
			if w.What != "open" {
				err = errors.Join(err, g.hear(w))
			}
		}
		err = errors.Join(err, p.kill(func(word) error { return nil }))
	}
	f, err2 := os.Create(traceFile(kind))
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(trace.Write(f), f.Close()); err != nil {
		t.Fatal(err)
	}
}

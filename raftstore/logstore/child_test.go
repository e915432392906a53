package logstore

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/hashicorp/raft"
)

const (
	childEnv = "LOGSTORE_TEST_CHILD" // kind, seed, folder
	saidFile = "said"                // beside the folder, if it is there: the words once more, in order with the writes
)

func TestMain(m *testing.M) {
	if args := os.Getenv(childEnv); args != "" {
		runChild(args)
		return
	}
	flag.Parse()
	os.Exit(m.Run())
}

// runChild opens a store and works on it until it is killed, saying on file 3 what it begins and what is done.
func runChild(args string) {
	f := strings.SplitN(args, ",", 3)
	seed, _ := strconv.ParseUint(f[1], 10, 64)
	words := os.NewFile(3, "words")
	out := json.NewEncoder(words)
	c := child{rng: rand.New(rand.NewPCG(seed, 1)), say: func(w word) {
		if out.Encode(w) != nil {
			os.Exit(0) // nobody listens any more: the test is over
		}
	}}
	said, err := os.OpenFile(filepath.Join(filepath.Dir(f[2]), saidFile), os.O_WRONLY|os.O_APPEND, 0)
	if err == nil {
		out = json.NewEncoder(io.MultiWriter(said, words))
	}
	if err := c.run(Kind(f[0]), f[2]); err != nil {
		c.say(word{What: "fail", Err: err.Error()})
	}
}

type child struct {
	rng *rand.Rand
	say func(word)
	log *Log
	ops uint64
}

const (
	childSegment = 48 << 10
	childEntries = 1500 // more are cut off at the front
)

func (c *child) run(kind Kind, dir string) error {
	l, err := Open(kind, dir, Options{SegmentSize: childSegment})
	if err != nil {
		return err
	}
	c.log = l
	seen, err := look(l)
	if err != nil {
		return err
	}
	c.say(word{What: "open", Done: true, Seen: seen})
	for {
		if err := c.step(); err != nil {
			return err
		}
	}
}

// step does one operation: mostly appends, with forced truncations of the tail as an ex-leader gets them.
func (c *child) step() error {
	c.ops++
	first, err := c.log.FirstIndex()
	if err != nil {
		return err
	}
	last, err := c.log.LastIndex()
	if err != nil {
		return err
	}
	switch n := c.rng.IntN(100); {
	case last-first > childEntries:
		return c.do(word{What: "front", At: first + 1000}, func() error { return c.log.DeleteRange(first, first+1000) })
	case n < 10 && last > 0:
		at := last - min(last-first, uint64(c.rng.IntN(40)))
		return c.do(word{What: "back", At: at}, func() error { return c.log.DeleteRange(at, last) })
	case n < 13 && last > first:
		at := first + uint64(c.rng.IntN(int(last-first+1)))
		return c.do(word{What: "front", At: at}, func() error { return c.log.DeleteRange(first, at) })
	case n < 25:
		v := c.rng.Uint64() >> 12
		return c.do(word{What: "stable", At: v}, func() error { return c.log.SetUint64([]byte(stableKey), v) })
	default:
		return c.append(last)
	}
}

func (c *child) append(last uint64) error {
	n := 1
	if c.rng.IntN(3) == 0 {
		n += c.rng.IntN(63)
	}
	w := word{What: "append", At: last + 1}
	var batch []*raft.Log
	for i := range n {
		size := 20 + c.rng.IntN(600)
		if c.rng.IntN(200) == 0 {
			size = 90_000
		}
		data := bytes.Repeat(fmt.Appendf(nil, "%d/%d/%d ", c.ops, i, c.rng.Uint32()), size/12)
		batch = append(batch, &raft.Log{Index: last + 1 + uint64(i), Term: c.ops, Data: data})
		w.Sums = append(w.Sums, sumOf(batch[i]))
	}
	return c.do(w, func() error { return c.log.StoreLogs(batch) })
}

func (c *child) do(w word, fn func() error) error {
	c.say(w)
	if err := fn(); err != nil {
		return fmt.Errorf("%s %d: %w", w.What, w.At, err)
	}
	w.Done, w.Sums = true, nil
	c.say(w)
	return nil
}

// process is a child of the test, with its words.
type process struct {
	cmd   *exec.Cmd
	words chan word // closed when the child is gone and all it said was read
}

func startChild(t *testing.T, kind Kind, dir string, seed uint64) *process {
	t.Helper()
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	p := &process{cmd: exec.Command(os.Args[0]), words: make(chan word, 64)}
	p.cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%s,%d,%s", childEnv, kind, seed, dir))
	p.cmd.ExtraFiles = []*os.File{w}
	var stderr bytes.Buffer // a child whose disk is gone may die by a fault on its memory map: shown if the test fails
	p.cmd.Stderr = &stderr
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	w.Close()
	t.Cleanup(func() {
		p.cmd.Process.Kill()
		p.cmd.Wait()
		if t.Failed() && stderr.Len() > 0 {
			t.Logf("a child said: %.2000s", stderr.String())
		}
	})
	go func() {
		defer close(p.words)
		defer r.Close()
		in := bufio.NewReader(r)
		for {
			line, err := in.ReadBytes('\n')
			if err != nil {
				return // the last line of a killed child may be half a line
			}
			var w word
			if err := json.Unmarshal(line, &w); err != nil {
				w = word{What: "fail", Err: "unreadable: " + string(line)}
			}
			p.words <- w
		}
	}()
	return p
}

// kill ends the child with SIGKILL and hears the rest of what it said. Words after the end of the disk are failures
// that the caller expects.
func (p *process) kill(hear func(word) error) error {
	p.cmd.Process.Kill()
	var first error
	for w := range p.words {
		if err := hear(w); err != nil && first == nil {
			first = err
		}
	}
	p.cmd.Wait()
	return first
}

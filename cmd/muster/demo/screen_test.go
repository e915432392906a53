package demo

import (
	"bytes"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"
)

// The picture: a line per machine, a line per kind of card, what is done; no
// escape codes without colour.
func TestRender(t *testing.T) {
	l := look{
		nodes: []nodeLook{{name: "atlas", role: "leader", slots: 3, sessions: []string{"p-1", "p-2"}}, {name: "borea", dead: "killed with -9"}},
		rows:  []row{{"sieve", []cell{done, runs, waits, stuck}}}, done: 1, all: 4,
	}
	want := []string{"  atlas  leader   oo.  p-1 p-2", "  borea  killed with -9", "", "  sieve  #o.!", "", "  1 of 4 cards done"}
	if got := render(l, style{}); !slices.Equal(got, want) {
		t.Errorf("got\n%s", strings.Join(got, "\n"))
	}
}

// On a terminal the picture stands once: it is wiped before anything else is
// said. Elsewhere there are lines only, and no control characters.
func TestScreen(t *testing.T) {
	var out bytes.Buffer
	s := &screen{out: &out, terminal: true, begun: time.Now()}
	s.draw(look{all: 4})
	s.say("something happened")
	if !strings.Contains(out.String(), "\x1b[3A\x1b[J") {
		t.Errorf("the picture of 3 lines was not wiped: %q", out.String())
	}
	out.Reset()
	s = &screen{out: &out, begun: time.Now()}
	s.draw(look{all: 4, done: 2})
	s.draw(look{all: 4, done: 2})
	if got := out.String(); strings.ContainsRune(got, 0x1b) || strings.Count(got, "\n") != 1 {
		t.Errorf("calm lines: %q", got)
	}
}

// The deck: 36 cards by default, none waits for a later one, one at the end that
// waits, over others, for all.
func TestDeck(t *testing.T) {
	d := deck(12, "/tmp/x", rand.New(rand.NewPCG(1, 1)))
	if len(d) != 36 {
		t.Fatalf("%d cards", len(d))
	}
	reached := map[int]bool{}
	var walk func(int)
	walk = func(i int) {
		if reached[i] {
			return
		}
		reached[i] = true
		for _, j := range d[i].after {
			if j >= i {
				t.Errorf("card %d waits for card %d", i, j)
			}
			walk(j)
		}
	}
	walk(len(d) - 1)
	if len(reached) != len(d) {
		t.Errorf("the report waits for %d of %d cards", len(reached)-1, len(d)-1)
	}
	if n := primesBelow(100); n != 25 {
		t.Errorf("%d primes below 100", n)
	}
}

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// book is the file in which sessions write down their starts, beats and ends: the
// clock that counts sleep, machine, card and run. A lock of the kernel on a file of
// each card tells a session that another of its card lives: it writes "double".
type book struct {
	file, locks string
}

// bookScript works COUNT times half a second.
const bookScript = `
say() { read -r up rest < /proc/uptime; echo "$1 $up $MUSTER_NODE $MUSTER_CARD $MUSTER_RUN" >> FILE; }
exec 9> LOCKS/$MUSTER_CARD
flock -n 9 || say double
say start
i=0
while [ $i -lt COUNT ]; do sleep 0.5; say beat; i=$((i+1)); done
say end
`

func newBook(t *testing.T, dir string) *book {
	b := &book{filepath.Join(dir, "book"), filepath.Join(dir, "locks")}
	if err := os.MkdirAll(b.locks, 0o700); err != nil {
		t.Fatal(err)
	}
	return b
}

func (b *book) script(count int) string {
	return strings.NewReplacer("FILE", b.file, "LOCKS", b.locks, "COUNT", strconv.Itoa(count)).Replace(bookScript)
}

// word is a line of the book.
type word struct {
	kind            string
	at              time.Duration // of the clock that counts sleep
	node, card, run string
}

func (b *book) read() ([]word, error) {
	text, err := os.ReadFile(b.file)
	if os.IsNotExist(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parseBook(string(text))
}

func parseBook(text string) (list []word, err error) {
	for line := range strings.Lines(text) {
		w := strings.Fields(line)
		if len(w) != 5 || !strings.HasSuffix(line, "\n") {
			return nil, fmt.Errorf("broken line %q", line)
		}
		secs, err := strconv.ParseFloat(w[1], 64)
		if err != nil {
			return nil, fmt.Errorf("broken line %q", line)
		}
		list = append(list, word{w[0], time.Duration(secs * float64(time.Second)), w[2], w[3], w[4]})
	}
	return list, nil
}

// upTime is now, on the clock of the book.
func upTime(t *testing.T) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/uptime")
	if err != nil {
		t.Fatal(err)
	}
	secs, err := strconv.ParseFloat(strings.Fields(string(text))[0], 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Duration(secs * float64(time.Second))
}

// doubles holds a book against invariant 2: one session a run, and of one card none
// begins while another lives, by the kernel's lock, by the order of the lines, and by the clock.
func doubles(list []word) (wrong []string) {
	begun, newest, last := map[string]bool{}, map[string]string{}, map[string]word{}
	for _, w := range list {
		now := newest[w.card]
		switch {
		case w.kind == "double":
			wrong = append(wrong, fmt.Sprintf("card %s: a session of %s lived when %s began on %s", w.card, now, w.run, w.node))
		case w.kind == "start" && begun[w.run]:
			wrong = append(wrong, fmt.Sprintf("run %s began twice, last on %s", w.run, w.node))
		case w.kind == "start":
			if before, ok := last[now]; ok && before.at > w.at {
				wrong = append(wrong, fmt.Sprintf("card %s: %s began at %s, %s still worked at %s", w.card, w.run, w.at, now, before.at))
			}
			begun[w.run], newest[w.card] = true, w.run
		case !begun[w.run]:
			wrong = append(wrong, fmt.Sprintf("run %s has a %s and no start", w.run, w.kind))
		case now != w.run:
			wrong = append(wrong, fmt.Sprintf("card %s: %s worked on after %s had begun", w.card, w.run, now))
		}
		last[w.run] = w
	}
	return wrong
}

// ends are the cards of which a session came to its end.
func ends(list []word) map[string]bool {
	m := map[string]bool{}
	for _, w := range list {
		if w.kind == "end" {
			m[w.card] = true
		}
	}
	return m
}

// absence is a machine that was away from a moment on.
type absence struct {
	node string
	from time.Duration
}

// elsewhere is the longest time from a machine's absence until a card of its sessions
// began on another machine, and of how many cards that is known.
func elsewhere(list []word, away []absence) (longest time.Duration, cards int) {
	for _, a := range away {
		there := map[string]bool{} // cards with a session on that machine at that moment
		for _, w := range list {
			switch {
			case w.at <= a.from && w.kind == "start":
				there[w.card] = w.node == a.node
			case w.kind == "end":
				delete(there, w.card)
			case w.kind == "start" && there[w.card]:
				delete(there, w.card)
				if w.node != a.node {
					longest = max(longest, w.at-a.from)
					cards++
				}
			}
		}
	}
	return longest, cards
}

// The checkers of a book find what they are there to find.
func TestChaosBook(t *testing.T) {
	for _, c := range []struct{ name, text, says string }{
		{"one after the other", "start 1.00 a c r1\nbeat 1.50 a c r1\nstart 2.00 b c r2\nend 2.50 b c r2\n", ""},
		{"two cards at once", "start 1.00 a c r1\nstart 1.10 b d r2\nbeat 1.50 a c r1\n", ""},
		{"a run twice", "start 1.00 a c r1\nstart 2.00 b c r1\n", "began twice"},
		{"the lock was held", "start 1.00 a c r1\ndouble 2.00 b c r2\nstart 2.00 b c r2\n", "a session of r1 lived"},
		{"the old one works on", "start 1.00 a c r1\nstart 2.00 b c r2\nbeat 2.10 a c r1\n", "worked on after r2"},
		{"by the clock alone", "start 1.00 a c r1\nbeat 3.00 a c r1\nstart 2.00 b c r2\n", "still worked"},
		{"an end of nobody", "end 1.00 a c r1\n", "no start"},
	} {
		list, err := parseBook(c.text)
		if err != nil {
			t.Fatal(err)
		}
		got := strings.Join(doubles(list), "; ")
		if (got == "") != (c.says == "") || !strings.Contains(got, c.says) {
			t.Errorf("%s: %q, want %q", c.name, got, c.says)
		}
	}
	for _, text := range []string{"start 1.00 a c\n", "start 1.00 a c r1", "start x a c r1\n"} {
		if list, err := parseBook(text); err == nil {
			t.Errorf("%q was read as %v", text, list)
		}
	}
	list, err := parseBook("start 1.00 a c r1\nstart 1.20 a d r3\nend 2.00 a d r3\nstart 9.00 b d r4\nstart 16.00 b c r2\n")
	if err != nil {
		t.Fatal(err)
	}
	if longest, cards := elsewhere(list, []absence{{"a", 1500 * time.Millisecond}}); longest != 14500*time.Millisecond || cards != 1 {
		t.Errorf("elsewhere after %s, of %d cards; want 14.5s of 1", longest, cards)
	}
	if got := ends(list); !got["d"] || got["c"] {
		t.Errorf("ended: %v, want d alone", got)
	}
}

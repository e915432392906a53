package e2e

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// ledger is the one file in which the sessions of a fleet write down their start
// and the end of their work, with where and for whom they work.
type ledger struct {
	file, gate string
}

// ledgerScript is the body of a card: it writes down its start, works until the
// gate is open and a moment longer, writes down its end, and what its profile is
// for: a `work` asks for a review.
const ledgerScript = `
me="$MUSTER_NODE $PROFILE $MUSTER_BOARD $MUSTER_ROLE $MUSTER_CARD $MUSTER_RUN"
echo "start $me" >> LEDGER
while [ ! -e GATE ]; do sleep 0.05; done
sleep 0.15
echo "end $me" >> LEDGER
[ "$PROFILE" != work ] || BINARY request-review "$MUSTER_CARD" --summary "it is done" --timeout 60s
`

func (l *ledger) script() string {
	return strings.NewReplacer("LEDGER", l.file, "GATE", l.gate, "BINARY", binary).Replace(ledgerScript)
}

func (l *ledger) letEnd(t *testing.T) {
	if err := os.WriteFile(l.gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
}

func (l *ledger) hold(t *testing.T) {
	if err := os.Remove(l.gate); err != nil {
		t.Fatal(err)
	}
}

// entry is a line of the ledger, in the order in which they were written.
type entry struct {
	kind, node, profile, board, role, card, run string
}

func (l *ledger) read() (list []entry) {
	b, _ := os.ReadFile(l.file)
	for line := range strings.Lines(string(b)) {
		if w := strings.Fields(line); len(w) == 7 && strings.HasSuffix(line, "\n") {
			list = append(list, entry{w[0], w[1], w[2], w[3], w[4], w[5], w[6]})
		}
	}
	return list
}

// places are the names under which an entry is counted.
func (e *entry) places() []string {
	return []string{"fleet", "machine " + e.node, "profile " + e.profile, "board " + e.board}
}

// live counts what works at the end of a list, by place.
func live(list []entry) map[string]int {
	n := map[string]int{}
	for _, e := range list {
		for _, p := range e.places() {
			if n[p]++; e.kind == "end" {
				n[p] -= 2
			}
		}
	}
	return n
}

// maxima are the most that ever worked at a time, by place.
func maxima(list []entry) map[string]int {
	now, most := map[string]int{}, map[string]int{}
	for _, e := range list {
		for _, p := range e.places() {
			if now[p]++; e.kind == "end" {
				now[p] -= 2
			}
			most[p] = max(most[p], now[p])
		}
	}
	return most
}

// checkCaps holds a ledger against what each cap allows, and says what is wrong:
// a cap exceeded, a run that began or ended more than once or never ended.
func checkCaps(list []entry, caps map[string]int) (wrong []string) {
	most := maxima(list)
	for _, p := range slices.Sorted(maps.Keys(caps)) {
		if most[p] > caps[p] {
			wrong = append(wrong, fmt.Sprintf("%s: %d worked at a time, %d may", p, most[p], caps[p]))
		}
	}
	runs := map[string]string{}
	for _, e := range list {
		runs[e.run] += e.kind + " "
	}
	for _, run := range slices.Sorted(maps.Keys(runs)) {
		if runs[run] != "start end " {
			wrong = append(wrong, fmt.Sprintf("run %s wrote %q", run, runs[run]))
		}
	}
	return wrong
}

// startsOn counts the starts on a machine.
func startsOn(list []entry, node string) (n int) {
	for _, e := range list {
		if e.kind == "start" && (node == "" || e.node == node) {
			n++
		}
	}
	return n
}

// endsBut counts the ends on other machines than one.
func endsBut(list []entry, node string) (n int) {
	for _, e := range list {
		if e.kind == "end" && e.node != node {
			n++
		}
	}
	return n
}

// The checker finds what it is there to find.
func TestCheckCaps(t *testing.T) {
	e := func(kind, node, run string) entry {
		return entry{kind, node, "sh", "default", "implementer", "d-1", run}
	}
	caps := map[string]int{"fleet": 2, "machine atlas": 1}
	for name, tc := range map[string]struct {
		list []entry
		want string
	}{
		"in order":              {[]entry{e("start", "atlas", "r1"), e("start", "borea", "r2"), e("end", "atlas", "r1"), e("start", "atlas", "r3"), e("end", "borea", "r2"), e("end", "atlas", "r3")}, ""},
		"two on one":            {[]entry{e("start", "atlas", "r1"), e("start", "atlas", "r2"), e("end", "atlas", "r1"), e("end", "atlas", "r2")}, "machine atlas: 2 worked at a time, 1 may"},
		"one never ends":        {[]entry{e("start", "atlas", "r1")}, `run r1 wrote "start "`},
		"one begins twice":      {[]entry{e("start", "borea", "r1"), e("start", "borea", "r1"), e("end", "borea", "r1")}, `run r1 wrote "start start end "`},
		"three in all the same": {[]entry{e("start", "a", "r1"), e("start", "b", "r2"), e("start", "c", "r3"), e("end", "a", "r1"), e("end", "b", "r2"), e("end", "c", "r3")}, "fleet: 3 worked at a time, 2 may"},
	} {
		if got := strings.Join(checkCaps(tc.list, caps), "; "); got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}

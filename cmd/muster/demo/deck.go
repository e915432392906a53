package demo

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// workflow is the demo's board: a card's body is a shell script, and its exit code decides.
const workflow = `version: 1
name: primes
extends: default
params: {default_assignee: script}
profiles:
  script:
    harness: command
    args: [sh, -c, 'sh "$MUSTER_BODY"']
    verdict: exit
`

// card is one card to be filed; it waits for others of the deck.
type card struct {
	kind, title, body string
	after             []int // of the deck
}

// kinds in the order in which they are shown.
var kinds = []string{"sieve", "check", "merge", "twins", "gaps", "report"}

// span is how many numbers one sieve looks at.
const span = 10_000

// deck is the work: sieves that find the primes of a range each, checks of what
// they found, merges of two, twins of four, gaps of half, and a report that waits
// for all of them. n is the number of sieves, a multiple of 4; what a session
// writes is in dir.
func deck(n int, dir string, rng *rand.Rand) []card {
	var d []card
	add := func(kind, title, body string, after ...int) int {
		nap := fmt.Sprintf("sleep %.1f   # so that there is something to watch\n", 0.3+0.9*rng.Float64())
		d = append(d, card{kind, title, script(dir, nap+body), after})
		return len(d) - 1
	}
	sieves, checks, merges := make([]int, n), make([]int, n), make([]int, n/2)
	for i := range n {
		sieves[i] = add("sieve", fmt.Sprintf("primes from %d to %d", i*span, (i+1)*span-1), fmt.Sprintf(
			`awk -v a=%d -v b=%d 'BEGIN { for (n = a; n < b; n++) { p = n > 1; for (d = 2; d*d <= n; d++) if (n%%d == 0) { p = 0; break }; if (p) print n } }' > primes.%02d
wc -l < primes.%02d`, i*span, (i+1)*span, i, i))
	}
	for i := range n {
		checks[i] = add("check", fmt.Sprintf("are they sorted, and of that range? (%02d)", i), fmt.Sprintf(
			`awk 'NR > 1 && $1 <= last { exit 1 } { last = $1; if ($1 < %d || $1 >= %d) exit 1 }' primes.%02d`, i*span, (i+1)*span, i), sieves[i])
	}
	for i := range n / 2 {
		merges[i] = add("merge", fmt.Sprintf("merge %02d and %02d", 2*i, 2*i+1), fmt.Sprintf(
			`sort -n -m primes.%02d primes.%02d > merged.%02d && wc -l < merged.%02d`, 2*i, 2*i+1, i, i), checks[2*i], checks[2*i+1])
	}
	var last []int
	for i := range n / 4 {
		last = append(last, add("twins", fmt.Sprintf("twin primes of part %d", i), fmt.Sprintf(
			`sort -n -m merged.%02d merged.%02d | awk '$1 - last == 2 { n++ } { last = $1 } END { print n + 0 }' > twins.%02d && cat twins.%02d`, 2*i, 2*i+1, i, i), merges[2*i], merges[2*i+1]))
	}
	for i := range 2 {
		half := merges[i*n/4 : (i+1)*n/4]
		var files []string
		for _, m := range half {
			files = append(files, fmt.Sprintf("merged.%02d", m-merges[0]))
		}
		last = append(last, add("gaps", fmt.Sprintf("the widest gap of half %d", i), fmt.Sprintf(
			`sort -n -m %s | awk 'NR > 1 && $1 - last > g { g = $1 - last } { last = $1 } END { print g }' > gap.%d && cat gap.%d`, strings.Join(files, " "), i, i), half...))
	}
	add("report", "the report", `cat merged.* | wc -l > report && cat report`, last...)
	return d
}

// script is what a session runs: it says that it began and that it ended, in one
// file that all sessions share, and works in the folder they share.
func script(dir, work string) string {
	return fmt.Sprintf("cd %s || exit 1\necho \"start $MUSTER_CARD $MUSTER_RUN\" >> words\n%s\ncode=$?\necho \"end $MUSTER_CARD $MUSTER_RUN\" >> words\nexit $code\n", quote(dir), work)
}

// quote makes one word of a shell of any text.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// primesBelow counts by a way of its own what the fleet's report must say.
func primesBelow(n int) (count int) {
	composite := make([]bool, n)
	for i := 2; i < n; i++ {
		if composite[i] {
			continue
		}
		count++
		for j := i * i; j < n; j += i {
			composite[j] = true
		}
	}
	return count
}

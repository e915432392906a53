package e2e

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/board"
)

// capsBoard has profiles without and with a capacity, one whose work is reviewed,
// and its reviewer; the caps are those of the default workflow, reserves included.
const capsBoard = `
version: 1
name: NAME
extends: default
params: {reviewer: rev, max_running: RUNNING, max_fleet: 5, lease: 600, failure_limit: 20}
profiles:
  sh: {harness: command, args: [sh, -c, 'PROFILE=sh sh "$MUSTER_BODY"']}
  py: {harness: command, args: [sh, -c, 'PROFILE=py sh "$MUSTER_BODY"'], capacity: 2}
  work: {harness: command, verdict: explicit, args: [sh, -c, 'PROFILE=work sh "$MUSTER_BODY"']}
  rev: {harness: command, args: [sh, -c, 'PROFILE=rev sh "$MUSTER_BODY"']}
`

// capsOfFleet is what may work at a time: machines have 1, 2 and 3 slots.
var capsOfFleet = map[string]int{"machine atlas": 1, "machine borea": 2, "machine cleo": 3, "profile py": 2, "board ops": 3, "fleet": 5}

// plainCards are those of the first cards that wait for room alone: of board
// default, by a profile without capacity.
const plainCards = 14

// capsRun is a round of the test below.
type capsRun struct {
	*fleet
	*ledger
	rng   *rand.Rand
	round int
	cards map[string][]string // by board
	filed int
}

// Invariant 21, CAP-12 to CAP-24, M-13, M-16: three nodes of 1, 2 and 3 slots, two
// boards, 60 cards, profiles with and without capacity, reviews with a reserve. A
// machine is drained in the middle, the fleet paused and resumed, a node stopped
// (SIGSTOP) and continued. Sessions write their start and end into one file: from
// it alone come the maxima, and none is above its cap; each cap was reached, so
// that a checker which expects one less of any of them fails.
func TestThreeNodesKeepTheirCaps(t *testing.T) {
	rng := random(t)
	if *rounds == 0 {
		t.Parallel()
	}
	f := newFleetAt(t, 3, 1, func(i int, m *machine) { m.args = append(m.args, "--slots", fmt.Sprint(i+1)) }, steady...)
	for slug, running := range map[string]string{"default": "null", "ops": "3"} {
		if slug != "default" {
			f.do(f.machines[0], board.VBoardCreate, board.BoardCreate{Slug: slug})
		}
		f.do(f.machines[0], board.VBoardApply, board.BoardApply{Board: slug, YAML: strings.NewReplacer("NAME", slug, "RUNNING", running).Replace(capsBoard)})
	}
	for i := range max(*rounds, 1) {
		r := &capsRun{fleet: f, rng: rng, round: i, cards: map[string][]string{},
			ledger: &ledger{filepath.Join(f.dir, fmt.Sprintf("ledger%d", i)), filepath.Join(f.dir, fmt.Sprintf("gate%d", i))}}
		r.play()
		if t.Failed() {
			return
		}
		t.Logf("round %d: %d cards, %d sessions, at most %v at a time; state %s", i+1, r.filed, startsOn(r.read(), ""), maxima(r.read()), f.sameState())
	}
}

func (r *capsRun) play() {
	r.fill()
	phases := []func(){r.drained, r.paused, r.stopped}
	r.rng.Shuffle(len(phases), func(i, j int) { phases[i], phases[j] = phases[j], phases[i] })
	for _, phase := range phases {
		r.file(10)
		phase()
	}
	for _, ids := range r.cards {
		r.await(r.machines[0], "done", ids...)
	}
	r.judge()
}

// judge holds the ledger against the caps, and the checker against itself.
func (r *capsRun) judge() {
	list := r.read()
	for _, w := range checkCaps(list, capsOfFleet) {
		r.t.Error(w)
	}
	for _, place := range slices.Sorted(maps.Keys(capsOfFleet)) {
		less := maps.Clone(capsOfFleet)
		less[place]--
		if len(checkCaps(list, less)) == 0 {
			r.t.Errorf("%s: nobody would see a cap of %d exceeded: %d worked at a time", place, less[place], maxima(list)[place])
		}
	}
	begun := 0
	for _, e := range list {
		if e.role == "reviewer" {
			break
		}
		if e.kind == "start" && e.profile == "sh" && e.board == "default" {
			begun++
		}
	}
	if begun >= plainCards { // reviews come last in the order: only what is kept for them lets one start before these
		r.t.Errorf("no review began before all of %d cards that nothing but room holds had begun: no place was kept for it", plainCards)
	}
}

// file files cards on both boards, at every node: those of ops come first.
func (r *capsRun) file(n int) {
	for i := range n {
		slug := []string{"ops", "default"}[i%2]
		who := [][]string{{"py", "py", "work", "sh"}, {"sh", "sh", "work", "py"}}[i%2][i/2%4]
		r.fileOne(slug, who, r.machines[i%3], int64(1-i%2))
	}
}

func (r *capsRun) fileOne(slug, who string, m *machine, priority int64) {
	title, body := fmt.Sprintf("round %d card %d", r.round, r.filed), r.script()
	a := board.CardAdd{Board: slug, CardFields: board.CardFields{Title: &title, Body: &body, Assignee: &who, Priority: &priority}}
	r.cards[slug] = append(r.cards[slug], r.do(m, board.VCardAdd, a)["id"].(string))
	r.filed++
}

// full waits until so many work at each place.
func (r *capsRun) full(want map[string]int) {
	r.t.Helper()
	r.eventually(60*time.Second, fmt.Sprintf("working: %v", want), func() (bool, string) {
		now := live(r.read())
		for place, n := range want {
			if now[place] != n {
				return false, fmt.Sprint(now)
			}
		}
		return true, ""
	})
}

// ends waits for n more ends on other machines than one.
func (r *capsRun) ends(n int, but string) {
	r.t.Helper()
	before := endsBut(r.read(), but)
	r.eventually(60*time.Second, fmt.Sprintf("%d sessions further", n), func() (bool, string) {
		now := endsBut(r.read(), but)
		return now >= before+n, fmt.Sprintf("%d ended, of %d cards", now-before, r.filed)
	})
}

func (r *capsRun) cli(args ...string) {
	r.t.Helper()
	if out, errs, code := r.machines[0].run(args...); code != 0 {
		r.t.Fatalf("muster %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
}

// fill reaches every cap but cleo's, with the gate closed.
func (r *capsRun) fill() {
	r.cli("node", "drain", "cleo", "--why", "it comes later")
	r.cli("pause", "--why", "cards are being filed") // all of them are there when the first round begins
	r.file(24)
	for i := range plainCards - 6 {
		r.fileOne("default", "sh", r.machines[i%3], 0)
	}
	r.cli("resume")
	r.full(map[string]int{"machine atlas": 1, "machine borea": 2, "profile py": 2, "board ops": 3})
	r.cli("node", "undrain", "cleo")
	r.full(map[string]int{"fleet": 5})
	r.letEnd(r.t)
	r.ends(8, "")
}

// drained: a machine that drains finishes what it runs and takes nothing; the
// others are filled to their last slot; then it takes work again.
func (r *capsRun) drained() {
	r.cli("node", "drain", "borea", "--wait", "--timeout", "60s", "--why", "new memory")
	before := startsOn(r.read(), "borea")
	r.hold(r.t)
	r.full(map[string]int{"machine atlas": 1, "machine cleo": 3, "machine borea": 0})
	r.letEnd(r.t)
	r.ends(4, "borea")
	if n := startsOn(r.read(), "borea"); n != before {
		r.t.Errorf("%d sessions began on borea while it drained", n-before)
	}
	r.cli("node", "undrain", "borea")
	r.file(4)
	r.eventually(60*time.Second, "working on borea again", func() (bool, string) { return startsOn(r.read(), "borea") > before, "" })
}

// paused: what runs ends, and nothing begins until the fleet is resumed.
func (r *capsRun) paused() {
	r.cli("pause", "--why", "the network is rebuilt")
	r.eventually(60*time.Second, "idle", func() (bool, string) {
		list, err := r.machines[1].cards()
		for _, c := range list {
			if c.Run != nil {
				return false, c.ID + " has a run"
			}
		}
		return err == nil, fmt.Sprint(err)
	})
	before := startsOn(r.read(), "")
	r.file(2)
	last := r.cards["default"][len(r.cards["default"])-1]
	r.eventually(20*time.Second, "held by the pause", func() (bool, string) {
		why := r.whyNot(r.machines[2], last)
		return strings.Contains(why, "the network is rebuilt"), why
	})
	if n := startsOn(r.read(), ""); n != before {
		r.t.Errorf("%d sessions began while the fleet was paused", n-before)
	}
	r.cli("resume")
	r.ends(4, "")
}

// stopped: a node that hangs slows nobody; what it was given waits for it, and
// keeps its places in the caps of profile, board and fleet meanwhile.
func (r *capsRun) stopped() {
	victim := r.other(r.leader(), r.machines[0]) // requests go through the first
	for i := range 8 {                           // whatever it holds, these can go on
		r.fileOne("default", "sh", r.machines[i%3], 0)
	}
	victim.signal(syscall.SIGSTOP)
	r.ends(8, victim.name)
	victim.signal(syscall.SIGCONT)
	r.allOnline(r.machines[0])
}

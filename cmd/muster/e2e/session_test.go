package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

// beating is a session that writes down its start, beats until a gate opens,
// and writes down its end. Each beat is a line of its log, too.
//
//	DIR/start.RUN       made once, at the start
//	DIR/starts          one line per start: card run pid node
//	DIR/beat.RUN        one line a beat; its time of change is that of the last beat
//	DIR/ends            one line per end: card run
const beating = `: > DIR/start.$MUSTER_RUN
echo "$MUSTER_CARD $MUSTER_RUN $$ $MUSTER_NODE" >> DIR/starts
i=0
while [ ! -e DIR/GATE ]; do
  echo $i >> DIR/beat.$MUSTER_RUN
  echo "beat $i"
  i=$((i+1))
  sleep 0.1
done
echo "$i beats, the end"
echo "$MUSTER_CARD $MUSTER_RUN" >> DIR/ends
exit CODE
`

// stage is a folder in which sessions leave their traces.
type stage struct {
	f   *fleet
	dir string
}

func (f *fleet) stage(name string) *stage {
	f.t.Helper()
	dir := filepath.Join(f.dir, "stage-"+name)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		f.t.Fatal(err)
	}
	return &stage{f, dir}
}

func (s *stage) script(gate string, code int) string {
	return strings.NewReplacer("DIR", s.dir, "GATE", gate, "CODE", strconv.Itoa(code)).Replace(beating)
}

// open lets the sessions that wait at a gate go on to their end.
func (s *stage) open(gate string) {
	if err := os.WriteFile(filepath.Join(s.dir, gate), nil, 0o600); err != nil {
		s.f.t.Fatal(err)
	}
}

// began is a session's own word that it runs.
type began struct {
	card, run, node string
	pid             int
}

// starts are all sessions that ever began here, in order.
func (s *stage) starts() []began {
	b, _ := os.ReadFile(filepath.Join(s.dir, "starts"))
	var list []began
	for line := range strings.Lines(string(b)) {
		w := strings.Fields(line)
		if len(w) != 4 {
			continue // being written
		}
		pid, _ := strconv.Atoi(w[2])
		list = append(list, began{w[0], w[1], w[3], pid})
	}
	return list
}

// of is the sessions of one card.
func (s *stage) of(card string) (list []began) {
	for _, x := range s.starts() {
		if x.card == card {
			list = append(list, x)
		}
	}
	return list
}

// lastBeat is when a run last beat.
func (s *stage) lastBeat(run string) time.Time {
	st, err := os.Stat(filepath.Join(s.dir, "beat."+run))
	if err != nil {
		return time.Time{}
	}
	return st.ModTime()
}

// ended counts the ends that a card's sessions wrote down.
func (s *stage) ended(card string) (n int) {
	b, _ := os.ReadFile(filepath.Join(s.dir, "ends"))
	for line := range strings.Lines(string(b)) {
		if strings.HasPrefix(line, card+" ") {
			n++
		}
	}
	return n
}

// awaitStarts waits until each of the cards has had n sessions that beat, and
// their nodes know of it (the run has its pid).
func (s *stage) awaitStarts(m *machine, n int, cards ...string) {
	s.f.t.Helper()
	s.f.eventually(60*time.Second, fmt.Sprintf("started %d times each", n), func() (bool, string) {
		for _, id := range cards {
			if got := s.of(id); len(got) < n || s.lastBeat(got[n-1].run).IsZero() {
				return false, fmt.Sprintf("card %s has %d sessions: %s", id, len(got), s.f.whyNot(m, id))
			}
			runs, err := m.runs(id)
			if err != nil || len(runs) < n || newest(runs).PID == 0 {
				return false, fmt.Sprintf("card %s: %d runs (%v)", id, len(runs), err)
			}
		}
		return true, ""
	})
}

// whyNot is what the fleet says about a card, for the words of a failure.
func (f *fleet) whyNot(m *machine, id string) string {
	a, err := m.api.Get(context.Background(), "/v1/cards/"+id+"/why", nil)
	if err != nil {
		return err.Error()
	}
	return string(a.Data)
}

func newest(runs []api.Run) api.Run {
	last := runs[0]
	for _, r := range runs {
		if r.StartedAt.After(last.StartedAt) {
			last = r
		}
	}
	return last
}

// death is when a process was seen to be gone.
type death struct {
	pid int
	at  chan time.Time
}

// watch waits for the end of a process that is not a child of this one.
func watch(t *testing.T, pid int) *death {
	t.Helper()
	d, err := watchFor(pid)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func watchFor(pid int) (*death, error) {
	d := &death{pid: pid, at: make(chan time.Time, 1)}
	ended, err := endOf(pid)
	if err != nil {
		return nil, fmt.Errorf("process %d: %w", pid, err)
	}
	go func() {
		ended()
		d.at <- time.Now()
	}()
	return d, nil
}

// wait is the moment of the death.
func (d *death) wait(t *testing.T, limit time.Duration) time.Time {
	t.Helper()
	select {
	case at := <-d.at:
		d.at <- at
		return at
	case <-time.After(max(limit, patience)):
		t.Fatalf("process %d still lives after %s", d.pid, max(limit, patience))
		return time.Time{}
	}
}

// alive tells whether a process lives and is no zombie.
func alive(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return false
	}
	i := strings.LastIndexByte(string(b), ')')
	return i > 0 && i+2 < len(b) && b[i+2] != 'Z' && b[i+2] != 'X'
}

// startOf is when a session began: the first thing it does is to make a file.
func (s *stage) startOf(t *testing.T, x began) time.Time {
	t.Helper()
	st, err := os.Stat(filepath.Join(s.dir, "start."+x.run))
	if err != nil {
		t.Fatal(err)
	}
	return st.ModTime()
}

// neverTwo checks invariant 2 by what the sessions themselves wrote: at most one
// process per run, and of one card none began before the one before had beaten last.
func (s *stage) neverTwo() {
	s.f.t.Helper()
	runs := map[string]int{}
	before := map[string]began{}
	for _, x := range s.starts() {
		if runs[x.run]++; runs[x.run] > 1 {
			s.f.t.Errorf("run %s was started %d times", x.run, runs[x.run])
		}
		if old, ok := before[x.card]; ok && alive(old.pid) {
			s.f.t.Errorf("run %s lives beside run %s", old.run, x.run)
		}
		before[x.card] = x
	}
}

// shortLease is the lease in seconds of the tests that let one run out: as short
// as a machine far too busy still holds by its contacts.
const shortLease = "8"

// workflow applies the test board: a lease in seconds (or null) and a short
// patience between TERM and KILL, so that a short lease is not all patience. A
// session that a lease ends counts as a failure of its card: many are allowed.
func (f *fleet) workflow(lease string) {
	f.t.Helper()
	yaml := strings.Replace(shell, "LEASE", lease+", failure_limit: 20", 1) + `
statuses:
  running:
    run: {limits: {kill: 0.5}}
`
	f.do(f.machines[0], board.VBoardApply, board.BoardApply{Board: "default", YAML: yaml})
}

// on pins a card to a machine.
func on(m *machine) func(*board.CardAdd) {
	return func(a *board.CardAdd) { a.Machine = &m.name }
}

// status waits until cards are in a status.
func (f *fleet) await(m *machine, status string, cards ...string) {
	f.t.Helper()
	f.awaitWithin(60*time.Second, m, status, cards...)
}

func (f *fleet) awaitWithin(d time.Duration, m *machine, status string, cards ...string) {
	f.t.Helper()
	f.eventually(d, status, func() (bool, string) {
		for _, id := range cards {
			c, err := m.card(id)
			if err != nil {
				return false, err.Error()
			}
			if c.Status != status {
				return false, fmt.Sprintf("card %s is %s: %s", id, c.Status, f.whyNot(m, id))
			}
		}
		return true, ""
	})
}

// log reads a whole run's log through a machine.
func (m *machine) log(run string) (string, error) {
	var all []byte
	from := int64(0)
	for {
		q := map[string][]string{"from": {strconv.FormatInt(from, 10)}}
		c, err := api.Decode[api.LogChunk](m.api.Get(context.Background(), "/v1/runs/"+run+"/log", q))
		if err != nil {
			return "", err
		}
		all, from = append(all, c.Chunk...), c.Next
		if c.EOF || len(c.Chunk) == 0 {
			return string(all), nil
		}
	}
}

func (f *fleet) other(not ...*machine) *machine {
	for _, m := range f.machines {
		skip := false
		for _, x := range not {
			skip = skip || x == m
		}
		if !skip {
			return m
		}
	}
	return nil
}

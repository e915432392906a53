package e2e

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/launcher"
)

// Invariants 3, 4 and 17: a leader is stopped in the middle of its work and goes
// on later (6 s; 30 s in the long form). Others lead meanwhile; what it had
// under way has no effect beyond what its callers got done elsewhere under the
// same ids, and no session notices anything.
func TestLeaderStopped(t *testing.T) {
	t.Parallel()
	pause := 6 * time.Second
	if *rounds > 0 {
		pause = 30 * time.Second
	}
	f := newFleet(t, 3, 6)
	f.workflow("600")
	old := f.leader()
	s := f.stage("leader")
	var held []string
	for i := range 6 {
		held = append(held, f.add(old, fmt.Sprintf("held %d", i), s.script("gate", 0), nil))
	}
	s.awaitStarts(old, 1, held...)

	const n = 24
	ids := make([]string, n)
	half := make(chan struct{})
	var wg, some sync.WaitGroup
	some.Add(n / 2)
	for i := range n {
		id := f.mint(old)
		wg.Go(func() {
			if i >= n/2 {
				<-half // the second half comes while the leader stands
			}
			ids[i] = f.givenUp(old, id, cardAdd(fmt.Sprintf("under way %d", i), "true", nil))
		})
		if i < n/2 {
			go some.Done()
		}
	}
	some.Wait()
	stopped := time.Now()
	old.signal(syscall.SIGSTOP)
	close(half)
	next := f.leader()
	t.Logf("%s led, is stopped; %s leads after %s", old.name, next.name, time.Since(stopped).Round(time.Millisecond))
	wg.Wait()
	waitUntil(stopped.Add(pause))
	old.signal(syscall.SIGCONT)
	f.allOnline(next)

	s.open("gate")
	f.await(next, "done", append(ids, held...)...)
	for _, id := range held {
		if len(s.of(id)) != 1 || s.ended(id) != 1 {
			t.Errorf("card %s: %d starts, %d ends: a change of leader is calm", id, len(s.of(id)), s.ended(id))
		}
	}
	f.eachOnce(next, "under way ", ids)
	s.neverTwo()
	t.Log("state", f.sameState())
}

// givenUp asks a machine and gives up after a second; what it does not know then
// it asks elsewhere, under the same id.
func (f *fleet) givenUp(m *machine, id string, a board.CardAdd) string {
	impatient := &api.Client{Socket: m.api.Socket, Timeout: 20 * time.Second}
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	ans, err := api.Decode[struct{ ID string }](impatient.Do(ctx, board.VCardAdd, a, id, false))
	if err == nil {
		return ans.ID
	}
	data, err := f.tryFrom(f.other(m), board.VCardAdd, a, id, true)
	if err != nil {
		f.t.Errorf("%s elsewhere: %v", id, err)
		return ""
	}
	return data["id"].(string)
}

// eachOnce checks that the cards with a title of this beginning are those that
// were acknowledged, each there once (invariant 4).
func (f *fleet) eachOnce(m *machine, prefix string, ids []string) {
	f.t.Helper()
	list, err := m.cards()
	if err != nil {
		f.t.Fatal(err)
	}
	titles, there := map[string]int{}, map[string]bool{}
	for _, c := range list {
		if strings.HasPrefix(c.Title, prefix) {
			titles[c.Title]++
			there[c.ID] = true
		}
	}
	for title, n := range titles {
		if n != 1 {
			f.t.Errorf("%q is there %d times", title, n)
		}
	}
	for _, id := range ids {
		if !there[id] {
			f.t.Errorf("acknowledged card %q is not there", id)
		}
	}
	if len(titles) != len(ids) {
		f.t.Errorf("%d cards %q, %d were acknowledged", len(titles), prefix, len(ids))
	}
}

// allOnline waits until the leader has heard all machines.
func (f *fleet) allOnline(m *machine) {
	f.t.Helper()
	f.eventually(30*time.Second, "online", func() (bool, string) { return f.states(m, "online") })
}

func (f *fleet) states(m *machine, want string, names ...string) (bool, string) {
	st, err := m.status()
	if err != nil {
		return false, err.Error()
	}
	for _, n := range st.Nodes {
		if (len(names) == 0 || strings.Contains(strings.Join(names, " "), n.Name)) && n.State != want {
			return false, n.Name + " is " + n.State
		}
	}
	return true, ""
}

// M-35, M-11: without a lease nothing ends a session but its machine's word or a
// person's. Its node killed, the session goes on, its card waits and says for
// what; taking the run away is refused, unless somebody answers for it.
func TestWithoutLease(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, 4, steady...)
	f.workflow("null")
	lead := f.leader()
	victim := f.other(lead)
	s := f.stage("no-lease")
	all, losses := f.sessionsOn(t, s, victim, lead, 6)
	victim.kill()
	f.eventually(30*time.Second, "offline", func() (bool, string) { return f.states(lead, "offline", victim.name) })
	var card string
	for id := range losses {
		card = id
	}
	first := losses[card]

	why, _, code := lead.run("why", card)
	if code != 0 || !strings.Contains(why, victim.name) || !strings.Contains(why, "offline") || !strings.Contains(why, first.run) {
		t.Errorf("why (exit %d) does not name what is waited for:\n%s", code, why)
	}
	out, words, code := lead.run("reclaim", card)
	if code != 1 || !strings.Contains(words, victim.name) || !strings.Contains(words, "--force") {
		t.Errorf("reclaim without force: exit %d, %q %q; want a refusal that names the machine and --force", code, out, words)
	}
	if _, words, code := lead.run("reclaim", card, "--force"); code != 2 {
		t.Errorf("reclaim --force without why: exit %d, %q; want a usage error", code, words)
	}
	if !alive(first.began.pid) || len(s.of(card)) != 1 {
		t.Fatalf("the refused reclaim did something: %v", s.of(card))
	}

	// The machine is found dead: with it the session. A person says so.
	f.killRun(t, victim, first.began)
	first.wait(t, 10*time.Second)
	if out, words, code := lead.run("reclaim", card, "--force", "--why", "pulled its plug"); code != 0 {
		t.Fatalf("reclaim --force --why: exit %d, %q %q", code, out, words)
	}
	f.movesOver(t, s, lead, map[string]lost{card: first})
	for id := range losses {
		if id != card && len(s.of(id)) != 1 {
			t.Errorf("card %s began again, nobody has spoken for it", id)
		}
	}
	victim.start() // the others end there, and are reported
	f.onceDone(t, s, lead, all)
	t.Log("state", f.sameState())
}

// killRun ends a session with its keeper, as the end of its machine would.
func (f *fleet) killRun(t *testing.T, m *machine, x began) {
	t.Helper()
	p, err := launcher.ReadProc(filepath.Join(m.data, "runs", x.run))
	if err != nil {
		t.Fatal(err)
	}
	for _, pid := range []int{p.Keeper, p.PID, x.pid} {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

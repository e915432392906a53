package node

import (
	"strings"
	"testing"
	"time"

	"muster/board"
)

// A later era is taken when no leader has answered for the whole wait, in which it was heard of again and again: not while
// contacts are answered, and not by a process that was frozen meanwhile.
func TestLaterEra(t *testing.T) {
	const wait = 2 * time.Minute
	start := time.Now()
	for name, tc := range map[string]struct {
		every, frozen time.Duration // between two greetings, and once after a minute
		contact       time.Duration // between two answers; 0: none comes
		want          time.Duration // after which it is over; 0: never
	}{
		"no leader":           {every: time.Second, want: wait},
		"a leader answers":    {every: time.Second, contact: 5 * time.Second},
		"frozen meanwhile":    {every: time.Second, frozen: wait, want: time.Minute + 2*wait},
		"heard of seldom":     {every: time.Minute},
		"leader answers late": {every: time.Second, contact: wait - time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var e laterEra
			var got, last time.Duration
			frozen := tc.frozen
			for at := time.Duration(0); at < 10*time.Minute; at += tc.every {
				if at == time.Minute {
					at, frozen = at+frozen, 0
				}
				if tc.contact > 0 && at-last >= tc.contact {
					e.answered()
					last = at
				}
				if e.heard(start.Add(at), wait) {
					got = at
					break
				}
			}
			if got != tc.want {
				t.Errorf("over after %v, want %v", got, tc.want)
			}
		})
	}
}

// A recover on one replica's folder beside a fleet that works takes nothing over: it is refused with an alarm that names it,
// and comes back by a person's word.
func TestRecoverBesideALiveFleet(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	b := a.joined(t, "borea", func(c *Config) { c.Replica = true })
	a.until(t, "borea is heard of", func() bool { return a.lease.State(string(b.ident.ID)).State == board.NodeOnline })
	b.until(t, "borea knows atlas", func() bool {
		b.memMu.Lock()
		defer b.memMu.Unlock()
		return len(b.mem.Peers) == 1
	})
	b.Close()
	if _, err := Recover(t.Context(), RecoverOptions{Data: b.cfg.Data, By: "ann", Why: "a mistake"}); err != nil {
		t.Fatal(err)
	}
	card := a.testAdd(t, "acknowledged", "true")
	b = reopen(t, b)
	b.hello()
	a.until(t, "atlas tells of borea", func() bool {
		return a.over.Load() || strings.Contains(strings.Join(a.ownAlarms(), "\n"), "borea was recovered into era 2")
	})
	if a.over.Load() {
		t.Fatal("atlas gave up its state while it led")
	}
	b.Close()
	if err := Follow(b.cfg.Data, "ann", "it was a mistake"); err != nil {
		t.Fatal(err)
	}
	b = reopen(t, b)
	b.until(t, "borea has what atlas acknowledged, in its era", func() (there bool) {
		_ = b.store.View(func(v board.View) error { there = board.GetCard(v, card) != nil; return nil })
		return there && strings.HasPrefix(b.greeting(), "1-")
	})
	if err := Follow(t.TempDir(), "ann", ""); board.CodeOf(err) != board.Refused {
		t.Errorf("a folder of no node: %v", err)
	}
}

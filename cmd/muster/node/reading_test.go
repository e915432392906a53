package node

import (
	"os"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster/board"
	"muster/cmd/muster/api"
)

// The offset of a clock is taken from the middle of a contact; an answer that took too long says nothing.
func TestClockOff(t *testing.T) {
	at := time.UnixMilli(1_000_000)
	for _, tc := range []struct {
		way, ahead time.Duration
		ok         bool
	}{{0, 0, true}, {time.Second, 0, true}, {100 * time.Millisecond, time.Hour, true}, {time.Second, -7 * time.Second, true}, {3 * time.Second, 0, false}, {-time.Second, 0, false}} {
		off, ok := clockOff(at, at.Add(tc.way), at.Add(tc.way/2-tc.ahead).UnixMilli())
		if ok != tc.ok || ok && off != tc.ahead {
			t.Errorf("%s under way, %s ahead: %s, %v", tc.way, tc.ahead, off, ok)
		}
	}
}

// M-02, architecture.md §2: every machine tells of its own clock and disk, and `status` says which one is wrong, asked
// at any node: here a replica whose clock is two minutes ahead and whose disk is nearly full.
func TestAlarmsNameTheMachine(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	tok, terr := backend{a}.NewToken(t.Context(), board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(a.ident.ID)}, api.TokenOptions{Role: "node", TTL: 600})
	if terr != nil {
		t.Fatal(terr)
	}
	cfg := testConfig(t, "borea")
	cfg.Token, cfg.Replica = tok.Token, true
	cfg.Wall = func() time.Time { return time.Now().Add(2 * time.Minute) }
	b := open(t, cfg)
	b.space.mu.Lock()
	b.space.look, b.space.at = func() (int64, error) { return 5 << 20, nil }, time.Time{}
	b.space.mu.Unlock()
	for _, n := range []*Node{a, b} {
		user, _ := n.sockets()
		cl := &api.Client{Socket: user}
		alarms := ""
		for end := time.Now().Add(20 * time.Second); ; {
			s, err := api.Decode[api.Status](cl.Get(t.Context(), "/v1/status", nil))
			if err != nil {
				t.Fatal(err)
			}
			alarms = strings.Join(s.Alarms, "\n")
			if strings.Contains(alarms, "CLOCK: the clock of borea is 2m0s ahead of board time") && strings.Contains(alarms, "NOSPACE: 5 MB are left on borea") {
				break
			}
			if time.Now().After(end) {
				t.Fatalf("%s shows %q", n.cfg.Name, alarms)
			}
			b.pokeContact()
			<-time.After(20 * time.Millisecond)
		}
		if strings.Contains(alarms, "atlas") {
			t.Errorf("atlas is blamed: %s", alarms)
		}
	}
	title := "not on a full disk"
	at := "borea"
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	card := a.testDo(t, board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title, Machine: &at, Assignee: &[]string{"sh"}[0]}})["id"].(string)
	w, err := a.why(card)
	if err != nil {
		t.Fatal(err)
	}
	if text := toJSON(t, w); !strings.Contains(text, "NOSPACE: its disk is nearly full") {
		t.Errorf("why says %s", text)
	}
}

// M-31: a node without a leader concludes nothing of the others, and knows that it is here itself.
func TestWithoutALeaderANodeKnowsItself(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	tok, terr := backend{a}.NewToken(t.Context(), board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(a.ident.ID)}, api.TokenOptions{Role: "node", TTL: 600})
	if terr != nil {
		t.Fatal(terr)
	}
	cfg := testConfig(t, "borea")
	cfg.Token, cfg.Replica = tok.Token, true
	b := open(t, cfg)
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	r := backend{b}.Readings(t.Context())
	if r.Live || len(r.Nodes) != 1 || r.Nodes[string(b.ident.ID)].State != board.NodeOnline {
		t.Fatalf("without a leader: live %v, %+v", r.Live, r.Nodes)
	}
}

// MEM-01, M-15: available memory is graded, by share and by amount: the worse counts.
func TestPressure(t *testing.T) {
	for _, x := range []struct {
		free, total int64
		want        string
	}{
		{9_999, 100_000, "critical"}, {10_000, 100_000, "elevated"}, {19_999, 100_000, "elevated"}, {20_000, 100_000, "normal"},
		{511, 1_000, "critical"}, {512, 1_000, "elevated"}, {1_023, 2_000, "elevated"}, {1_024, 2_000, "normal"},
	} {
		if got := pressure(x.free, x.total); got != x.want {
			t.Errorf("%d of %d MB are %s, want %s", x.free, x.total, got, x.want)
		}
	}
}

// Slots are what was asked for, else by memory: 512 MB each, 2 to 8.
func TestSlots(t *testing.T) {
	for mb, want := range map[int64]int64{0: 2, 700: 2, 1024: 2, 1536: 3, 2047: 3, 4096: 8, 1 << 20: 8} {
		if got := slotsFor(mb); got != want {
			t.Errorf("%d MB are %d slots, want %d", mb, got, want)
		}
	}
	if got := (&Node{cfg: Config{Slots: 40}}).slots(); got != 40 {
		t.Errorf("40 slots were asked for: %d", got)
	}
}

// M-16: the file ESTOP is told with whose it is, since when, and why; whatever it is, nobody waits for it.
func TestEstopIsTold(t *testing.T) {
	n := &Node{cfg: Config{Data: t.TempDir()}}
	var r board.Reading
	if n.estop(&r); r.Estop {
		t.Fatalf("without the file: %+v", r)
	}
	if err := os.WriteFile(n.estopPath(), []byte("the fan is loud\nand more\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	hour := time.Now().Add(-time.Hour)
	if err := os.Chtimes(n.estopPath(), hour, hour); err != nil {
		t.Fatal(err)
	}
	if n.estop(&r); !r.Estop || r.EstopBy == "" || r.EstopWhy != "the fan is loud" || r.EstopMS < 3600_000 {
		t.Fatalf("%+v", r)
	}
	if err := os.Remove(n.estopPath()); err != nil {
		t.Fatal(err)
	}
	if err := unix.Mkfifo(n.estopPath(), 0o600); err != nil {
		t.Fatal(err)
	}
	if n.estop(&r); !r.Estop {
		t.Fatal("a pipe is a file too")
	}
}

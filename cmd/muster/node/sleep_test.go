package node

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/mesh"
)

// Invariant 14, architecture.md §3, §5: a machine that has slept for hours acts on nothing before it has had a fresh
// contact; then it goes on, and nothing runs twice.
func TestAMachineThatSlept(t *testing.T) {
	a := open(t, testConfig(t, "atlas"))
	a.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	tok, terr := backend{a}.NewToken(t.Context(), board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(a.ident.ID)}, api.TokenOptions{Role: "node", TTL: 600})
	if terr != nil {
		t.Fatal(terr)
	}
	var slept atomic.Int64
	cfg := testConfig(t, "borea")
	cfg.Token = tok.Token
	cfg.Boot = func() time.Duration { return mesh.BootClock() + time.Duration(slept.Load()) }
	b := open(t, cfg)
	out := filepath.Join(t.TempDir(), "lines")
	file := func(secs int) string {
		title, who, at := "x", "sh", "borea"
		body := fmt.Sprintf("echo $MUSTER_RUN >> %s; sleep %d", out, secs)
		return a.testDo(t, board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title, Body: &body, Assignee: &who, Machine: &at}})["id"].(string)
	}
	first := file(3)
	a.waitStatus(t, first, "running")
	if ok, why := b.Clock().MayStart(b.now(), 1<<60); !ok {
		t.Fatalf("before it slept: %s", why)
	}
	b.mu.Lock() // no contact is answered while the lid closes
	slept.Store(int64(3 * time.Hour))
	ok, why := b.clock.MayStart(b.now(), 1<<60)
	b.mu.Unlock()
	if ok || !strings.Contains(why, "old") {
		t.Fatalf("after three hours of sleep it may start (%q)", why)
	}
	second := file(0)
	b.pokeContact()
	a.waitStatus(t, first, "done")
	a.waitStatus(t, second, "done")
	got, err := os.ReadFile(out)
	if err != nil || len(strings.Fields(string(got))) != 2 {
		t.Fatalf("the sessions wrote %q (%v), want one line of each card", got, err)
	}
}

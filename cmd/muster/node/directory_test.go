package node

import (
	"bytes"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/directory/directorytest"
)

const orgToken = "a-token-of-acme-only"

// holdOrg writes a machine's file: it can tell a directory at an address.
func holdOrg(t *testing.T, data, address string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Join(data, "secrets"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, "secrets", "acme"), []byte(orgToken), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(data, ownFile), []byte("organisations: {acme: {url: "+address+", credentials: acme}}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
}

// awaitState waits until the state is as wanted.
func awaitState(t *testing.T, n *Node, what string, cond func(v board.View) bool) {
	t.Helper()
	sub := n.store.Subscribe(func(board.Table, string) bool { return true })
	defer sub.Close()
	for end := time.After(patience); ; {
		ok := false
		_ = n.store.View(func(v board.View) error { ok = cond(v); return nil })
		if ok {
			return
		}
		select {
		case <-sub.C:
			sub.Take()
		case <-end:
			t.Fatalf("not within %s: %s", patience, what)
		}
	}
}

func nothingWaits(v board.View) bool {
	none := board.GetFleet(v).AgentSweep == ""
	board.EachHand(v, "acme", func(*board.Hand) bool { none = false; return false })
	return none
}

func toldTo(t *testing.T, n *Node) {
	t.Helper()
	awaitState(t, n, "all is told", nothingWaits)
}

// fleetOfAcme is one machine whose agents are those of an organisation with a directory.
func fleetOfAcme(t *testing.T) (*Node, *directorytest.Server) {
	t.Helper()
	dir := directorytest.New(orgToken)
	srv := httptest.NewServer(dir)
	t.Cleanup(srv.Close)
	cfg := testConfig(t, "atlas")
	cfg.handWait = func(int64) time.Duration { return 5 * time.Millisecond }
	holdOrg(t, cfg.Data, srv.URL)
	n := open(t, cfg)
	n.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	n.testDo(t, board.VPause, board.Pause{Why: "agents are declared by hand"})
	held := func(v board.View) bool { x := board.GetNode(v, string(n.ident.ID)); return x != nil && len(x.Orgs) > 0 }
	awaitState(t, n, "the machine says what it holds", held)
	return n, dir
}

func (n *Node) testAgent(t *testing.T, title string) string {
	t.Helper()
	return n.testDo(t, board.VAgentDeclare, board.AgentDeclare{Card: n.testAdd(t, title, "")})["id"].(string)
}

// once holds that each word took effect once, that parents came before children and declarations before their ends, and that no two calls were under way.
func once(t *testing.T, n *Node, dir *directorytest.Server, want int) {
	t.Helper()
	log := dir.Log()
	at := map[string]int{}
	for i, l := range log {
		if at[l] != 0 {
			t.Errorf("%s took effect twice", l)
		}
		at[l] = i + 1
	}
	_ = n.store.View(func(v board.View) error {
		board.EachAgent(v, func(a *board.Agent) bool {
			d, p, e := at["declare "+a.ID], at["declare "+a.Parent], at["end "+a.ID]
			if d == 0 || a.Declared == 0 || a.Parent != "" && p > d || e != 0 && e < d || (a.Ended != 0) != (e != 0) {
				t.Errorf("%s: declared %d, its parent %d, ended %d of %v", a.StableKey(), d, p, e, log)
			}
			return true
		})
		return nil
	})
	if len(log) != want || len(dir.Wrong()) != 0 {
		t.Errorf("%d words took effect, want %d: %v; wrong: %v", len(log), want, log, dir.Wrong())
	}
}

// AGT-18, AGT-22, M-28: agents of before the organisation was known are declared and ended once, in order; the machine's credentials
// are nowhere in the state.
func TestDirectoryIsToldOfAll(t *testing.T) {
	n, dir := fleetOfAcme(t)
	for i := range 3 {
		n.testAgent(t, fmt.Sprint("card ", i))
	}
	n.testDo(t, board.VAgentEnd, board.AgentEnd{Agent: n.testAgent(t, "ended"), Why: "enough"})
	if dir.Calls() != 0 {
		t.Errorf("a fleet of its own tells somebody: %v", dir.Log())
	}
	n.testDo(t, board.VOrgSet, board.OrgSet{Org: "acme"})
	toldTo(t, n)
	n.testDo(t, board.VAgentEnd, board.AgentEnd{Agent: n.testAgent(t, "later")})
	toldTo(t, n)
	once(t, n, dir, 2+5+2)
	_ = n.store.View(func(v board.View) error {
		for tab := board.Table(1); int(tab) <= board.Tables; tab++ {
			v.Scan(tab, "", "", func(key string, val []byte) bool {
				if bytes.Contains(val, []byte(orgToken)) {
					t.Errorf("the credentials are in the state: %s %s", tab, key)
				}
				return true
			})
		}
		return nil
	})
}

// AGT-19..21: a directory that is down, that takes a word and does not say so, that refuses one of many, and that forgets: what
// is not told waits and is shown, and in the end each word took effect once.
func TestDirectoryThatFails(t *testing.T) {
	n, dir := fleetOfAcme(t)
	n.testDo(t, board.VOrgSet, board.OrgSet{Org: "acme"})
	org := func(v board.View) *board.Org { return board.GetOrg(v, "acme") }

	dir.Fail(func(string, string) directorytest.Fault { return directorytest.Fault{Status: 503} })
	n.testAgent(t, "while it is down")
	awaitState(t, n, "its failure is shown", func(v board.View) bool {
		o := org(v)
		return o.Failing != 0 && o.Failures > 1 && strings.Contains(o.Error, "503")
	})
	if got := dir.Log(); len(got) != 0 {
		t.Errorf("took effect: %v", got)
	}
	dir.Fail(nil)
	toldTo(t, n)
	awaitState(t, n, "it is well again", func(v board.View) bool { return org(v).Failing == 0 })

	lost := map[string]bool{}
	dir.Fail(func(word, id string) directorytest.Fault { // done, and the answer is lost, once each
		first := !lost[word+id]
		lost[word+id] = true
		return directorytest.Fault{After: first}
	})
	n.testDo(t, board.VAgentEnd, board.AgentEnd{Agent: n.testAgent(t, "answered twice")})
	toldTo(t, n)

	cards := []string{n.testAdd(t, "a", ""), n.testAdd(t, "b", ""), n.testAdd(t, "c", "")}
	bad := "ag-bbbbbbbbbbbbbbbbbbbb"
	dir.Fail(func(_, id string) directorytest.Fault {
		if id == bad {
			return directorytest.Fault{Status: 422}
		}
		return directorytest.Fault{}
	})
	for i, c := range cards {
		id := ""
		if i == 1 {
			id = bad
		}
		n.testDo(t, board.VAgentDeclare, board.AgentDeclare{Card: c, ID: id})
	}
	awaitState(t, n, "all but the one are told", func(v board.View) bool {
		var left []string
		board.EachHand(v, "acme", func(h *board.Hand) bool { left = append(left, h.Agent); return true })
		return slices.Equal(left, []string{bad})
	})
	dir.Fail(nil)
	toldTo(t, n)
	once(t, n, dir, 2+1+2+3)

	dir.Forget(bad)
	n.testDo(t, board.VAgentEnd, board.AgentEnd{Agent: bad})
	toldTo(t, n)
	got := dir.Log()
	if want := []string{"declare " + bad, "end " + bad}; !slices.Equal(got[len(got)-2:], want) || len(dir.Wrong()) != 0 {
		t.Errorf("after it forgot: %v, wrong: %v", got[len(got)-2:], dir.Wrong())
	}
}

// A machine's file that names no directory stops its start, in words.
func TestBadOrganisationIsRefused(t *testing.T) {
	for text, want := range map[string]string{
		"organisations: {acme: {url: http://x.example, credentials: f}}": "organisations: acme: url:",
		"organisations: {local: {}}":                                     `organisations: "local" is no name`,
	} {
		if _, err := parseOwn([]byte(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}

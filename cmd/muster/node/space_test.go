package node

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/raftstore"
)

// setFree lets the disk of a node's data say how much is free, in bytes.
func (n *Node) setFree(free int64) {
	n.space.mu.Lock()
	defer n.space.mu.Unlock()
	n.space.look, n.space.at = func() (int64, error) { return free, nil }, time.Time{}
}

func (n *Node) testAsk(t *testing.T, verb string, args any) board.Result {
	t.Helper()
	b, err := json.Marshal(args)
	if err != nil {
		t.Fatal(err)
	}
	return n.Do(t.Context(), board.Request{ID: n.MintID(), Actor: board.Actor{Kind: board.ActorPerson, Name: "ann", Node: string(n.ident.ID)}, Verb: verb, Args: b})
}

// architecture.md §2: while space is low nothing new is taken, and the alarm is shown; what ends things passes, and
// with space back all is taken again.
func TestNoSpace(t *testing.T) {
	n := open(t, testConfig(t, "atlas"))
	n.testDo(t, board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	n.setFree(spaceLow)
	card := n.testAdd(t, "before", "true")
	n.waitStatus(t, card, "done")
	n.setFree(spaceLow - 1)
	refused := func(verb string, args any) {
		t.Helper()
		if res := n.testAsk(t, verb, args); res.Err == nil || res.Err.Check != checkSpace || !strings.Contains(res.Err.Error(), "63 MB are left on the leader's disk (atlas, ") || !strings.Contains(res.Err.Hint, "free 64 MB there") {
			t.Errorf("%s on a nearly full disk: %+v", verb, res)
		}
	}
	refused(board.VCardAdd, board.CardAdd{})
	refused(board.VCardEdit, board.CardAdd{})
	refused(board.VCardPut, board.CardPut{Card: card})
	refused(board.VCardLink, board.CardLink{})
	refused(board.VMove, board.Move{Card: card})
	refused(board.VEvent, board.FireEvent{Card: card, Event: "comment", Payload: map[string]any{"text": "x"}})
	refused(board.VSend, board.Send{To: card, Text: "x"})
	refused(board.VSubscribe, board.Subscribe{Card: card})
	refused(board.VWebhook, board.WebhookSet{Board: "default"})
	refused(board.VBoardSet, board.BoardSet{Board: "default"})
	refused(board.VBoardApply, board.BoardApply{Board: "default", YAML: shell})
	refused(board.VBoardCreate, board.BoardCreate{})
	refused(board.VStart, board.Start{Card: card})
	refused(board.VTokenCreate, board.TokenCreate{})
	refused(board.VImportSlice, board.ImportSlice{})
	for verb, args := range map[string]any{
		board.VEvent:       board.FireEvent{Card: card, Event: "archive"},
		board.VSubscribe:   board.Subscribe{Card: card, Off: true},
		board.VWebhook:     board.WebhookSet{Board: "default", Off: true},
		board.VCardUnlink:  board.CardLink{},
		board.VPause:       board.Pause{Why: "the disk is full"},
		board.VForget:      board.Forget{Card: card},
		board.VInboxAck:    board.InboxAck{},
		board.VTokenRevoke: board.TokenRevoke{},
	} {
		if res := n.testAsk(t, verb, args); res.Err != nil && res.Err.Check == checkSpace {
			t.Errorf("%s was refused: %v", verb, res.Err)
		}
	}
	if r := (backend{n}).Readings(t.Context()).Nodes[string(n.ident.ID)]; !r.NoSpace || r.DiskMB != (spaceLow-1)>>20 {
		t.Fatalf("its reading is %+v, want NOSPACE", r)
	}
	n.setFree(spaceLow)
	title := "after"
	if res := n.testAsk(t, board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title}}); res.Err != nil {
		t.Fatalf("with space again: %v", res.Err)
	}
}

// What is new is stored by a majority: where too many voters have no room it is refused, with their names.
func TestNoSpaceOfTheVoters(t *testing.T) {
	n := open(t, testConfig(t, "atlas"))
	servers := func() []raftstore.Server {
		return []raftstore.Server{{Node: "a", Voter: true}, {Node: "b", Voter: true}, {Node: "c", Voter: true}, {Node: "d"}, {Node: "e"}}
	}
	for want, full := range map[string][]string{
		"":                                       {"b"},
		"7 MB are left on a, 7 MB are left on c": {"a", "c", "d"},
	} {
		n.lease.mu.Lock()
		clear(n.lease.last)
		for _, id := range []string{"a", "b", "c", "d", "e"} {
			n.lease.last[id] = board.Reading{DiskMB: 7, NoSpace: slices.Contains(full, id)}
		}
		n.lease.mu.Unlock()
		if got := n.lease.short(servers); got != want {
			t.Errorf("with %v full: %q, want %q", full, got, want)
		}
	}
	n.lease.mu.Lock()
	n.lease.last[string(n.ident.ID)] = board.Reading{DiskMB: 7, NoSpace: true} // as its last contact said
	n.lease.mu.Unlock()
	if res := n.testAsk(t, board.VTokenCreate, board.TokenCreate{}); res.Err == nil || res.Err.Check != checkSpace || !strings.Contains(res.Err.Error(), "no majority of the voters has room to store it: 7 MB are left on atlas") {
		t.Errorf("it took what no majority has room for: %+v", res)
	}
}

// The ballast holds room that is the node's own, and is given back when the disk is nearly full: what ends things is
// written on it.
func TestBallast(t *testing.T) {
	s := &space{dir: t.TempDir()}
	s.ballast.dir = s.dir
	if s.ballast.held() || s.release() {
		t.Fatal("a ballast that was not taken")
	}
	if err := s.ballast.take(); err != nil || !s.ballast.held() {
		t.Fatalf("taken: %v", err)
	}
	var on syscall.Stat_t
	if err := syscall.Stat(s.ballast.path(), &on); err != nil || on.Blocks*512 < ballastBytes {
		t.Errorf("it holds %d bytes on the disk, want %d (%v)", on.Blocks*512, ballastBytes, err)
	}
	s.look = func() (int64, error) {
		if s.ballast.held() {
			return spaceOut - 1, nil
		}
		return spaceOut - 1 + ballastBytes, nil
	}
	s.at = time.Time{}
	if free, ok := s.left(); !ok || free != spaceOut-1+ballastBytes || s.ballast.held() {
		t.Errorf("nearly full it says %d, %v", free, ok)
	}
	if files, _ := filepath.Glob(filepath.Join(s.dir, "*")); len(files) != 0 {
		t.Errorf("left behind: %v", files)
	}
}

// A node takes its ballast while there is plenty of room, and only then.
func TestBallastIsTaken(t *testing.T) {
	n, err := New(testConfig(t, "atlas"))
	if err != nil {
		t.Fatal(err)
	}
	n.setFree(2*spaceLow - 1)
	if err := n.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	n.keepBallast()
	if n.space.ballast.taking.Load() || n.space.ballast.held() {
		t.Error("taken where there is not plenty")
	}
	n.setFree(2 * spaceLow)
	n.keepBallast()
	n.Close() // what it takes beside is waited for
	if !n.space.ballast.held() {
		t.Error("not taken where there is plenty")
	}
}

// A disk that is full to the last byte does not end a node: it acts no more, answers reads, refuses writes with what to
// do, and asks to be started anew when there is room. Who tells it to stop is heard.
func TestFullDiskAnswersReads(t *testing.T) {
	for _, way := range []string{"room", "stop", "end"} {
		t.Run(way, func(t *testing.T) {
			n := open(t, testConfig(t, "atlas"))
			card := n.testDo(t, board.VCardAdd, map[string]any{"title": "kept"})["id"].(string)
			n.setFree(1 << 20)
			n.fail(&os.PathError{Op: "write", Path: "state.db", Err: syscall.ENOSPC})
			<-n.Done()
			ctx, cancel := context.WithCancel(t.Context())
			over := make(chan struct{})
			go func() { n.AwaitRoom(ctx); close(over) }()

			door := &api.Client{Socket: filepath.Join(n.cfg.Data, "muster.sock")}
			if c, err := api.Decode[api.CardDetail](door.Get(t.Context(), "/v1/cards/"+card, nil)); err != nil || c.Title != "kept" {
				t.Errorf("reading: %+v, %v", c, err)
			}
			if res := n.testAsk(t, board.VPause, board.Pause{Why: "x"}); res.Err == nil || res.Err.Code != board.Unavailable || res.Err.Check != checkSpace || !strings.Contains(res.Err.Error(), "atlas") {
				t.Errorf("writing: %+v", res)
			}
			switch way {
			case "room":
				n.setFree(spaceBack)
			case "stop":
				(backend{n}).Stop(false)
			case "end":
				cancel()
			}
			<-over
			cancel()
			if !slices.ContainsFunc(n.ownAlarms(), func(a string) bool { return strings.Contains(a, "NOSPACE: the disk of atlas is full") }) {
				t.Errorf("its alarms are %q", n.ownAlarms())
			}
			if n.Again() != (way == "room") || n.Err() != nil {
				t.Errorf("after %s: again %v, err %v", way, n.Again(), n.Err())
			}
		})
	}
}

// Any other failure ends the node.
func TestAwaitRoomOfAnotherFailure(t *testing.T) {
	n := open(t, testConfig(t, "atlas"))
	n.fail(errors.New("bad sector"))
	<-n.Done()
	n.AwaitRoom(t.Context())
	if n.Err() == nil || n.Again() {
		t.Errorf("again %v, err %v", n.Again(), n.Err())
	}
}

// A start needs room: a known node waits for it, and says so; a new folder is refused before anything is in it.
func TestRoomToStart(t *testing.T) {
	start := func(cfg Config, free func() int64) (*Node, error) {
		n, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		n.space.look = func() (int64, error) { return free(), nil }
		err = n.Open(t.Context())
		t.Cleanup(func() { n.Close() })
		return n, err
	}
	cfg := testConfig(t, "atlas")
	if _, err := start(cfg, func() int64 { return spaceBack - 1 }); err == nil || !strings.Contains(err.Error(), "NOSPACE: 23 MB are left on the disk of ") || !strings.Contains(err.Error(), "nothing was begun") {
		t.Fatalf("a first start without room: %v", err)
	}
	if _, err := os.Stat(filepath.Join(cfg.Data, "node.key")); err == nil {
		t.Error("something was begun")
	}
	n := open(t, cfg)
	n.Close()
	free, told := int64(spaceBack-1), ""
	cfg.Progress = func(s string) {
		if strings.Contains(s, "NOSPACE") {
			told, free = s, spaceBack
		}
	}
	if _, err := start(cfg, func() int64 { return free }); err != nil || !strings.Contains(told, "it waits for them") {
		t.Errorf("a start that waits: %v; it said %q", err, told)
	}
}

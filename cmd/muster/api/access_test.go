package api_test

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/api/apitest"
)

// TestSocketsAreTheUsers (T6): both sockets are 0600 whatever the umask is.
func TestSocketsAreTheUsers(t *testing.T) {
	dir := folder(t)
	srv, err := apitest.New().Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	for _, name := range []string{"muster.sock", "session.sock"} {
		s, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if s.Mode()&fs.ModeSocket == 0 || s.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", name, s.Mode())
		}
	}
}

// TestStaleSocketIsReplaced: what a killed node left behind does not hinder the next.
func TestStaleSocketIsReplaced(t *testing.T) {
	dir := folder(t)
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: filepath.Join(dir, "muster.sock"), Net: "unix"})
	if err != nil {
		t.Fatal(err)
	}
	l.SetUnlinkOnClose(false)
	l.Close()
	srv, err := apitest.New().Serve(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	c := &api.Client{Socket: filepath.Join(dir, "muster.sock")}
	if _, err := c.Get(t.Context(), "/v1/info", nil); err != nil {
		t.Error(err)
	}
}

// TestLongPath: the address of a unix socket is short, a data folder's path may be long.
func TestLongPath(t *testing.T) {
	dir := filepath.Join(folder(t), strings.Repeat("long/", 40))
	srv, err := apitest.New().Serve(dir)
	if err != nil {
		if strings.Contains(err.Error(), "use a shorter --data folder") {
			return // where the system has no way round, the words are what is promised
		}
		t.Fatal(err)
	}
	defer srv.Close()
	c := &api.Client{Socket: filepath.Join(dir, "muster.sock")}
	if i, err := api.Decode[api.Info](c.Get(t.Context(), "/v1/info", nil)); err != nil || i.Name != "atlas" {
		t.Errorf("%+v, %v", i, err)
	}
}

// TestNoNode: what a person is told when nobody listens.
func TestNoNode(t *testing.T) {
	c := &api.Client{Socket: filepath.Join(folder(t), "muster.sock")}
	_, err := c.Get(t.Context(), "/v1/status", nil)
	if !errors.Is(err, &board.Error{Code: board.Unavailable, Check: "no_node"}) || !strings.Contains(err.Error(), "no muster node is running here") {
		t.Errorf("got %v", err)
	}
	if _, err = c.Do(t.Context(), board.VCardAdd, board.CardAdd{}, "", false); !errors.Is(err, &board.Error{Code: board.Unavailable, Check: "no_node"}) {
		t.Errorf("a write: %v", err)
	}
}

// TestSessionsUseTheirOwnSocket: the user's socket refuses who is in a keeper's tree.
func TestSessionsUseTheirOwnSocket(t *testing.T) {
	dir := folder(t)
	asked := 0
	srv, err := api.Serve(apitest.New(), api.Sockets{User: dir + "/muster.sock", Session: dir + "/session.sock", InKeeperTree: func(pid int) bool { asked = pid; return true }})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	c := &api.Client{Socket: dir + "/muster.sock", Timeout: time.Second}
	_, err = c.Get(t.Context(), "/v1/status", nil)
	if !errors.Is(err, &board.Error{Code: board.Refused}) || !strings.Contains(err.Error(), "MUSTER_SOCKET") {
		t.Errorf("got %v", err)
	}
	if asked != os.Getpid() {
		t.Errorf("asked about pid %d, this is %d", asked, os.Getpid())
	}
}

// TestSessionDoor (invariant 24): a run's secret opens its board's reads, its
// card's events, and the filing of cards; nothing else, and no other secret does.
func TestSessionDoor(t *testing.T) {
	f := apitest.Story()
	user := serve(t, f)
	good := session(user, "d-2.1", "s2")
	for name, x := range map[string]struct {
		c    *api.Client
		path string
		ok   bool
	}{
		"own card":         {good, "/v1/cards/d-2", true},
		"card beside it":   {good, "/v1/cards/d-1", true},
		"own board":        {good, "/v1/boards/default", true},
		"its workflow":     {good, "/v1/boards/default/workflow", true},
		"its cards":        {good, "/v1/cards", true},
		"why":              {good, "/v1/cards/d-3/why", true},
		"runs":             {good, "/v1/cards/d-1/runs", true},
		"events":           {good, "/v1/events", true},
		"other board":      {good, "/v1/boards/web", false},
		"its cards too":    {good, "/v1/cards?board=web", false},
		"other card":       {good, "/v1/cards/w-1", false},
		"why of it":        {good, "/v1/cards/w-1/why", false},
		"runs of it":       {good, "/v1/cards/w-1/runs", false},
		"log of it":        {good, "/v1/runs/w-1.1/log", false},
		"diff":             {good, "/v1/cards/d-1/diff", true},
		"diff of it":       {good, "/v1/cards/w-1/diff", false},
		"other events":     {good, "/v1/events?board=web", false},
		"stream of those":  {good, "/v1/events?board=web&follow=true", false},
		"all boards":       {good, "/v1/boards", false},
		"status":           {good, "/v1/status", false},
		"nodes":            {good, "/v1/nodes", false},
		"tokens":           {good, "/v1/tokens", false},
		"rounds":           {good, "/v1/rounds", false},
		"dry run":          {good, "/v1/dryrun", false},
		"wrong secret":     {session(user, "d-2.1", "s1"), "/v1/cards/d-2", false},
		"other run's":      {session(user, "d-1.1", "s2"), "/v1/cards/d-1", false},
		"run that is over": {session(user, "d-1.1", "s1"), "/v1/cards/d-1", false},
		"no secret":        {session(user, "d-2.1", ""), "/v1/cards/d-2", false},
		"no run":           {&api.Client{Socket: good.Socket}, "/v1/cards/d-2", false},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := x.c.Get(t.Context(), x.path, nil)
			if x.ok && err != nil || !x.ok && !errors.Is(err, &board.Error{Code: board.Refused}) {
				t.Errorf("%s: %v", x.path, err)
			}
		})
	}
	cards, err := api.Decode[[]api.Card](good.Get(t.Context(), "/v1/cards", nil))
	if err != nil || len(cards) != 5 {
		t.Errorf("a session sees %d cards, %v; its board has 5", len(cards), err)
	}
	if l, err := api.Decode[[]api.Event](good.Get(t.Context(), "/v1/events", nil)); err != nil || len(l) == 0 {
		t.Errorf("events: %v, %v", l, err)
	} else {
		for _, e := range l {
			if e.Board != "default" {
				t.Errorf("a session is shown event %s of board %q", e.ID, e.Board)
			}
		}
	}
}

// TestSessionVerbs: what a session may have executed, and that it goes the way of its run's words.
func TestSessionVerbs(t *testing.T) {
	f := apitest.Story()
	user := serve(t, f)
	c := session(user, "d-2.1", "s2")
	for verb, args := range map[string]any{board.VBoardSet: board.BoardSet{}, board.VCardEdit: board.CardEdit{}, board.VStart: board.Start{Card: "d-5"},
		board.VTokenRevoke: board.TokenRevoke{}, board.VNodeVote: board.NodeVote{}, board.VCardLink: board.CardLink{}, board.VBarrier: nil} {
		if _, err := c.Do(t.Context(), verb, args, "", false); !errors.Is(err, &board.Error{Code: board.Refused}) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	for _, path := range []string{"/v1/token", "/v1/stop"} {
		if _, err := c.Post(t.Context(), path, api.TokenOptions{Role: "manager", TTL: 60}); !errors.Is(err, &board.Error{Code: board.NotFound}) {
			t.Errorf("%s: %v", path, err)
		}
	}
	if n := len(f.Said()); n != 0 {
		t.Fatalf("%d of them were passed on", n)
	}
	if _, err := c.Do(t.Context(), board.VEvent, board.FireEvent{Card: "d-2", Event: "comment", Payload: map[string]any{"text": "half"}}, "", false); err != nil {
		t.Fatal(err)
	}
	if said := f.Said(); len(said) != 1 || said[0].ID == "" || said[0].Verb != board.VEvent {
		t.Errorf("passed on: %+v", said)
	}
}

// TestSessionMayBeEarly: a session may read before the report of its launch is
// applied here; it waits instead of being refused (M-25).
func TestSessionMayBeEarly(t *testing.T) {
	f := apitest.Story()
	user := serve(t, f)
	run := f.Claim("d-5", "s5")
	got := make(chan error, 1)
	subs := f.Subs()
	go func() {
		_, err := session(user, run, "s5").Get(context.Background(), "/v1/cards/d-5", nil)
		got <- err
	}()
	until(t, "the read waits", func() bool { return f.Subs() > subs })
	select {
	case err := <-got:
		t.Fatalf("answered before the launch: %v", err)
	default:
	}
	f.Launch(run)
	if err := <-got; err != nil {
		t.Error(err)
	}
}

// until waits for a condition that comes by itself.
func until(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	end := time.NewTimer(10 * time.Second)
	defer end.Stop()
	for !ok() {
		select {
		case <-tick.C:
		case <-end.C:
			t.Fatalf("not within 10 s: %s", what)
		}
	}
}

// TestTokenDoor: what a token's role allows, and that a stranger learns nothing.
func TestTokenDoor(t *testing.T) {
	f := apitest.Story()
	for _, role := range []string{"manager", "member", "viewer", "node"} {
		f.Must(apitest.Manager(), board.VTokenCreate, board.TokenCreate{ID: board.HashSecret(role), Role: role})
	}
	f.Must(apitest.Manager(), board.VTokenCreate, board.TokenCreate{ID: board.HashSecret("old"), Role: "manager", TTL: 1})
	f.Pass(time.Hour)
	f.Must(apitest.Manager(), board.VCardAdd, board.CardAdd{CardFields: title("time goes on")})
	for secret, may := range map[string]struct{ read, write, manage bool }{
		"": {}, "guess": {}, "node": {}, "old": {}, "viewer": {read: true}, "member": {read: true, write: true}, "manager": {true, true, true},
	} {
		t.Run("token "+secret, func(t *testing.T) {
			c := door(t, f, secret)
			calls := map[string]struct {
				ok  bool
				err error
			}{}
			for _, path := range []string{"/v1/status", "/v1/cards/d-1", "/v1/events", "/v1/tokens", "/v1/runs/d-1.1/log"} {
				_, err := c.Get(t.Context(), path, nil)
				if errors.Is(err, &board.Error{Code: board.NotFound}) {
					err = nil // let through: there is only nothing
				}
				calls[path] = struct {
					ok  bool
					err error
				}{may.read, err}
			}
			_, err := c.Do(t.Context(), board.VEvent, board.FireEvent{Card: "d-1", Event: "comment", Payload: map[string]any{"text": "hi"}}, "0-era.1.x"+secret, false)
			if errors.Is(err, &board.Error{Code: board.Refused}) || err == nil {
				calls["write"] = struct {
					ok  bool
					err error
				}{may.write, err}
			}
			_, err = c.Post(t.Context(), "/v1/token", api.TokenOptions{Role: "manager", TTL: 60})
			calls["make a token"] = struct {
				ok  bool
				err error
			}{may.manage, err}
			for what, x := range calls {
				if x.ok != (x.err == nil) {
					t.Errorf("%s: %v", what, x.err)
				}
				if x.err != nil && !errors.Is(x.err, &board.Error{Code: board.Refused}) {
					t.Errorf("%s: refused as %s: %v", what, board.CodeOf(x.err), x.err)
				}
			}
		})
	}
}

// TestLocalNone: a manager may shut a machine's own socket.
func TestLocalNone(t *testing.T) {
	f := apitest.Story()
	c := serve(t, f)
	if _, err := c.Get(t.Context(), "/v1/cards", nil); err != nil {
		t.Fatal(err)
	}
	f.Join("shut", "none")
	if _, err := c.Get(t.Context(), "/v1/cards", nil); !errors.Is(err, &board.Error{Code: board.Refused}) {
		t.Errorf("a read: %v", err)
	}
	if _, err := c.Do(t.Context(), board.VCardAdd, board.CardAdd{CardFields: title("x")}, "", false); !errors.Is(err, &board.Error{Code: board.Refused}) {
		t.Errorf("a write: %v", err)
	}
}

// gc is for who manages the machine, at the machine.
func TestGcIsForManagers(t *testing.T) {
	f := apitest.Story()
	c := serve(t, f)
	items, err := api.Decode[[]api.GcItem](c.Post(t.Context(), "/v1/gc", api.GcOptions{DryRun: true}))
	if err != nil || len(items) != 2 || !items[0].Gone || items[1].Gone {
		t.Fatalf("%+v %v", items, err)
	}
	if _, err := session(c, "d-2.1", "s2").Post(t.Context(), "/v1/gc", api.GcOptions{}); err == nil || !strings.Contains(err.Error(), "only on that machine's own socket") {
		t.Errorf("a session may delete workspaces, or is not told where: %v", err)
	}
	f.Join("lent", "member")
	if _, err := c.Post(t.Context(), "/v1/gc", api.GcOptions{}); !errors.Is(err, &board.Error{Code: board.Refused}) {
		t.Errorf("a member: %v", err)
	}
}

// TestAnonymousHandler: an unknown method of a known path is an answer of ours too.
func TestAnonymousHandler(t *testing.T) {
	c := serve(t, apitest.New())
	b, status, _ := exchange(t, c, http.MethodDelete, "/v1/cards", nil, nil)
	if status != 404 || !strings.Contains(string(b), "not part of this API") {
		t.Errorf("HTTP %d: %s", status, b)
	}
}

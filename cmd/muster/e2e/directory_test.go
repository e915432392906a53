package e2e

import (
	"context"
	"fmt"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/directory/directorytest"
)

const orgToken = "a-token-of-acme-only"

// M-28, AGT-18..20: two of three machines hold an organisation's credentials. The one that delivers is killed -9 while its directory is
// down; the other goes on where it was, with what is declared and ended meanwhile, and after it the first again when it is back. Each
// word took effect once, in order, and never were two on their way.
func TestDeliveryPassesToAnotherMachine(t *testing.T) {
	t.Parallel()
	dir := directorytest.New(orgToken)
	srv := httptest.NewServer(dir)
	defer srv.Close()
	f := newFleetAt(t, 3, 2, func(i int, m *machine) {
		if i == 0 {
			return
		}
		for path, text := range map[string]string{"secrets/acme": orgToken, "node.yaml": "organisations: {acme: {url: " + srv.URL + ", credentials: acme}}\n"} {
			path = filepath.Join(m.data, path)
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}, steady...)
	a := f.machines[0]
	f.allOnline(a)
	f.do(a, board.VPause, board.Pause{Why: "agents are declared by hand"})
	card := func(title string) string {
		t.Helper()
		return f.do(f.leader(), board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title}})["id"].(string)
	}
	declare := func(title string) string {
		t.Helper()
		return f.do(f.leader(), board.VAgentDeclare, board.AgentDeclare{Card: card(title)})["id"].(string)
	}
	org := func() (api.Organisation, error) {
		l, err := api.Decode[[]api.Organisation](a.api.Get(context.Background(), "/v1/organisations", nil))
		if err != nil || len(l) != 1 {
			return api.Organisation{}, fmt.Errorf("%d organisations: %v", len(l), err)
		}
		return l[0], nil
	}
	await := func(what string, ok func(api.Organisation) bool) (last api.Organisation) {
		t.Helper()
		f.eventually(60*time.Second, what, func() (bool, string) {
			o, err := org()
			last = o
			return err == nil && ok(o), fmt.Sprintf("%+v %v", o, err)
		})
		return last
	}
	told := func(o api.Organisation) bool { return o.Waiting == 0 && o.Declared > 0 }

	before := declare("before")
	f.eventually(60*time.Second, "somebody can tell acme", func() (bool, string) {
		_, stderr, code := a.run("agent", "org", "acme")
		return code == 0, stderr
	})
	o := await("what was before is told", told)
	dir.Fail(func(string, string) directorytest.Fault { return directorytest.Fault{Status: 503} })
	declare("while it is down")
	f.do(f.leader(), board.VAgentEnd, board.AgentEnd{Agent: before, Why: "enough"})
	await("its failure is shown", func(o api.Organisation) bool { return o.Failing != nil && o.Waiting == 2 })
	first := f.named(o.Node)
	first.kill()
	dir.Fail(nil)
	o = await("another machine delivers", func(x api.Organisation) bool { return x.Node != o.Node && told(x) })
	f.do(f.leader(), board.VAgentEnd, board.AgentEnd{Agent: declare("later")})
	await("all is told", told)
	first.start()
	f.allOnline(a)
	second := f.named(o.Node)
	second.kill()
	declare("at last")
	o = await("the first delivers again", func(x api.Organisation) bool { return x.Node == first.name && told(x) })
	second.start()

	log := dir.Log()
	for i, l := range log {
		if slices.Contains(log[:i], l) {
			t.Errorf("%s took effect twice", l)
		}
	}
	if i, j := slices.Index(log, "declare "+before), slices.Index(log, "end "+before); i < 0 || j < i || len(log) != int(o.Declared+o.Ended) || o.Ended != 2 {
		t.Errorf("took effect: %v; the fleet says %d and %d", log, o.Declared, o.Ended)
	}
	if w := dir.Wrong(); len(w) != 0 {
		t.Errorf("wrong: %v", w)
	}
	f.sameState()
}

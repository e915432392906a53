package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"muster/board"
)

// Names of repositories are in node.yaml, read at each use, and in what the node
// was started with; what is no setting is refused with its line.
func TestReposOfTheMachine(t *testing.T) {
	n := &Node{cfg: Config{Repos: map[string]string{"app": "/srv/app"}}, dir: &folder{dir: t.TempDir()}}
	for text, want := range map[string]map[string]string{
		"":                                   {"app": "/srv/app"},
		"# nothing\n":                        {"app": "/srv/app"},
		"repos: {app: /x, lib: 'git@h:l'}\n": {"app": "/srv/app", "lib": "git@h:l"},
	} {
		if err := os.WriteFile(filepath.Join(n.dir.dir, ownFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		got, err := n.repos()
		if err != nil || len(got) != len(want) {
			t.Errorf("%q: %v %v", text, got, err)
		}
		for k, v := range want {
			if got[k] != v {
				t.Errorf("%q: %s is %q", text, k, got[k])
			}
		}
	}
	for text, say := range map[string]string{"repo: {}\n": "line 1: field repo", "repos: [a]\n": "line 1"} {
		if err := os.WriteFile(filepath.Join(n.dir.dir, ownFile), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := n.repos(); err == nil || !strings.Contains(err.Error(), say) || !strings.Contains(err.Error(), ownFile) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// A person's request without an id is not executed: a lost answer would make two of it. A new node's doors cannot give
// one before something of the state is there.
func TestNoRequestWithoutAnID(t *testing.T) {
	n := &Node{}
	for _, c := range []struct {
		req   board.Request
		takes bool
	}{
		{board.Request{Actor: board.Actor{Kind: board.ActorPerson}, Verb: board.VCardAdd}, false},
		{board.Request{Actor: board.Actor{Kind: board.ActorRun}, Verb: board.VEvent}, false},
		{board.Request{Actor: board.Actor{Kind: board.ActorNode}, Verb: board.VNodeJoin}, false},
		{board.Request{ID: "e.1.x", Actor: board.Actor{Kind: board.ActorPerson}, Verb: board.VCardAdd}, true},
		{board.Request{Actor: board.Actor{Kind: board.ActorPerson}, Verb: board.VBarrier}, true},
		{board.Request{Actor: board.Platform(), Verb: board.VStart}, true},
		{board.Request{Actor: board.Actor{Kind: board.ActorNode}, Verb: board.VReport, Journal: "j", Number: 1}, true},
	} {
		if got := !unnamed(&c.req); got != c.takes {
			t.Errorf("%s by a %s: taken %t, want %t", c.req.Verb, c.req.Actor.Kind, got, c.takes)
		}
		if !c.takes {
			if res := n.Do(t.Context(), c.req); res.Err == nil || res.Err.Code != board.Unavailable || res.Err.Check != "no_state" {
				t.Errorf("%s: %v", c.req.Verb, res.Err)
			}
		}
	}
}

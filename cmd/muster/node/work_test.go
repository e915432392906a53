package node

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
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

package doctor

import (
	"errors"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

func codes(list []Finding) (s []string) {
	for _, f := range list {
		s = append(s, f.Code)
	}
	return s
}

// A stopped node is looked at, too: its files, its port, who can read its key.
func TestLookAtAStoppedNode(t *testing.T) {
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if got := codes(Diagnose(Look(t.Context(), dir, "v"))); !slices.Contains(got, "no_node") {
		t.Errorf("an empty folder: %q", got)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	for name, text := range map[string]string{"node.json": `{"fleet":"f","listen":"` + l.Addr().String() + `"}`, "node.key": "not a key"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got := codes(Diagnose(Look(t.Context(), dir, "v")))
	for _, want := range []string{"node_stopped", "port_taken", "key_open", "folder_damaged"} {
		if !slices.Contains(got, want) {
			t.Errorf("%s is not found: %q", want, got)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, ".doctor-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
}

// A disk that refuses is told with its word, one that does not answer is not waited for.
func TestSyncTime(t *testing.T) {
	if d, why := syncTime(t.TempDir()); why != "" || d <= 0 {
		t.Errorf("%s %q", d, why)
	}
	if _, why := syncTime(filepath.Join(t.TempDir(), "none")); !strings.Contains(why, "no such") {
		t.Errorf("a folder that is not there: %q", why)
	}
	hold := make(chan struct{})
	defer close(hold)
	if d, _ := within(func() (time.Duration, string) { <-hold; return 0, "" }); d < syncError {
		t.Errorf("a disk that hangs answers in %s", d)
	}
}

// A login is a file or a variable of this user.
func TestNoLogin(t *testing.T) {
	home := t.TempDir()
	env := map[string]string{"HOME": home, "GEMINI_API_KEY": "x"}
	all := func(string) (string, error) { return "/bin/x", nil }
	none := func(string) (string, error) { return "", errors.New("none") }
	if err := os.MkdirAll(filepath.Join(home, ".codex"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, ".codex/auth.json"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want := []string{"claude", "opencode"}
	if runtime.GOOS == "darwin" {
		want = want[1:]
	}
	get := func(k string) string { return env[k] }
	if got := noLogin(get, all); !slices.Equal(got, want) {
		t.Errorf("%q", got)
	}
	if got := noLogin(get, none); len(got) > 0 {
		t.Errorf("programs that are not here: %q", got)
	}
}

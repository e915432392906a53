package tmux

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
)

// T14: two names of which one begins the other are never confused, nor are ids
// of panes that are gone.
func TestTargetsAreExact(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	one, ten := newReader(t, s, "s1"), newReader(t, s, "s10")
	must(t, s.Kill(t.Context(), one.ID))
	if err := s.Paste(t.Context(), one.ID, []byte("for s1")); err == nil {
		t.Error("a pane that is gone took a paste")
	}
	if err := s.Kill(t.Context(), one.ID); err == nil {
		t.Error("a pane that is gone was closed again")
	}
	_, argv := s.Client("s1", true, false)
	if _, err := s.do(t.Context(), "has-session", "-t", argv[8]); err == nil || argv[7] != "-t" {
		t.Errorf("%q finds a session", argv)
	}
	must(t, s.Paste(t.Context(), ten.ID, []byte("for s10")))
	ten.reads("for s10")
	if left, _ := filepath.Glob(s.path("muster-*")); len(left) > 0 {
		t.Errorf("files of pastes are left: %q", left)
	}
	buffers, err := s.do(t.Context(), "list-buffers")
	if err != nil || buffers != "" {
		t.Errorf("buffers are left: %q %v", buffers, err)
	}
}

// A name that is taken is an error, and no second program.
func TestANameIsTakenOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	newReader(t, s, "web-1.1")
	if _, err := s.New(t.Context(), "web-1.1", "x", []string{"tail", "-f", "/dev/null"}); err == nil {
		t.Error("two sessions have one name")
	}
	if _, err := s.New(t.Context(), "y", "y", []string{"touch /tmp/x"}); err == nil {
		t.Error("a single word was given to a shell")
	}
	if list, err := s.Panes(t.Context()); err != nil || len(list) != 1 || list[0].Key != "web-1.1" {
		t.Errorf("panes %+v, %v", list, err)
	}
}

// T17: what a program prints reaches no clipboard and no terminal around it; and
// nobody's configuration is read.
func TestSettingsAreOurs(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	must(t, s.Open(t.Context()))
	for option, want := range map[string]string{"set-clipboard": "off", "allow-rename": "off", "prefix": "None", "exit-empty": "off", "mouse": "off"} {
		if got, err := s.do(t.Context(), "show-options", "-gAv", option); err != nil || got != want {
			if got, err = s.do(t.Context(), "show-options", "-sv", option); err != nil || got != want {
				if got, err = s.do(t.Context(), "show-options", "-gwv", option); err != nil || got != want {
					t.Errorf("%s is %q, %v; want %q", option, got, err, want)
				}
			}
		}
	}
	if got, err := s.do(t.Context(), "show-options", "-gwqv", "allow-passthrough"); err != nil || got != "off" && got != "" {
		t.Errorf("allow-passthrough is %q, %v", got, err)
	}
	keys, err := s.do(t.Context(), "list-keys", "-T", "root")
	if err != nil || strings.Count(keys, "\n") != 0 || !strings.Contains(keys, "C-]") || !strings.Contains(keys, "detach-client") {
		t.Errorf("keys %q, %v; want the one that detaches", keys, err)
	}
	if keys, err := s.do(t.Context(), "list-keys", "-T", "prefix"); err == nil && keys != "" {
		t.Errorf("keys after a prefix: %q", keys)
	}
}

// T15: a title or a name that holds a format runs nothing, and is not taken over.
func TestTitlesRunNothing(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	file := filepath.Join(t.TempDir(), "canary")
	script := fmt.Sprintf("printf '\\033]0;#(touch %[1]s)\\007\\033]2;#(touch %[1]s)\\007\\033k#(touch %[1]s)\\033\\\\'; echo printed; exec tail -f /dev/null", file)
	p, err := s.New(t.Context(), "#(touch "+file+")", "k", []string{"sh", "-c", script})
	must(t, err)
	eventually(t, "what the program prints", func() bool {
		screen, err := s.Screen(t.Context(), p.ID)
		must(t, err)
		return strings.Contains(screen, "printed")
	})
	name, err := s.do(t.Context(), "display-message", "-p", "-t", p.ID, "#{T:status-left}#{T:status-right}#{window_name}")
	if err != nil || strings.Contains(name, "touch ") {
		t.Errorf("status and name %q, %v", name, err)
	}
	if _, err := os.Stat(file); err == nil {
		t.Error("the title was run")
	}
}

// A server that is killed is noticed at once, and the next command has a new one.
func TestServerThatIsKilled(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := newReader(t, s, "s1")
	for drained := false; !drained; {
		select {
		case <-s.Changed():
		default:
			drained = true
		}
	}
	out, err := s.do(t.Context(), "display-message", "-p", "#{pid}")
	must(t, err)
	var pid int
	_, err = fmt.Sscan(out, &pid)
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGKILL))
	<-s.Changed()
	eventually(t, "a new server without panes", func() bool {
		list, err := s.Panes(t.Context())
		if err != nil && !errors.Is(err, ErrGone) {
			t.Fatal(err)
		}
		return err == nil && len(list) == 0
	})
	if err := s.Paste(t.Context(), r.ID, []byte("x")); err == nil {
		t.Error("a pane of the killed server took a paste")
	}
}

// The server and its panes outlive the process that drives them.
func TestServerOutlivesItsClient(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	r := newReader(t, s, "s1")
	s.Close()
	if _, err := s.Panes(t.Context()); err == nil {
		t.Error("a closed server answers")
	}
	again := New(s.cfg)
	t.Cleanup(func() {
		_, _ = again.do(context.Background(), "kill-server")
		again.Close()
	})
	list, err := again.Panes(t.Context())
	if err != nil || len(list) != 1 || list[0] != (Pane{ID: r.ID, Session: r.Session, Key: "s1", PID: r.PID}) {
		t.Errorf("found %+v, %v; want %+v", list, err, r.Pane)
	}
}

// Commands of many at once get their own answers.
func TestFiftyPanesAtOnce(t *testing.T) {
	t.Parallel()
	s := newServer(t)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			key := fmt.Sprintf("web-%d.1", i)
			p, err := s.New(t.Context(), key, key, []string{"tail", "-f", "/dev/null"})
			if err != nil {
				t.Error(err)
				return
			}
			out, err := s.do(t.Context(), "display-message", "-p", "-t", p.ID, "#{session_name} #{@muster}")
			if want := Name(key) + " " + key; err != nil || out != want {
				t.Errorf("answer %q, %v; want %q", out, err, want)
			}
		})
	}
	wg.Wait()
	if list, err := s.Panes(t.Context()); err != nil || len(list) != 50 {
		t.Errorf("%d panes, %v; want 50", len(list), err)
	}
}

// T7: a folder that others may look into is refused.
func TestOpenFolderIsRefused(t *testing.T) {
	s := New(Config{Dir: t.TempDir()})
	for _, mode := range []os.FileMode{0o755, 0o750, 0o701} {
		must(t, os.Chmod(s.cfg.Dir, mode))
		if err := s.Open(t.Context()); err == nil || !strings.Contains(err.Error(), "0700") {
			t.Errorf("a folder of mode %v: %v", mode, err)
		}
	}
	link := filepath.Join(t.TempDir(), "link")
	must(t, os.Symlink(t.TempDir(), link))
	s.cfg.Dir = link
	if err := s.Open(t.Context()); err == nil {
		t.Error("a link was followed")
	}
}

func TestVersions(t *testing.T) {
	for v, want := range map[string]bool{"tmux 3.3a": true, "tmux 3.2": true, "tmux 3.1c": false, "tmux 2.9": false, "tmux next-3.6": true, "tmux 4.0-rc": true, "": false} {
		if fresh(v) != want {
			t.Errorf("%q: %v, want %v", v, !want, want)
		}
	}
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/cmd/muster/api/apitest"
)

// full is a disk with no room left.
type full struct{}

func (full) Write([]byte) (int, error) { return 0, errors.New("no space left on device") }

// into runs a command whose output goes to out.
func (w *world) into(out io.Writer, args ...string) (errs string, code int) {
	var said bytes.Buffer
	env := func(k string) string { return w.env[k] }
	code = Main(w.t.Context(), args, IO{In: strings.NewReader(""), Out: out, Err: &said, Env: env, Now: time.Now}, w.deps)
	return said.String(), code
}

// CLI-01: output that could not be written is a failure, said once; who follows ends at once.
func TestOutputThatIsNotWritten(t *testing.T) {
	w := newWorld(t, story())
	for _, args := range [][]string{
		{"card", "list"}, {"status", "--json"}, {"token", "create"}, {"card", "add", "x", "-q"}, {"workflow", "show"}, {"board", "export", "web"},
		{"events", "-f"},
	} {
		errs, code := w.into(full{}, args...)
		if code != ExitFailed || strings.Count(errs, "no space left on device") != 1 || strings.Contains(errs, "broke off") {
			t.Errorf("%v: exit %d: %s", args, code, errs)
		}
	}
}

// CLI-01: what went wrong is said on stderr where the output takes no JSON.
func TestErrorThatIsNotWritten(t *testing.T) {
	w := newWorld(t, story())
	if errs, code := w.into(full{}, "card", "show", "none", "--json"); code != ExitFailed || !strings.Contains(errs, `"none"`) {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// CLI-01: of a new card that nothing would ever start it is said what it lacks.
func TestNewCardThatLacksAProfile(t *testing.T) {
	w := newWorld(t, apitest.New())
	_, errs, code := w.run("card", "add", "a first card")
	if code != ExitOK || !strings.Contains(errs, "it does not start") || !strings.Contains(errs, "--assignee PROFILE") {
		t.Errorf("exit %d: %s", code, errs)
	}
}

// CLI-01: a backup without a leader gives up in time, and says what needs none.
func TestBackupWithoutLeader(t *testing.T) {
	w := newWorld(t, story())
	w.f.NoLeader = true
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	var out, errs bytes.Buffer
	env := func(k string) string { return w.env[k] }
	code := Main(ctx, []string{"backup", filepath.Join(w.dir, "b"), "--timeout", "50ms"}, IO{In: strings.NewReader(""), Out: &out, Err: &errs, Env: env, Now: time.Now}, w.deps)
	if code != ExitNoNode || !strings.Contains(errs.String(), "muster backup --local FILE") {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}

// CLI-01: a file is put where its name leads to: not in the place of a device or a link, and of a file only with --force.
func TestExportKeepsWhatIsThere(t *testing.T) {
	w := newWorld(t, apitest.New())
	w.ok("board", "create", "web")
	file, link, lost := filepath.Join(w.dir, "f"), filepath.Join(w.dir, "l"), filepath.Join(w.dir, "lost")
	for name, to := range map[string]string{link: file, lost: filepath.Join(w.dir, "nothing")} {
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	w.ok("board", "export", "web", file)
	for name, words := range map[string]string{file: "--force", link: "--force", lost: "leads to nothing", filepath.Join(w.dir, "muster.sock"): "is no file"} {
		if _, errs, code := w.run("board", "export", "web", name); code != ExitFailed || !strings.Contains(errs, words) {
			t.Errorf("%s: exit %d: %s", name, code, errs)
		}
	}
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	w.ok("board", "export", "web", link, "--force")
	if st, err := os.Lstat(link); err != nil || st.Mode()&os.ModeSymlink == 0 {
		t.Errorf("the link was replaced (%v)", err)
	}
	if st, err := os.Stat(file); err != nil || st.Size() == 0 {
		t.Errorf("the file behind the link was not written (%v)", err)
	}
}

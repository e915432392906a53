package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"runtime"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// How long git may take.
const (
	limitLocal = 2 * time.Minute  // what reads or writes this machine's disk
	limitPush  = 2 * time.Minute  // a run's end waits for it
	limitFetch = 5 * time.Minute  // what an update brings
	limitClone = 30 * time.Minute // the whole of a repository, once
)

// gitEnv is what git gets beside the node's variables: it asks nobody anything,
// and speaks only where a repository can be, not through commands in a URL.
var gitEnv = []string{"GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=", "SSH_ASKPASS=", "SSH_ASKPASS_REQUIRE=never", "GIT_OPTIONAL_LOCKS=0",
	"GIT_ALLOW_PROTOCOL=file:git:http:https:ssh", "GIT_NO_REPLACE_OBJECTS=1", "LC_ALL=C", "GIT_PAGER=cat", "GIT_EDITOR=false"}

// gitConfig goes before every command: a repository that sessions write to must
// not make git run their programs for the node.
var gitConfig = []string{"-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-c", "gc.auto=0", "-c", "maintenance.auto=false",
	"-c", "core.quotePath=false", "-c", "submodule.recurse=false", "-c", "advice.detachedHead=false", "-c", "protocol.ext.allow=never"}

// call is one git command.
type call struct {
	dir   string
	limit time.Duration // 0: limitLocal
	lock  *os.File      // held by git and its children, too
	env   []string      // beside the rest
	most  int           // bytes of output that are kept; 0: all
}

// gitError is what git said.
type gitError struct {
	verb, text string
	full       bool
}

func (e *gitError) Error() string { return "git " + e.verb + ": " + e.text }

// Unwrap makes a full disk known as what it is: no fault of the card.
func (e *gitError) Unwrap() error {
	if e.full {
		return unix.ENOSPC
	}
	return nil
}

// errCut says that there was more output than was wanted.
var errCut = errors.New("there is more")

// git runs git in a session of its own, so that nothing it starts finds a
// terminal to ask at, and answers what it printed.
func (s *Store) git(ctx context.Context, c call, args ...string) ([]byte, error) {
	limit := c.limit
	if limit == 0 {
		limit = limitLocal
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("took longer than %s and was ended", limit))
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append(gitConfig[:len(gitConfig):len(gitConfig)], args...)...)
	cmd.Dir = c.dir
	cmd.Env = append(append(append([]string{}, s.cfg.Env...), gitEnv...), c.env...)
	cmd.SysProcAttr = gitAttr()
	if c.lock != nil {
		cmd.ExtraFiles = []*os.File{c.lock}
	}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = 2 * time.Second
	out, said := &bounded{most: c.most}, &bounded{most: 64 << 10}
	cmd.Stdout, cmd.Stderr = out, said
	runtime.LockOSThread() // where the machine ends git with the thread that started it
	err := cmd.Run()
	runtime.UnlockOSThread()
	switch {
	case err == nil && out.cut:
		return out.b.Bytes(), errCut
	case err == nil:
		return out.b.Bytes(), nil
	case errors.Is(err, exec.ErrNotFound):
		return nil, errors.New("git is not installed on this machine")
	case ctx.Err() != nil:
		return nil, &gitError{verb: verbOf(args), text: context.Cause(ctx).Error()}
	}
	text := said.b.String()
	var exit *exec.ExitError
	if strings.TrimSpace(text) == "" || !errors.As(err, &exit) {
		text = err.Error()
	}
	return out.b.Bytes(), &gitError{verb: verbOf(args), text: lastWords(text), full: strings.Contains(text, "No space left on device") || strings.Contains(text, "Disk quota exceeded")}
}

// line is git for an answer of one line.
func (s *Store) line(ctx context.Context, c call, args ...string) (string, error) {
	b, err := s.git(ctx, c, args...)
	return strings.TrimSpace(string(b)), err
}

func verbOf(args []string) string {
	for _, a := range args {
		if !strings.HasPrefix(a, "-") {
			return a
		}
	}
	return ""
}

var password = regexp.MustCompile(`://[^/@\s]+@`)

// lastWords is what people read of git's complaint: its last lines, without a
// password that stands in a URL.
func lastWords(text string) string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "hint:") {
			lines = append(lines, line)
		}
	}
	lines = lines[max(0, len(lines)-4):]
	text = password.ReplaceAllString(strings.Join(lines, "; "), "://")
	if len(text) > 400 {
		text = "..." + strings.ToValidUTF8(text[len(text)-400:], "")
	}
	return text
}

// bounded keeps the beginning of what is written to it.
type bounded struct {
	b    bytes.Buffer
	most int // 0: no bound
	cut  bool
}

func (w *bounded) Write(p []byte) (int, error) {
	n := len(p)
	if left := w.most - w.b.Len(); w.most > 0 && len(p) > left {
		p, w.cut = p[:max(0, left)], true
	}
	w.b.Write(p)
	return n, nil
}

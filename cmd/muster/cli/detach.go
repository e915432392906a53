package cli

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

// progressFlag tells a node in the background which file descriptor its starter
// reads; -1 is nobody.
const progressFlag = "progress-fd"

// restartFile names the executable that a restart shall use.
const restartFile = "restart-binary"

// tokenPrefix begins every token.
const tokenPrefix = "muster1."

// note is what a node in the background tells who started it, a line each.
type note struct {
	Progress string       `json:"progress,omitempty"`
	Ready    *api.Info    `json:"ready,omitempty"`
	Failed   *board.Error `json:"failed,omitempty"`
	Code     int          `json:"code,omitempty"`
}

// detach starts this program again, in a session of its own, and reads from a
// pipe how it gets on: until it is ready, has failed, or is gone. The token
// travels on stdin: an argument could be read by everybody on the machine.
func (a *app) detach(ctx context.Context, u *upFlags) error {
	self, err := os.Executable()
	if err != nil {
		return err
	}
	if err := os.MkdirAll(u.o.Data, 0o700); err != nil {
		return fmt.Errorf("data folder: %w", err)
	}
	log, err := os.OpenFile(filepath.Join(u.o.Data, "node.log"), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return fmt.Errorf("log: %w", err)
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return err
	}
	defer r.Close()
	cmd := exec.Command(self, u.args()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(u.o.Token+"\n"), log, log
	cmd.ExtraFiles = []*os.File{w}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	err = cmd.Start()
	w.Close()
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	defer context.AfterFunc(ctx, func() { r.Close() })()
	return a.readNotes(r, u.o.Data)
}

func (a *app) readNotes(r io.Reader, data string) error {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var n note
		if json.Unmarshal(lines.Bytes(), &n) != nil {
			continue
		}
		switch {
		case n.Ready != nil:
			a.isUp(*n.Ready, false)
			return nil
		case n.Failed != nil:
			a.complain(n.Failed)
			return codeError(n.Code)
		case !a.quiet && !a.json:
			fmt.Fprintln(a.io.Err, visible(n.Progress))
		}
	}
	if err := lines.Err(); errors.Is(err, os.ErrClosed) {
		return board.Errorf(board.Internal, "interrupted; the node goes on starting").WithHint("muster status --data %s, or muster stop", shellWord(data))
	}
	return fmt.Errorf("the node ended before it was up; see %s", filepath.Join(data, "node.log"))
}

// args are the arguments of the node in the background.
func (u *upFlags) args() []string {
	args := []string{"up", "--data", u.o.Data, "--" + progressFlag, "3"}
	for _, f := range [][2]string{{"--name", u.o.Name}, {"--listen", u.o.Listen}, {"--advertise", u.o.Advertise}, {"--timers", u.o.Timers}, {"--metrics", u.o.Metrics}} {
		if f[1] != "" {
			args = append(args, f[0], f[1])
		}
	}
	for _, l := range u.labels {
		args = append(args, "--label", l)
	}
	for _, x := range u.repos {
		args = append(args, "--repo", x)
	}
	if u.ports != "" {
		args = append(args, "--ports", u.ports)
	}
	if u.o.Slots > 0 {
		args = append(args, "--slots", fmt.Sprint(u.o.Slots))
	}
	if u.o.Replica {
		args = append(args, "--replica")
	}
	if u.o.Verbose {
		args = append(args, "--verbose")
	}
	if u.o.Token != "" {
		args = append(args, "--join", "-")
	}
	return args
}

// upDetached is the node in the background. It logs to a file, and its notes go
// to who started it, as long as they listen. After a restart nobody does.
func (a *app) upDetached(ctx context.Context, u *upFlags) error {
	var pipe *os.File
	if u.progressFD > 0 {
		pipe = os.NewFile(uintptr(u.progressFD), "progress")
		syscall.CloseOnExec(u.progressFD)
	}
	send := func(n note) {
		if pipe == nil {
			return
		}
		if json.NewEncoder(pipe).Encode(n) != nil || n.Ready != nil || n.Failed != nil {
			pipe.Close()
			pipe = nil
		}
	}
	u.o.LogFile = filepath.Join(u.o.Data, "node.log")
	u.o.Progress = func(s string) { send(note{Progress: s}) }
	u.o.Ready = func(i api.Info) { send(note{Ready: &i}) }
	err := a.deps.Up(ctx, u.o)
	if err != nil && !(errors.Is(err, context.Canceled) && ctx.Err() != nil) {
		e, _ := a.failure(err)
		send(note{Failed: e, Code: exitCode(err)})
		return err
	}
	return nil
}

// AgainArgs are the arguments of a node that replaces itself: nobody reads its
// progress any more, and its folder belongs to a fleet by now. The token stays behind: it
// may be used up, and who was let in by it needs it no more.
func AgainArgs(args []string) []string {
	var again []string
	verb := false
	for i := 0; i < len(args); i++ {
		x := args[i]
		valued := slices.Contains([]string{"--data", "--node", "--board", "--request-id", "--timeout"}, x)
		switch {
		case x == "--join" || x == "--token-file":
			i++
		case strings.HasPrefix(x, "--join=") || strings.HasPrefix(x, "--token-file="):
		case x == "-" || verb && strings.HasPrefix(x, tokenPrefix): // join's own argument
		case x == "--"+progressFlag:
			again = append(again, x, "-1")
			i++
		case valued && i+1 < len(args):
			again = append(again, x, args[i+1])
			i++
		case !verb && !strings.HasPrefix(x, "-"):
			verb = true
			again = append(again, "up")
		default:
			again = append(again, x)
		}
	}
	return again
}

// leaveBinary notes, for the node that is about to start again, what to start.
func leaveBinary(data, binary string) error {
	abs, err := filepath.Abs(binary)
	if err != nil {
		return err
	}
	s, err := os.Stat(abs)
	if err != nil {
		return fmt.Errorf("--binary: %w", err)
	}
	if s.IsDir() || s.Mode()&0o111 == 0 {
		return usagef("--binary %s is not an executable", abs)
	}
	return os.WriteFile(filepath.Join(data, restartFile), []byte(abs), 0o600)
}

// TakeBinary is the executable that a restart was asked to use, once; "" is the same one.
func TakeBinary(data string) string {
	path := filepath.Join(data, restartFile)
	b, err := os.ReadFile(path)
	if err != nil {
		return ""
	}
	_ = os.Remove(path)
	return strings.TrimSpace(string(b))
}

// waitFree waits until no node holds the folder's lock.
func waitFree(ctx context.Context, data string, most time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	for {
		if !api.Held(data) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("the node was told to stop but still holds %s", data)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

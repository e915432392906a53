package launcher

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/creack/pty"
	"golang.org/x/sys/unix"

	"muster/board"
	"muster/launcher/tmux"
)

// View says how a person wants to see a terminal of this machine.
type View struct {
	ReadOnly   bool
	Term       string // TERM of the person's terminal; what is not known here is taken for a common one
	Color      bool   // it shows all colours
	Cols, Rows uint16
}

// Screen is a terminal of this machine with a process in it, for one person: a client of tmux
// that shows a pane, or a shell. It ends with its process, and its process with it.
type Screen struct {
	f    *os.File
	cmd  *exec.Cmd
	over chan struct{}
	once sync.Once

	bytes bool // what is typed is written by tmux.Typed
}

// Watch shows the pane of a run. The session does not depend on it.
func (r *Reconciler) Watch(ctx context.Context, run string, v View) (*Screen, error) {
	if r.cfg.panes == nil {
		return nil, board.Errorf(board.Refused, "%s", r.refusePane())
	}
	list, err := r.cfg.panes.Panes(ctx)
	if err != nil {
		return nil, board.Errorf(board.Unavailable, "the panes of %s cannot be listed: %v", r.cfg.Name, err).WithHint("try again; the session's output: muster log %s", board.CardOfRun(run))
	}
	if !slices.ContainsFunc(list, func(p tmux.Pane) bool { return p.Key == run }) {
		return nil, board.Errorf(board.NotFound, "%s has no open pane of run %s", r.cfg.Name, run).WithHint("see: muster runs %s", board.CardOfRun(run))
	}
	dir, argv := r.cfg.panes.Client(run, v.ReadOnly, v.Color)
	s, err := openScreen(v, dir, argv, keeperEnv(r.cfg.Env))
	if err == nil {
		s.bytes = r.readsBytes(run)
	}
	return s, err
}

// readsBytes tells that the keeper of a pane makes bytes again of what no client of tmux passes on; one of a version before does not.
func (r *Reconciler) readsBytes(run string) (does bool) {
	r.ask(func() {
		if n := r.runs[run]; n != nil {
			st, _ := n.paneOf()
			does = st.Bytes
		}
	})
	return does
}

// Shell opens a shell of this machine's user in a folder, "" for home. It is no session, has
// no keeper, and ends when nobody looks at it any more.
func (r *Reconciler) Shell(dir string, v View) (*Screen, error) {
	get := func(key string) string {
		for _, kv := range r.cfg.Env {
			if k, x, _ := strings.Cut(kv, "="); k == key {
				return x
			}
		}
		return os.Getenv(key)
	}
	sh := get("SHELL")
	if !filepath.IsAbs(sh) {
		sh = "/bin/sh"
	}
	if dir == "" {
		dir = get("HOME")
	}
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return nil, board.Errorf(board.NotFound, "%s: there is no folder %s any more", r.cfg.Name, dir).WithHint("a shell at home: muster shell %s", r.cfg.Name)
	}
	env := append(keeperEnv(r.cfg.Env), "SHELL="+sh, "MUSTER_HOME="+r.cfg.Dir)
	env = slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "GOMAXPROCS=") })
	return openScreen(v, dir, []string{sh, "-i"}, env)
}

func openScreen(v View, dir string, argv, env []string) (*Screen, error) {
	master, slave, err := pty.Open()
	if err != nil {
		return nil, fmt.Errorf("no terminal: %w", err)
	}
	defer slave.Close()
	if v.Cols == 0 || v.Rows == 0 {
		v.Cols, v.Rows = 80, 24
	}
	err = pty.Setsize(master, &pty.Winsize{Rows: v.Rows, Cols: v.Cols})
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.Dir, cmd.Stdin, cmd.Stdout, cmd.Stderr = dir, slave, slave, slave
	cmd.Env = append(slices.DeleteFunc(env, func(kv string) bool { return strings.HasPrefix(kv, "TERM=") }), "TERM="+knownTerm(v.Term))
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true, Setctty: true}
	s := &Screen{cmd: cmd, over: make(chan struct{})}
	if err == nil {
		s.f, err = pollable(master)
	}
	if err == nil {
		err = startPlain(cmd)
	}
	if err != nil {
		master.Close()
		return nil, fmt.Errorf("a terminal for %s: %w", filepath.Base(argv[0]), err)
	}
	go func() {
		_ = cmd.Wait() // how it ended is the session's affair, or a shell's own
		close(s.over)
	}()
	return s, nil
}

// pollable makes a file whose reads end when it is closed, of one that may not be.
func pollable(f *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(f.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	if err := unix.SetNonblock(fd, true); err != nil {
		unix.Close(fd)
		return nil, os.NewSyscallError("fcntl", err)
	}
	f.Close()
	return os.NewFile(uintptr(fd), "terminal"), nil
}

func (s *Screen) Read(b []byte) (int, error) { return s.f.Read(b) }

func (s *Screen) Write(b []byte) (int, error) {
	typed := b
	if s.bytes {
		typed = tmux.Typed(b)
	}
	if _, err := s.f.Write(typed); err != nil {
		return 0, err
	}
	return len(b), nil
}

// Resize gives the terminal another size.
func (s *Screen) Resize(cols, rows uint16) error {
	return pty.Setsize(s.f, &pty.Winsize{Rows: rows, Cols: cols})
}

// screenWait is how long what shows a terminal may take to end after the hang-up.
const screenWait = time.Second

// Close hangs up, and waits for the process.
func (s *Screen) Close() error {
	var err error
	s.once.Do(func() {
		_ = s.cmd.Process.Signal(syscall.SIGHUP) // nothing when it has ended: by then its pid, and its group, may be another's
		err = s.f.Close()
		select {
		case <-s.over:
		case <-time.After(screenWait):
			_ = s.cmd.Process.Kill()
			<-s.over
		}
	})
	return err
}

// EndOf tells what became of a run's session on this machine, in words; it waits a moment for
// the record of its end. False: it lives, or nobody knows.
func (r *Reconciler) EndOf(ctx context.Context, run string) (string, bool) {
	dir := r.runDir(run)
	if dir == "" {
		return "", false
	}
	if s, err := ReadSpec(dir); err == nil {
		dir = carrierDir(dir, s)
	}
	w, err := watch(dir)
	if err != nil {
		return "", false
	}
	defer w.close()
	for {
		if e, err := ReadExit(dir); err == nil && e != nil && e.Boot != "" {
			return e.words(), true
		}
		if ctx.Err() != nil {
			return "", false
		}
		w.wait(ctx)
	}
}

// words says how a session ended.
func (e *Exit) words() string {
	switch {
	case e.Closed:
		return "its pane was closed"
	case e.Error != "":
		return e.Error
	case e.Signal != "":
		return "killed by " + e.Signal
	case e.Code != nil:
		return fmt.Sprintf("exit code %d", *e.Code)
	}
	return "nobody saw how"
}

// knownTerm is a TERM that this machine knows, as near as it can be to the one that was asked for.
func knownTerm(name string) string {
	ok := name != "" && len(name) <= 60 && !strings.ContainsFunc(name, func(c rune) bool {
		return (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && !strings.ContainsRune("-+._", c)
	}) && name[0] != '.'
	if ok {
		for _, dir := range []string{filepath.Join(os.Getenv("HOME"), ".terminfo"), "/etc/terminfo", "/lib/terminfo", "/usr/share/terminfo", "/usr/lib/terminfo", "/usr/local/share/terminfo", "/opt/homebrew/share/terminfo"} {
			for _, first := range []string{name[:1], fmt.Sprintf("%x", name[0])} { // macOS names the folders by number
				if exists(filepath.Join(dir, first, name)) {
					return name
				}
			}
		}
	}
	if strings.Contains(name, "256color") || !ok {
		return "xterm-256color"
	}
	return "xterm"
}

// Looked has the fleet told of a look at a terminal of this machine, in its order among the words of run;
// "" is of none. It is on disk when it is told, and told when there is a leader.
func (r *Reconciler) Looked(run string, l board.Look) {
	r.post(func() { r.fileNotes([]*item{r.note(run, &board.Report{Kind: board.ReportLooked, Run: run, Look: &l})}) })
}

package launcher

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"muster/launcher/tmux"
)

// Keepers is the real [Runner]: a keeper is a process of its own, which
// outlives this one. Close it when no more is started.
type Keepers struct {
	Binary string   // whose first argument may be [KeepVerb]
	Env    []string // of the keepers; the sessions have one of their own
	Log    *slog.Logger
	Panes  *tmux.Server // where keepers with a terminal are started; nil: nowhere

	mu        sync.Mutex
	spare     *spare
	warming   bool
	sparePane *sparePane
	warmed    chan struct{} // closed when the pane that is being made in advance is there, or is not to be; nil: none is
	awaited   bool          // a start waits for it
	closed    bool
	wg        sync.WaitGroup
}

// spare is a keeper without a folder: the start of a process is paid before
// anybody waits for it.
type spare struct {
	conn net.Conn
	cmd  *exec.Cmd
}

// Start implements [Runner].
func (k *Keepers) Start(dir string) (Session, error) {
	if spec, err := ReadSpec(dir); err == nil && spec.Surface == surfacePane {
		return k.startPane(dir, spec)
	}
	if s := k.takeSpare(); s != nil {
		if err := writeMessage(s.conn, message{Op: opTake, Dir: dir}); err == nil {
			k.Warm()
			return newLink(s.conn, bufio.NewReader(s.conn), s.cmd.Process.Pid), nil
		}
		s.conn.Close() // it died while it waited
	}
	conn, cmd, err := k.spawn(dir)
	if err != nil {
		return nil, err
	}
	k.Warm()
	return newLink(conn, bufio.NewReader(conn), cmd.Process.Pid), nil
}

func (k *Keepers) takeSpare() *spare {
	k.mu.Lock()
	defer k.mu.Unlock()
	s := k.spare
	k.spare = nil
	return s
}

// Warm starts, beside the caller, the keeper that waits for the next run.
func (k *Keepers) Warm() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.spare != nil || k.warming {
		return
	}
	k.warming = true
	k.wg.Add(1)
	go func() {
		defer k.wg.Done()
		k.refill()
	}()
}

func (k *Keepers) refill() {
	conn, cmd, err := k.spawn("-")
	k.mu.Lock()
	defer k.mu.Unlock()
	k.warming = false
	switch {
	case err != nil:
		k.Log.Warn("no keeper in advance", "err", err)
	case k.closed:
		conn.Close()
	default:
		k.spare = &spare{conn, cmd}
	}
}

// spawn starts a keeper that shares a connection with this process: no time is
// lost by waiting for its socket, and its death is seen at once.
func (k *Keepers) spawn(dir string) (net.Conn, *exec.Cmd, error) {
	fds, err := socketpair()
	if err != nil {
		return nil, nil, fmt.Errorf("keeper of %s: socketpair: %w", dir, err)
	}
	ours, theirs := os.NewFile(uintptr(fds[0]), "keeper"), os.NewFile(uintptr(fds[1]), "node")
	defer theirs.Close()
	conn, err := net.FileConn(ours)
	ours.Close()
	if err != nil {
		return nil, nil, fmt.Errorf("keeper of %s: %w", dir, err)
	}
	cmd := exec.Command(k.Binary, KeepVerb, dir, "3")
	cmd.Env = append(append([]string{"GOMAXPROCS=1"}, k.Env...), failEnv()...)
	cmd.ExtraFiles = []*os.File{theirs}
	cmd.SysProcAttr = keeperAttr()
	cmd.Dir = "/"
	if err := cmd.Start(); err != nil {
		conn.Close()
		return nil, nil, fmt.Errorf("keeper of %s: %w", dir, err)
	}
	k.wg.Add(1)
	go func() {
		defer k.wg.Done()
		_ = cmd.Wait() // how a keeper ended is in its folder
	}()
	return conn, cmd, nil
}

// socketpair makes two ends that no process inherits which is started at the same
// moment: it would hold a keeper's end for as long as it lives, and the keeper's
// death would not be seen.
func socketpair() (fds [2]int, err error) {
	syscall.ForkLock.RLock()
	defer syscall.ForkLock.RUnlock()
	if fds, err = unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0); err == nil {
		unix.CloseOnExec(fds[0])
		unix.CloseOnExec(fds[1])
	}
	return fds, err
}

// Close ends the keeper that waits for a run. Keepers with a run go on, and panes.
func (k *Keepers) Close() {
	if k.Panes != nil {
		k.Panes.Close()
	}
	k.mu.Lock()
	k.closed = true
	s, p := k.spare, k.sparePane
	k.spare, k.sparePane = nil, nil
	k.mu.Unlock()
	if s != nil {
		s.conn.Close()
	}
	if p != nil {
		p.conn.Close()
	}
}

// adoptWait bounds how long a keeper that holds its folder may take to answer.
const adoptWait = 2 * time.Second

// Adopt implements [Runner].
func (k *Keepers) Adopt(ctx context.Context, dir string) (Session, error) {
	spec, err := ReadSpec(dir)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, adoptWait)
	defer cancel()
	for wait := 2 * time.Millisecond; ; wait = min(2*wait, 100*time.Millisecond) {
		conn, err := dialFolder(dir, fileSocket)
		if err == nil {
			s, err := adoptLink(conn, spec)
			if err == nil {
				return s, nil
			}
			conn.Close()
		}
		// No socket, or nobody behind it: whoever holds the lock is on his way in or out.
		lock, lerr := takeLock(dir)
		if lerr == nil {
			lock.Close()
			return nil, nil
		}
		if !errors.Is(lerr, errHeld) {
			return nil, lerr
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("run %s: its keeper holds %s and does not answer (%w); is it stopped?", spec.Run, dir, errors.Join(err, ctx.Err()))
		case <-time.After(wait):
		}
	}
}

func adoptLink(conn net.Conn, spec *Spec) (Session, error) {
	_ = conn.SetReadDeadline(time.Now().Add(adoptWait))
	if err := writeMessage(conn, message{Op: opStatus}); err != nil {
		return nil, err
	}
	r := bufio.NewReader(conn)
	m, err := readMessage(r)
	for err == nil && m.Re != opStatus { // an event may come first
		m, err = readMessage(r)
	}
	if err != nil {
		return nil, err
	}
	if m.Nonce != spec.Nonce || m.Run != spec.Run {
		return nil, fmt.Errorf("a keeper of run %s answers for run %s", m.Run, spec.Run)
	}
	_ = conn.SetReadDeadline(time.Time{})
	p, _ := keeperOf(conn)
	l := newLink(conn, r, p)
	l.note(m)
	l.start(m.PID)
	return l, nil
}

// End implements [Runner].
func (k *Keepers) End(ctx context.Context, dir string) error {
	spec, err := ReadSpec(dir)
	if err != nil {
		return err
	}
	lock, err := waitLock(ctx, dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	proc, err := ReadProc(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		k.Log.Warn("run folder without a readable record of its process; looking for its mark", "run", spec.Run, "err", err)
	}
	if err := endTree(ctx, spec.Nonce, proc); err != nil {
		return fmt.Errorf("run %s: %w", spec.Run, err)
	}
	return closeRecord(dir, proc)
}

// waitLock takes a folder's lock, also when its dead holder is a moment behind:
// the kernel closes a dead process's connection before it lets go of its locks.
func waitLock(ctx context.Context, dir string) (*os.File, error) {
	for wait := time.Millisecond; ; wait *= 2 {
		lock, err := takeLock(dir)
		if !errors.Is(err, errHeld) || wait > time.Second {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
}

// closeRecord writes the end of a run whose keeper could not: no code, because
// nobody saw one.
func closeRecord(dir string, proc *Proc) error {
	if e, err := ReadExit(dir); err != nil || e != nil && e.Boot != "" {
		return err
	}
	e := &Exit{Started: proc != nil, Error: "its keeper died before it", Boot: bootID(), At: bootNow(), Wall: time.Now().UnixMilli()}
	if proc != nil && proc.Boot != bootID() {
		e.Unseen, e.Error = true, "the machine was rebooted"
	}
	if spec, err := ReadSpec(dir); err == nil {
		e.Means = meaning(dir, spec, e)
	}
	return WriteExit(dir, e)
}

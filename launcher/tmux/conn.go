package tmux

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// ErrGone says that the server, or the connection to it, ended before the answer
// came: whether the command was carried out is not known.
var ErrGone = errors.New("the tmux server is gone")

// maxLine bounds one line of an answer; what is longer ends the connection.
const maxLine = 1 << 20

// conn is one control-mode client. Commands are answered in the order they were sent.
type conn struct {
	s     *Server
	cmd   *exec.Cmd
	stdin *os.File // of the client, and so of the server: control mode hands both ends on to it
	out   *os.File
	done  chan struct{} // closed when nothing more is read
	turn  chan struct{} // one slot: who has it writes. Not the mutex: a write may have to wait for tmux

	mu    sync.Mutex
	queue []chan answer // who waits for which answer
}

type answer struct {
	out string
	err error
}

// dial starts the client, and with it the server when none runs.
func dial(ctx context.Context, s *Server) (*conn, error) {
	// The hold session's program waits for ever; -A takes the session that is there.
	cmd := exec.Command(s.cfg.Program, "-S", socket, "-f", "/dev/null", "-C",
		"new-session", "-A", "-s", hold, "-x", "80", "-y", "24", "--", "tail", "-f", "/dev/null")
	cmd.Dir, cmd.Env = s.cfg.Dir, s.cfg.Env
	in, stdin, err := os.Pipe() // its writes can be given a deadline
	if err != nil {
		return nil, fmt.Errorf("tmux: %w", err)
	}
	stdout, out, err := os.Pipe() // ours to close: a frozen server keeps its end of it when the client is dead
	if err != nil {
		in.Close()
		stdin.Close()
		return nil, fmt.Errorf("tmux: %w", err)
	}
	cmd.Stdin, cmd.Stdout, cmd.SysProcAttr = in, out, attr()
	err = cmd.Start()
	in.Close()
	out.Close() // the client's: its end is seen
	if err != nil {
		return nil, errors.Join(fmt.Errorf("tmux: %w", err), stdin.Close(), stdout.Close())
	}
	c := &conn{s: s, cmd: cmd, stdin: stdin, out: stdout, done: make(chan struct{}), turn: make(chan struct{}, 1)}
	first := c.wait() // of the words it was started with
	go c.read(stdout)
	select {
	case a := <-first:
		err = a.err
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err != nil {
		c.close()
		return nil, fmt.Errorf("tmux: its server does not answer: %w", err)
	}
	return c, nil
}

// wait adds somebody to those who wait.
func (c *conn) wait() chan answer {
	w := make(chan answer, 1)
	c.queue = append(c.queue, w)
	return w
}

func (c *conn) over() bool {
	select {
	case <-c.done:
		return true
	default:
		return false
	}
}

// do sends one command and waits for its answer.
func (c *conn) do(ctx context.Context, words ...string) (string, error) {
	l, err := line(words...)
	if err != nil {
		return "", err
	}
	w, err := c.send(ctx, l)
	if err != nil {
		return "", err
	}
	select {
	case a := <-w:
		return a.out, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// doAll sends several commands and then waits for all of their answers; the first that failed is told. All of them are
// carried out: each has to be right by itself.
func (c *conn) doAll(ctx context.Context, list [][]string) error {
	var waits []chan answer
	for _, words := range list {
		l, err := line(words...)
		if err != nil {
			return err
		}
		w, err := c.send(ctx, l)
		if err != nil {
			return err
		}
		waits = append(waits, w)
	}
	var first error
	for i, w := range waits {
		select {
		case a := <-w:
			if a.err != nil && first == nil {
				first = fmt.Errorf("%s: %w", strings.Join(list[i], " "), a.err)
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return first
}

// sendWait bounds how long a client may take to read a command. One that does not is frozen, or its server is.
const sendWait = 10 * time.Second

// send writes a command and answers where its answer comes. Nobody is held by a client that does not read: neither who
// sends, beyond its own time, nor who waits for its turn. A command that was written in part ends the connection.
func (c *conn) send(ctx context.Context, l string) (chan answer, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-c.done:
		return nil, ErrGone
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	by := time.Now().Add(sendWait)
	if at, ok := ctx.Deadline(); ok && at.Before(by) {
		by = at
	}
	c.mu.Lock()
	if c.over() {
		c.mu.Unlock()
		return nil, ErrGone
	}
	w := c.wait()
	c.mu.Unlock()
	err := c.stdin.SetWriteDeadline(by)
	if err == nil {
		stop := context.AfterFunc(ctx, func() { _ = c.stdin.SetWriteDeadline(time.Unix(1, 0)) })
		_, err = io.WriteString(c.stdin, l)
		stop()
	}
	if err == nil {
		return w, nil
	}
	c.drop() // the next command has a new client
	if errors.Is(err, os.ErrDeadlineExceeded) {
		err = errors.New("its client does not read what it is told: frozen, or its server is")
	} else {
		err = ErrGone
	}
	return nil, err
}

// read takes apart what tmux says: answers between %begin and %end or %error,
// and notices between them.
func (c *conn) read(r io.Reader) {
	sc := bufio.NewScanner(r)
	sc.Buffer(nil, maxLine)
	var out []string
	tag := ""
	for sc.Scan() {
		l := sc.Text()
		word, rest, _ := strings.Cut(l, " ")
		switch {
		case tag != "" && rest == tag && (word == "%end" || word == "%error"):
			a := answer{out: strings.Join(out, "\n")}
			if word == "%error" {
				a = answer{err: errors.New(strings.Join(out, "; "))}
			}
			c.answer(a)
			tag, out = "", nil
		case tag != "":
			out = append(out, l)
		case word == "%begin":
			tag = rest
		case strings.HasSuffix(word, "window-close"), strings.HasSuffix(word, "window-add"):
			c.s.note()
		}
	}
	c.gone()
}

func (c *conn) answer(a answer) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) > 0 {
		c.queue[0] <- a
		c.queue = c.queue[1:]
	}
}

// gone ends the connection: nobody waits for an answer that does not come.
func (c *conn) gone() {
	c.mu.Lock()
	close(c.done)
	for _, w := range c.queue {
		w <- answer{err: ErrGone}
	}
	c.queue = nil
	c.mu.Unlock()
	c.stdin.Close()
	c.out.Close()
	_ = c.cmd.Wait() // how the client ended says nothing that its silence does not
	c.s.note()
}

// drop ends the client; the server goes on. One whose server does not answer would not end by itself, and its output
// would have no end.
func (c *conn) drop() {
	_ = c.cmd.Process.Kill()
	c.out.Close()
}

// close is drop that waits for it.
func (c *conn) close() {
	c.drop()
	<-c.done
}

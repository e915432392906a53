package tmux

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
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
	stdin io.WriteCloser
	done  chan struct{} // closed when nothing more is read

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
	stdin, err := cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("tmux: %w", err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("tmux: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("tmux: %w", err)
	}
	c := &conn{s: s, cmd: cmd, stdin: stdin, done: make(chan struct{})}
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
	c.mu.Lock()
	if c.over() {
		c.mu.Unlock()
		return "", ErrGone
	}
	w := c.wait()
	_, err = io.WriteString(c.stdin, l)
	c.mu.Unlock()
	if err != nil {
		return "", ErrGone
	}
	select {
	case a := <-w:
		return a.out, a.err
	case <-ctx.Done():
		return "", ctx.Err()
	}
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
	_ = c.cmd.Wait() // how the client ended says nothing that its silence does not
	c.s.note()
}

// close ends the client; the server goes on. One whose server does not answer
// would not end by itself.
func (c *conn) close() {
	c.stdin.Close()
	_ = c.cmd.Process.Kill()
	<-c.done
}

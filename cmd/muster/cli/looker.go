package cli

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"net/url"
	"os"
	"os/signal"
	"strconv"
	"sync"
	"syscall"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/tty"
)

// looker is one look at a terminal of any machine: the link may be lost and found again.
type looker struct {
	cl         *api.Client
	q          url.Values
	in, out    *os.File
	verb, what string

	term   *tty.Terminal
	typed  chan []byte
	screen oneWriter // out, for what is shown and for what is told
	opened tty.Opened
	keys   tty.Keys
}

// oneWriter writes one thing after the other.
type oneWriter struct {
	mu sync.Mutex
	w  io.Writer
}

// Write implements io.Writer.
func (o *oneWriter) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(b)
}

// againWait is between two tries to find a link again.
const againWait = 700 * time.Millisecond

// errLeft: the person has left.
var errLeft = errors.New("left")

// run shows the terminal. The text is what the person is told last.
func (l *looker) run(ctx context.Context) (text string, err error) {
	var b [9]byte
	_, _ = rand.Read(b[:]) // never fails
	l.q.Set("look", hex.EncodeToString(b[:]))
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT)
	defer stop()
	conn, err := l.first(ctx)
	if err != nil {
		return "", err
	}
	if l.term, err = tty.Take(l.in, l.out); err != nil {
		conn.Close()
		return "", board.Errorf(board.Refused, "%s needs a terminal: %v", l.verb, err)
	}
	defer l.term.Close() // also of a panic
	l.typed, l.screen.w = make(chan []byte), l.out
	go l.read()
	for {
		err := l.show(ctx, conn)
		if end := new(tty.End); errors.As(err, &end) && !end.Again {
			l.term.Close()
			if end.Code == "left" {
				return l.leftText(), nil
			}
			if end.Code == string(board.Refused) {
				return "", board.Errorf(board.Refused, "%s", end.Text).WithHint("%s", end.Hint)
			}
			return end.Text, nil
		}
		if conn, err = l.again(ctx, err); err != nil {
			l.term.Close()
			if errors.Is(err, errLeft) {
				return l.leftText(), nil
			}
			if e := new(board.Error); errors.As(err, &e) && e.Check == "ended" {
				return e.Message, nil
			}
			return "", err
		}
	}
}

func (l *looker) leftText() string {
	if l.opened.Run == "" {
		return "left the shell on " + l.opened.Node + "; it has ended"
	}
	return "left run " + l.opened.Run + " on " + l.opened.Node + "; it goes on"
}

// first asks for the terminal, telling when that takes a moment.
func (l *looker) first(ctx context.Context) (net.Conn, error) {
	slow := time.AfterFunc(time.Second, func() { fmt.Fprintf(os.Stderr, "muster: looking for %s ...\n", oneLine(l.what)) })
	defer slow.Stop()
	r := l.ask(ctx, tty.SizeOf(l.out))
	if r.err != nil {
		return nil, r.err
	}
	return l.takes(r), nil
}

func (l *looker) ask(ctx context.Context, size tty.Size) found {
	l.q.Set("cols", strconv.Itoa(int(size.Cols)))
	l.q.Set("rows", strconv.Itoa(int(size.Rows)))
	o, conn, err := l.cl.Terminal(ctx, l.q)
	return found{o, conn, err}
}

// found is what came of asking for the terminal.
type found struct {
	opened tty.Opened
	conn   net.Conn
	err    error
}

// takes goes on with what was found.
func (l *looker) takes(r found) net.Conn {
	if l.opened = r.opened; r.opened.Run != "" {
		l.q.Set("run", r.opened.Run) // a link that is lost is found again to this session, and no other
	}
	return r.conn
}

// read reads what the person types, as long as this process lives.
func (l *looker) read() {
	for {
		b := make([]byte, 16<<10)
		n, err := l.in.Read(b)
		if n > 0 {
			l.typed <- b[:n]
		}
		if err != nil {
			close(l.typed)
			return
		}
	}
}

// show goes on with one link until it ends.
func (l *looker) show(ctx context.Context, conn net.Conn) error {
	link := tty.NewLink(conn)
	end := make(chan error, 1)
	go func() { end <- link.Run(ctx, &l.screen) }()
	if l.opened.Why != "" {
		l.tell("read only: " + l.opened.Why)
	}
	for typed := l.typed; ; {
		select {
		case b, ok := <-typed:
			switch {
			case !ok:
				typed = nil // its end comes once
				link.Leave()
			case l.keys.Leaves(b, l.opened.ReadOnly):
				link.Leave()
			case !l.opened.ReadOnly && !link.Type(b):
				l.tell("\a")
			}
		case <-l.term.Resized():
			link.Resize(l.term.Size())
		case err := <-end:
			return err
		}
	}
}

// again finds the link again. What is typed meanwhile is thrown away; the key that leaves, leaves.
func (l *looker) again(ctx context.Context, why error) (net.Conn, error) {
	since := time.Now()
	said := whyLost(why)
	if l.opened.Run == "" { // a shell has ended with its link
		return nil, board.Errorf(board.Unavailable, "the link to the shell on %s is lost (%s), and the shell has ended with it", l.opened.Node, said)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan found)
	try := func() {
		r := l.ask(ctx, l.term.Size())
		select {
		case results <- r:
		case <-ctx.Done():
			if r.conn != nil {
				r.conn.Close()
			}
		}
	}
	go try()
	l.tellLost(since, said)
	for wait := againWait; ; {
		select {
		case b, ok := <-l.typed:
			if !ok || l.keys.Leaves(b, true) {
				return nil, errLeft
			}
			l.tellLost(since, said)
		case <-l.term.Resized():
		case <-ctx.Done():
			return nil, errLeft
		case r := <-results:
			if r.err == nil {
				return l.takes(r), nil
			}
			e := new(board.Error)
			if !errors.As(r.err, &e) || e.Code != board.Unavailable && e.Code != board.Internal {
				return nil, r.err
			}
			if said = e.Message; e.Check == "no_machine" {
				l.tellLost(since, said)
			} else {
				l.tellLost(since, whyLost(why)+"; "+said)
			}
			t := time.AfterFunc(wait, try)
			defer t.Stop()
			wait = min(wait*3/2, 5*time.Second)
		}
	}
}

func whyLost(err error) string {
	if end := new(tty.End); errors.As(err, &end) {
		return end.Text
	}
	if errors.Is(err, tty.ErrStopped) {
		return "nothing is heard of it any more"
	}
	return "the connection broke"
}

func (l *looker) tellLost(since time.Time, why string) {
	l.tell(fmt.Sprintf("no link to %s since %s: %s. Trying again; what you type is thrown away; Ctrl-] leaves", l.opened.Node, since.Format("15:04:05"), why))
}

// tell shows a line over the lowest of the terminal, and leaves the cursor where it was.
func (l *looker) tell(text string) {
	if text == "\a" {
		_, _ = l.screen.Write([]byte(text))
		return
	}
	size := l.term.Size()
	text = fmt.Sprintf("%.*s", max(int(size.Cols)-1, 1), oneLine(" muster: "+text+" "))
	_, _ = fmt.Fprintf(&l.screen, "\x1b7\x1b[r\x1b[%d;1H\x1b[0;7m%s\x1b[0m\x1b[K\x1b8", size.Rows, text)
}

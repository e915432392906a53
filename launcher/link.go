package launcher

import (
	"bufio"
	"net"
	"sync"
	"time"

	"muster/board/lease"
)

// link is the [Session] behind a keeper's connection.
type link struct {
	conn    net.Conn
	keeper  int
	started chan struct{}
	done    chan struct{}
	notes   *notes // of its pane

	mu    sync.Mutex
	pid   int
	known bool          // ahead has been measured
	ahead time.Duration // how far the keeper's boot clock is ahead of ours, never too much
}

func newLink(conn net.Conn, r *bufio.Reader, keeper int) *link {
	l := &link{conn: conn, keeper: keeper, started: make(chan struct{}), done: make(chan struct{}), notes: newNotes()}
	go l.read(r)
	return l
}

func (l *link) read(r *bufio.Reader) {
	defer close(l.done)
	for {
		m, err := readMessage(r)
		if err != nil {
			l.conn.Close()
			return
		}
		l.note(m)
		if m.Event == evStarted {
			l.start(m.PID)
		}
	}
}

// note measures the keeper's clock: it was read before the message came, so the
// difference is at most the true one, and a deadline told by it never too late.
// The two clocks differ only when node and keeper are in different time
// namespaces.
func (l *link) note(m message) {
	if m.Event == evPane || m.Re != "" {
		st := paneState{Shown: m.Shown, Quiet: m.Quiet, Bytes: m.Bytes}
		if m.Turn != nil {
			st.Turn = *m.Turn
		}
		l.notes.set(st)
	}
	if m.Now == 0 {
		return
	}
	d := m.Now.Sub(bootNow())
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.known || d > l.ahead {
		l.known, l.ahead = true, d
	}
}

func (l *link) start(pid int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if pid == 0 || l.pid != 0 {
		return
	}
	l.pid = pid
	close(l.started)
}

func (l *link) PID() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.pid
}

func (l *link) Keeper() int              { return l.keeper }
func (l *link) Started() <-chan struct{} { return l.started }
func (l *link) Done() <-chan struct{}    { return l.done }

func (l *link) Extend(deadline lease.Instant) error {
	l.mu.Lock()
	ahead := l.ahead
	l.mu.Unlock()
	return l.tell(message{Op: opExtend, Deadline: deadline.Add(ahead)})
}

func (l *link) Stop(kill time.Duration, why string) error {
	return l.tell(message{Op: opStop, Kill: kill, Why: why})
}

func (l *link) tell(m message) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return writeMessage(l.conn, m)
}

func (l *link) Close() {
	l.conn.Close()
	<-l.done
}

package launcher

import (
	"bufio"
	"encoding/json"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"muster/board/lease"
)

// A message of the keeper's control socket: one JSON object a line. A node
// asks with Op, the keeper answers with the same Op in Re, and tells an Event
// by itself. Now is always the keeper's boot clock: node and keeper may stand
// in different time namespaces, so a moment travels in the keeper's time.
type message struct {
	V     int    `json:"v"`
	Op    string `json:"op,omitempty"`
	Re    string `json:"re,omitempty"`
	Event string `json:"event,omitempty"`

	Now      lease.Instant `json:"now,omitempty"`
	Deadline lease.Instant `json:"deadline,omitempty"`
	Kill     time.Duration `json:"kill,omitempty"`
	Why      string        `json:"why,omitempty"`
	Dir      string        `json:"dir,omitempty"`
	Memory   int64         `json:"memory,omitempty"` // what the session has now, bytes; 0: not known

	Run   string `json:"run,omitempty"`
	Nonce string `json:"nonce,omitempty"`
	PID   int    `json:"pid,omitempty"`
	State string `json:"state,omitempty"`

	Shown bool `json:"shown,omitempty"` // of a pane: its program has printed something
	Quiet bool `json:"quiet,omitempty"` // and prints nothing now
	Bytes bool `json:"bytes,omitempty"` // and its keeper reads bytes as tmux.Typed writes them

	Turn *turnState `json:"turn,omitempty"` // of a session: what it told of its turns
}

// Ops and events of the control socket.
const (
	opTake   = "take"   // to a spare keeper: this is your folder
	opStatus = "status" // who are you, and how is it
	opExtend = "extend" // the lease's deadline moved forward
	opStop   = "stop"   // end the session: TERM, KILL after Kill
	opMemory = "memory" // how much memory has the session
	opTurn   = "turn"   // from within a session: a word of its program's hooks

	evStarted = "started" // the session executes
	evPane    = "pane"    // its pane shows something, is quiet, or is not any more
	evEnded   = "ended"   // its exit record is written; nothing of it lives
)

// The states a keeper answers.
const (
	stateStarting = "starting"
	stateRunning  = "running"
	stateEnding   = "ending"
)

// command is a message from a connection, on its way to the keeper's one loop.
type command struct {
	message
	reply func(message)
}

// hub holds the keeper's connections: it hands their commands to the loop and
// tells events to all.
type hub struct {
	cmds     chan command
	done     chan struct{}
	mu       sync.Mutex
	conns    map[net.Conn]bool
	listener net.Listener
	wg       sync.WaitGroup
}

func newHub() *hub {
	return &hub{cmds: make(chan command), done: make(chan struct{}), conns: map[net.Conn]bool{}}
}

// listen opens the folder's socket. Its name is relative, because a whole path
// may be longer than the 108 bytes of a socket's name.
func (h *hub) listen() error {
	if err := os.Remove(fileSocket); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	l, err := net.Listen("unix", fileSocket)
	if err != nil {
		return err
	}
	if err := os.Chmod(fileSocket, 0o600); err != nil {
		l.Close()
		return err
	}
	h.listener = l
	h.wg.Add(1)
	go func() {
		defer h.wg.Done()
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			if !samePeer(c) {
				c.Close()
				continue
			}
			h.add(c, bufio.NewReader(c))
		}
	}()
	return nil
}

func (h *hub) add(c net.Conn, r *bufio.Reader) {
	h.mu.Lock()
	h.conns[c] = true
	h.mu.Unlock()
	h.wg.Add(1)
	go func() {
		defer h.wg.Done()
		h.serve(c, r)
		h.mu.Lock()
		delete(h.conns, c)
		h.mu.Unlock()
		c.Close()
	}()
}

func (h *hub) serve(c net.Conn, r *bufio.Reader) {
	for {
		m, err := readMessage(r)
		if err != nil {
			return
		}
		answered := make(chan struct{})
		cmd := command{m, func(re message) {
			re.Re, re.Now = m.Op, bootNow()
			h.send(c, re)
			close(answered)
		}}
		select {
		case h.cmds <- cmd:
			<-answered
		case <-h.done:
			return
		}
	}
}

// send writes one line; a peer that does not read loses its connection, not
// the keeper its time.
func (h *hub) send(c net.Conn, m message) {
	if err := writeMessage(c, m); err != nil {
		c.Close()
	}
}

func (h *hub) tell(m message) {
	m.Now = bootNow()
	h.mu.Lock()
	list := make([]net.Conn, 0, len(h.conns))
	for c := range h.conns {
		list = append(list, c)
	}
	h.mu.Unlock()
	for _, c := range list {
		h.send(c, m)
	}
}

func (h *hub) close() {
	close(h.done)
	if h.listener != nil {
		h.listener.Close() // removes the socket too
	}
	h.mu.Lock()
	for c := range h.conns {
		c.Close()
	}
	h.mu.Unlock()
	h.wg.Wait()
}

const (
	maxMessage  = 64 << 10
	messageWait = time.Second
)

var errTooLong = errors.New("message too long")

func readMessage(r *bufio.Reader) (m message, err error) {
	var line []byte
	for {
		part, more, err := r.ReadLine()
		if err != nil {
			return m, err
		}
		line = append(line, part...)
		if len(line) > maxMessage {
			return m, errTooLong
		}
		if !more {
			break
		}
	}
	return m, json.Unmarshal(line, &m)
}

func writeMessage(c net.Conn, m message) error {
	m.V = format
	b, err := json.Marshal(m)
	if err != nil {
		return err
	}
	if err := c.SetWriteDeadline(time.Now().Add(messageWait)); err != nil {
		return err
	}
	_, err = c.Write(append(b, '\n'))
	return err
}

package tty

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"sync/atomic"
	"time"
)

// Protocol names what is spoken here, also in the Upgrade header of HTTP.
const Protocol = "muster-terminal/1"

// Times of a link. A beat goes from the session's machine to the person and back.
const (
	beatEvery = time.Second
	// Silence is how long a side that hears nothing waits until the link counts as stopped.
	Silence = 5 * time.Second
	// late is how old the beat may be that typed bytes are marked with. It is less than what any
	// side waits before it tells that the link has stopped: a stop may be seen on the way earlier
	// than by silence, and what was typed before that was told must not arrive after it.
	late = 3 * time.Second
)

// Bounds in bytes.
const (
	window   = 128 << 10 // on its way and not taken yet, each way
	piece    = 16 << 10  // of one frame of a terminal
	maxFrame = 64 << 10
)

// Kinds of frames: a letter, a length (4 bytes, big end first), and so many bytes.
const (
	kindAsk    = 'A' // to the session's machine, once: JSON Ask
	kindOpened = 'O' // its answer: JSON Opened
	kindEnd    = 'E' // or, and at any time: JSON End. Nothing follows
	kindScreen = 's' // for the person's terminal
	kindTyped  = 't' // the newest beat heard (8 bytes), then what was typed
	kindTaken  = 'w' // so many bytes (4) have left the window
	kindSize   = 'z' // columns and rows, 2 bytes each
	kindBeat   = 'b' // a number (8), and back as it is
	kindLeave  = 'q' // the person goes; the session stays
)

// Size is that of a terminal, in characters.
type Size struct {
	Cols uint16 `json:"cols"`
	Rows uint16 `json:"rows"`
}

// Ask is what a person wants to look at, as the machine that has it hears it. Who asks is told by
// the node whose door was used; what they may is found by the machine that answers.
type Ask struct {
	ID       string `json:"id"`              // of this look; the same after a link was lost
	Run      string `json:"run,omitempty"`   // a pane
	Shell    bool   `json:"shell,omitempty"` // or a shell of its own: in the workspace of Card, or at home
	Card     string `json:"card,omitempty"`
	Name     string `json:"name"`             // of the person
	Secret   string `json:"secret,omitempty"` // their token, when they came with one
	ReadOnly bool   `json:"read_only,omitempty"`
	Term     string `json:"term,omitempty"` // TERM of their terminal
	Color    bool   `json:"color,omitempty"`
	Size     Size   `json:"size"`
}

// Opened is the answer to an [Ask].
type Opened struct {
	Run      string `json:"run,omitempty"`
	Of       string `json:"of,omitempty"` // of a shell: the run whose workspace it is in
	Node     string `json:"node"`         // name of the machine
	Who      string `json:"who"`
	ReadOnly bool   `json:"read_only,omitempty"`
	Why      string `json:"why,omitempty"` // it is read-only though it was not asked for so
	Path     string `json:"path,omitempty"`
}

// End says why there is nothing more to see.
type End struct {
	Code  string `json:"code"` // of board.Error when refused; "ended", "left", "stopped", "late", "changed"
	Text  string `json:"text"`
	Hint  string `json:"hint,omitempty"`
	Again bool   `json:"again,omitempty"` // asking again may help
}

func (e *End) Error() string { return e.Text }

// errProtocol: the other side does not speak this protocol.
var errProtocol = errors.New("not the terminal protocol")

// frames writes frames to a connection from many goroutines; a peer that takes nothing for
// [Silence] is an error.
type frames struct {
	c     net.Conn
	brief atomic.Bool // there is no more time to wait
	mu    sync.Mutex
	buf   []byte
}

// hurryWait is how long a last word may take.
const hurryWait = 200 * time.Millisecond

// hurry ends what waits to be written, soon.
func (f *frames) hurry() {
	f.brief.Store(true)
	_ = f.c.SetWriteDeadline(time.Now().Add(hurryWait))
}

func (f *frames) write(kind byte, parts ...[]byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.buf = append(f.buf[:0], kind, 0, 0, 0, 0)
	for _, p := range parts {
		f.buf = append(f.buf, p...)
	}
	binary.BigEndian.PutUint32(f.buf[1:], uint32(len(f.buf)-5))
	wait := Silence
	if f.brief.Load() {
		wait = hurryWait
	}
	if err := f.c.SetWriteDeadline(time.Now().Add(wait)); err != nil {
		return err
	}
	_, err := f.c.Write(f.buf)
	return err
}

func (f *frames) writeJSON(kind byte, x any) error {
	b, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return f.write(kind, b)
}

// reader reads frames; the body of one is good until the next.
type reader struct {
	c    net.Conn
	head [5]byte
	body []byte
}

// next waits for a frame for at most d.
func (r *reader) next(d time.Duration) (kind byte, body []byte, err error) {
	if err := r.c.SetReadDeadline(time.Now().Add(d)); err != nil {
		return 0, nil, err
	}
	if _, err := io.ReadFull(r.c, r.head[:]); err != nil {
		return 0, nil, err
	}
	n := binary.BigEndian.Uint32(r.head[1:])
	if n > maxFrame {
		return 0, nil, fmt.Errorf("a frame of %d bytes: %w", n, errProtocol)
	}
	if cap(r.body) < int(n) {
		r.body = make([]byte, n, max(int(n), 512))
	}
	r.body = r.body[:n]
	_, err = io.ReadFull(r.c, r.body)
	return r.head[0], r.body, err
}

// Request sends what is asked for and waits for the answer; an [*End] is an error.
func Request(c net.Conn, a Ask, wait time.Duration) (Opened, error) {
	f := frames{c: c}
	if err := f.writeJSON(kindAsk, a); err != nil {
		return Opened{}, err
	}
	return Opening(c, wait)
}

// Opening waits for the answer to what was asked for.
func Opening(c net.Conn, wait time.Duration) (o Opened, err error) {
	err = readAs(c, kindOpened, wait, &o)
	return o, err
}

// Accept reads what is asked for.
func Accept(c net.Conn, wait time.Duration) (Ask, error) {
	var a Ask
	err := readAs(c, kindAsk, wait, &a)
	a.Size = a.Size.bounded()
	return a, err
}

// Answer lets a person in.
func Answer(c net.Conn, o Opened) error { return (&frames{c: c}).writeJSON(kindOpened, o) }

// Refuse is the answer to one who is not let in.
func Refuse(c net.Conn, e End) error { return (&frames{c: c}).writeJSON(kindEnd, e) }

func readAs(c net.Conn, want byte, wait time.Duration, x any) error {
	r := reader{c: c}
	kind, body, err := r.next(wait)
	switch {
	case err != nil:
		return err
	case kind == kindEnd:
		e := new(End)
		if err := json.Unmarshal(body, e); err != nil {
			return fmt.Errorf("%w: %w", errProtocol, err)
		}
		return e
	case kind != want:
		return fmt.Errorf("%w: a frame %q instead of %q", errProtocol, kind, want)
	}
	if err := json.Unmarshal(body, x); err != nil {
		return fmt.Errorf("%w: %w", errProtocol, err)
	}
	return c.SetDeadline(time.Time{})
}

// MaxSide is the largest number of columns and of rows: a screen's memory grows with both, and who only
// looks on may say them, too.
const MaxSide = 1000

// sizeOf reads the body of a frame of that kind; more than [MaxSide] is that.
func sizeOf(b []byte) (Size, bool) {
	if len(b) != 4 {
		return Size{}, false
	}
	s := Size{binary.BigEndian.Uint16(b), binary.BigEndian.Uint16(b[2:])}.bounded()
	return s, s.Cols > 0 && s.Rows > 0
}

func (s Size) bounded() Size { return Size{min(s.Cols, MaxSide), min(s.Rows, MaxSide)} }

func (s Size) bytes() []byte {
	return binary.BigEndian.AppendUint16(binary.BigEndian.AppendUint16(nil, s.Cols), s.Rows)
}

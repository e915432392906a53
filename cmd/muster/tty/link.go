package tty

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"sync"
	"time"
)

// ErrStopped: nothing was heard of the session's machine for [Silence].
var ErrStopped = errors.New("the link has stopped")

// Link is the person's side of one look.
type Link struct {
	c     net.Conn
	out   frames
	room  *room  // for what is typed
	typed *queue // waits for that room
	shown *queue // waits for the person's terminal

	mu   sync.Mutex
	beat uint64 // the newest heard
	near sync.Cond
	end  error
	over chan struct{}
}

// pending is how much may wait to be sent: a large paste.
const pending = 1 << 20

// NewLink goes on with a connection that was let in (see [Request]).
func NewLink(c net.Conn) *Link {
	l := &Link{c: c, out: frames{c: c}, room: newRoom(), typed: newQueue(pending), shown: newQueue(window), over: make(chan struct{})}
	l.near.L = &l.mu
	return l
}

// Type sends what was typed; false when that is not possible: it is thrown away.
func (l *Link) Type(b []byte) bool { return l.typed.add(b) }

// Resize tells the size of the person's terminal.
func (l *Link) Resize(s Size) { _ = l.out.write(kindSize, s.bytes()) }

// Leave ends the look; the session stays.
func (l *Link) Leave() {
	l.finish(&End{Code: "left", Text: "left"})
}

// Run shows the session on out until the look ends. The error is an [*End], [ErrStopped], or why
// the connection broke. What was typed and not sent is thrown away.
func (l *Link) Run(ctx context.Context, out io.Writer) error {
	stop := context.AfterFunc(ctx, l.Leave)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(l.listen)
	wg.Go(l.send)
	wg.Go(func() { l.show(out) })
	<-l.over
	if e := new(End); errors.As(l.end, &e) && e.Code == "left" {
		l.out.hurry()
		_ = l.out.write(kindLeave)
	}
	_ = l.c.Close()
	l.room.end()
	l.typed.end()
	l.shown.end()
	l.mu.Lock()
	l.near.Broadcast()
	l.mu.Unlock()
	wg.Wait()
	return l.end
}

func (l *Link) finish(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.end == nil {
		l.end = err
		close(l.over)
	}
}

func (l *Link) listen() {
	r := reader{c: l.c}
	for {
		kind, body, err := r.next(Silence)
		if err != nil {
			if e, ok := err.(net.Error); ok && e.Timeout() {
				err = ErrStopped
			}
			l.finish(err)
			return
		}
		if err := l.take(kind, body); err != nil {
			l.finish(err)
			return
		}
	}
}

func (l *Link) take(kind byte, body []byte) error {
	switch kind {
	case kindScreen:
		if !l.shown.add(body) {
			return fmt.Errorf("%w: more than there was room for", errProtocol)
		}
	case kindBeat:
		if len(body) != 8 {
			return errProtocol
		}
		l.mu.Lock()
		l.beat = binary.BigEndian.Uint64(body)
		l.near.Broadcast()
		l.mu.Unlock()
		return l.out.write(kindBeat, body)
	case kindTaken:
		if len(body) != 4 || !l.room.give(int(binary.BigEndian.Uint32(body))) {
			return errProtocol
		}
	case kindEnd:
		e := new(End)
		if err := json.Unmarshal(body, e); err != nil {
			return fmt.Errorf("%w: %w", errProtocol, err)
		}
		l.shown.drain(drainWait)
		return e
	}
	return nil
}

// show gives the person's terminal what there is to show, and tells what it has taken.
func (l *Link) show(out io.Writer) {
	b := make([]byte, piece)
	for {
		n := l.shown.take(b)
		if n == 0 {
			return
		}
		if _, err := out.Write(b[:n]); err != nil {
			l.finish(fmt.Errorf("this terminal: %w", err))
			return
		}
		l.shown.took(n)
		if l.out.write(kindTaken, binary.BigEndian.AppendUint32(nil, uint32(n))) != nil {
			return // told where it is read
		}
	}
}

// send sends what was typed, marked with the newest beat.
func (l *Link) send() {
	if l.firstBeat() == 0 {
		return
	}
	b := make([]byte, piece)
	for {
		n := l.typed.take(b)
		if n == 0 {
			return
		}
		for rest := b[:n]; len(rest) > 0; {
			k := l.room.take(len(rest))
			if k == 0 {
				return
			}
			l.mu.Lock()
			beat := l.beat
			l.mu.Unlock()
			if l.out.write(kindTyped, binary.BigEndian.AppendUint64(nil, beat), rest[:k]) != nil {
				return
			}
			rest = rest[k:]
		}
	}
}

// firstBeat waits for a beat; 0 when the look ends before.
func (l *Link) firstBeat() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	for l.beat == 0 && l.end == nil {
		l.near.Wait()
	}
	return l.beat
}

// drainWait bounds how long the last of a session's output may take.
const drainWait = 2 * time.Second

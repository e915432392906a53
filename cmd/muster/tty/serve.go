package tty

import (
	"context"
	"encoding/binary"
	"errors"
	"net"
	"sync"
	"time"
)

// Program is a terminal with something behind it, on this machine.
type Program interface {
	Read([]byte) (int, error)
	Write([]byte) (int, error)
	Resize(Size) error
	Close() error
}

// Hosting is how a program is shown to one person.
type Hosting struct {
	ReadOnly bool                 // what is typed is thrown away
	Now      func() time.Duration // a clock that counts sleep
	Ended    func() End           // asked when the program's terminal has ended: what became of it
	Wrote    func()               // called before the first byte that is typed; may be nil
}

// Left is how a look ended, for the record.
type Left struct {
	Typed int64  // bytes
	Why   string // "left", "ended", "silent", "lost", "late", "refused" (ctx ended with an [*End])
}

// host is the session's side of one link.
type host struct {
	Hosting
	p     Program
	c     net.Conn
	out   frames
	room  *room  // for the screen
	typed *queue // on its way to the program
	first sync.Once

	mu    sync.Mutex
	beats map[uint64]time.Duration // when the newest were sent
	last  uint64
	left  Left
	over  chan struct{}
	once  sync.Once // closes over
}

// keptBeats is for how many beats a person's machine may be behind at most.
const keptBeats = int(Silence/beatEvery) + 2

// Serve shows a program to the person at the other end of c until one of the three ends, or ctx does.
// Both c and p are closed then. Where ctx ends with an [*End] as its cause, that is what the person is told.
func Serve(ctx context.Context, c net.Conn, p Program, h Hosting) Left {
	s := &host{Hosting: h, p: p, c: c, out: frames{c: c}, room: newRoom(), typed: newQueue(window), beats: map[uint64]time.Duration{}, over: make(chan struct{})}
	stop := context.AfterFunc(ctx, func() {
		e, why := &End{Code: "stopped", Text: "this machine's node stops; the session goes on", Again: true}, "lost"
		if errors.As(context.Cause(ctx), &e) {
			why = "refused"
		}
		s.out.hurry()
		_ = s.out.writeJSON(kindEnd, e)
		s.finish(why)
	})
	defer stop()
	var wg sync.WaitGroup
	for _, part := range []func(){s.beat, s.print, s.listen, s.feed} {
		wg.Go(part)
	}
	<-s.over
	s.room.end()
	s.typed.end()
	_ = c.Close()
	_ = p.Close()
	wg.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.left
}

// finish ends the look; the first reason counts.
func (s *host) finish(why string) {
	s.because(why)
	s.once.Do(func() { close(s.over) })
}

// because notes why the look ends, which the person may hear, and act on, before it has ended here.
func (s *host) because(why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.left.Why == "" {
		s.left.Why = why
	}
}

// beat tells the person's side that the link lives, and what to mark typed bytes with.
func (s *host) beat() {
	tick := time.NewTicker(beatEvery)
	defer tick.Stop()
	for {
		s.mu.Lock()
		s.last++
		n := s.last
		s.beats[n] = s.Now()
		delete(s.beats, n-uint64(keptBeats))
		s.mu.Unlock()
		if s.out.write(kindBeat, binary.BigEndian.AppendUint64(nil, n)) != nil {
			s.finish("lost")
			return
		}
		select {
		case <-tick.C:
		case <-s.over:
			return
		}
	}
}

// print sends what the program shows, as far as there is room: the rest stays in its terminal.
func (s *host) print() {
	b := make([]byte, piece)
	for {
		n := s.room.take(len(b))
		if n == 0 {
			return
		}
		k, err := s.p.Read(b[:n])
		s.room.give(n - k)
		if k > 0 && s.out.write(kindScreen, b[:k]) != nil {
			s.finish("lost")
			return
		}
		if err != nil {
			s.tellEnd()
			return
		}
	}
}

// tellEnd says what became of the program, unless it is the look that has ended.
func (s *host) tellEnd() {
	select {
	case <-s.over:
		return
	default:
	}
	s.because("ended")
	_ = s.out.writeJSON(kindEnd, s.Ended())
	s.finish("ended")
}

// listen takes what comes of the person. One who is silent is gone: the answers to
// beats come by themselves.
func (s *host) listen() {
	r := reader{c: s.c}
	for {
		kind, body, err := r.next(Silence)
		if err != nil {
			why := "lost"
			if e, ok := err.(net.Error); ok && e.Timeout() {
				why = "silent"
			}
			s.finish(why)
			return
		}
		if why := s.take(kind, body); why != "" {
			s.finish(why)
			return
		}
	}
}

// take acts on one frame; a reason ends the look.
func (s *host) take(kind byte, body []byte) (over string) {
	switch kind {
	case kindTyped:
		if len(body) < 8 {
			return "lost"
		}
		if !s.fresh(binary.BigEndian.Uint64(body)) {
			_ = s.out.writeJSON(kindEnd, End{Code: "late", Text: "what was typed came too late and was thrown away: the link had stopped", Again: true})
			return "late"
		}
		if !s.typed.add(body[8:]) {
			return "lost" // more than it had room for
		}
	case kindTaken:
		if len(body) != 4 || !s.room.give(int(binary.BigEndian.Uint32(body))) {
			return "lost"
		}
	case kindSize:
		if size, ok := sizeOf(body); ok {
			_ = s.p.Resize(size)
		}
	case kindLeave:
		return "left"
	}
	return "" // an answer to a beat; or of a later version
}

// fresh tells whether the person's side has heard this machine a moment ago: what was typed
// before a stop (of the link, of a process, of a machine) is not typed after it.
func (s *host) fresh(beat uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	at, ok := s.beats[beat]
	return ok && s.Now()-at <= late
}

// feed gives the program what was typed, in its own time.
func (s *host) feed() {
	b := make([]byte, piece)
	for {
		n := s.typed.take(b)
		if n == 0 {
			return
		}
		if !s.ReadOnly {
			if s.Wrote != nil {
				s.first.Do(s.Wrote)
			}
			if _, err := s.p.Write(b[:n]); err != nil {
				return // its terminal has ended: that is told where it is read
			}
			s.mu.Lock()
			s.left.Typed += int64(n)
			s.mu.Unlock()
		}
		if s.out.write(kindTaken, binary.BigEndian.AppendUint32(nil, uint32(n))) != nil {
			s.finish("lost")
			return
		}
	}
}

package tty

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// fakeT is a program in memory: what it prints is read from prints, what is typed ends in typed.
type fakeT struct {
	prints *io.PipeReader
	print  *io.PipeWriter
	mu     sync.Mutex
	typed  bytes.Buffer
	sizes  []Size
	block  chan struct{} // not nil: it reads nothing until closed
}

func newFake() *fakeT {
	f := &fakeT{}
	f.prints, f.print = io.Pipe()
	return f
}

func (f *fakeT) Read(b []byte) (int, error) { return f.prints.Read(b) }
func (f *fakeT) Write(b []byte) (int, error) {
	if f.block != nil {
		<-f.block
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.typed.Write(b)
}
func (f *fakeT) Resize(s Size) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.sizes = append(f.sizes, s)
	return nil
}
func (f *fakeT) Close() error { return f.prints.CloseWithError(io.EOF) }
func (f *fakeT) got() string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.typed.String()
}

// screenT is a person's terminal; while held it takes nothing.
type screenT struct {
	mu   sync.Mutex
	b    bytes.Buffer
	hold chan struct{}
}

func (s *screenT) Write(b []byte) (int, error) {
	if s.hold != nil {
		<-s.hold
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *screenT) text() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// lookT is one look at a fake program over a pipe.
type lookT struct {
	f      *fakeT
	l      *Link
	screen *screenT
	left   chan Left
	end    chan error
	near   net.Conn
	far    net.Conn
}

func look(h Hosting) *lookT {
	x := &lookT{f: newFake(), screen: &screenT{}, left: make(chan Left, 1), end: make(chan error, 1)}
	x.near, x.far = net.Pipe()
	begun := time.Now()
	if h.Now == nil {
		h.Now = func() time.Duration { return time.Since(begun) }
	}
	if h.Ended == nil {
		h.Ended = func() End { return End{Code: "ended", Text: "the session ended"} }
	}
	x.l = NewLink(x.near)
	go func() { x.left <- Serve(context.Background(), x.far, x.f, h) }()
	go func() { x.end <- x.l.Run(context.Background(), x.screen) }()
	return x
}

// Every byte that is typed and printed arrives as it is; sizes do; leaving ends the look and nothing else.
func TestBytesArriveAsTheyAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := look(Hosting{})
		var all []byte
		for i := range 256 {
			all = append(all, byte(i))
		}
		all = bytes.Repeat(all, 1500) // more than a window
		x.l.Resize(Size{20, 5})
		x.l.Resize(Size{65535, 65534})
		if !x.l.Type(all) {
			t.Fatal("it was not taken")
		}
		if _, err := x.f.print.Write(all); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if x.f.got() != string(all) || x.screen.text() != string(all) {
			t.Errorf("typed %d bytes, printed %d; want %d, as they are", len(x.f.got()), len(x.screen.text()), len(all))
		}
		if !slices.Equal(x.f.sizes, []Size{{20, 5}, {MaxSide, MaxSide}}) {
			t.Errorf("sizes %v", x.f.sizes)
		}
		x.l.Leave()
		if left := <-x.left; left != (Left{Typed: int64(len(all)), Why: "left"}) {
			t.Errorf("left %+v", left)
		}
		var e *End
		if err := <-x.end; !errors.As(err, &e) || e.Code != "left" {
			t.Errorf("the person's side ended with %v", err)
		}
	})
}

// Who may only look types nothing.
func TestReadOnlyTypesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		wrote := false
		x := look(Hosting{ReadOnly: true, Wrote: func() { wrote = true }})
		x.l.Type(bytes.Repeat([]byte("rm -rf\r"), 50<<10))
		time.Sleep(time.Minute)
		if x.f.got() != "" || wrote {
			t.Errorf("the program read %q", x.f.got())
		}
		x.l.Leave()
		if left := <-x.left; left.Typed != 0 {
			t.Errorf("left %+v", left)
		}
		<-x.end
	})
}

// A terminal that takes nothing costs one window: the program's is read no further. When it takes
// again, what was printed goes on.
func TestSlowViewerHoldsOneWindow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := look(Hosting{})
		x.screen.hold = make(chan struct{})
		var mu sync.Mutex
		read := 0
		go func() {
			for {
				n, err := x.f.print.Write(make([]byte, 1<<10))
				mu.Lock()
				read += n
				mu.Unlock()
				if err != nil {
					return
				}
			}
		}()
		time.Sleep(10 * time.Minute)
		mu.Lock()
		held := read
		mu.Unlock()
		if held > window+piece {
			t.Errorf("%d bytes were read of a program that nobody sees; a window is %d", held, window)
		}
		x.l.Type([]byte("\x03"))
		time.Sleep(time.Second)
		if x.f.got() != "\x03" {
			t.Errorf("what was typed meanwhile did not arrive: %q", x.f.got())
		}
		close(x.screen.hold)
		x.f.print.CloseWithError(io.EOF)
		var e *End
		if err := <-x.end; !errors.As(err, &e) || e.Code != "ended" {
			t.Errorf("ended with %v", err)
		}
		if left := <-x.left; left.Why != "ended" {
			t.Errorf("left %+v", left)
		}
	})
}

// A program that reads nothing holds up what is typed, not what it prints, and not the look.
func TestDeafProgram(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		x := look(Hosting{})
		x.f.block = make(chan struct{})
		if !x.l.Type(make([]byte, pending)) {
			t.Error("a megabyte is not taken")
		}
		time.Sleep(time.Minute)
		if x.l.Type(make([]byte, pending)) {
			t.Error("what is typed into a program that reads nothing has no bound")
		}
		if _, err := x.f.print.Write(bytes.Repeat([]byte("x"), 10*window)); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
		if n := len(x.screen.text()); n != 10*window {
			t.Errorf("%d bytes were shown", n)
		}
		x.l.Leave()
		close(x.f.block)
		<-x.left
		<-x.end
	})
}

// stalledT passes bytes on until it is told to hold them, and on again later.
type stalledT struct {
	mu   sync.Mutex
	more sync.Cond
	held bool
}

func (s *stalledT) set(held bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.held = held
	s.more.Broadcast()
}

// between is a link of two connections whose bytes pass through both ways' stalls, with
// as much room in between as a network's buffers have.
func between(up, down *stalledT) (near, far net.Conn) {
	near, a := net.Pipe()
	b, far := net.Pipe()
	pass := func(to, from net.Conn, s *stalledT) {
		ch := make(chan []byte, 1000)
		go func() {
			defer close(ch)
			for {
				buf := make([]byte, 32<<10)
				n, err := from.Read(buf)
				if err != nil {
					return
				}
				ch <- buf[:n]
			}
		}()
		for buf := range ch {
			s.mu.Lock()
			for s.held {
				s.more.Wait()
			}
			s.mu.Unlock()
			if _, err := to.Write(buf); err != nil {
				from.Close()
			}
		}
		to.Close()
	}
	up.more.L, down.more.L = &up.mu, &down.mu
	go pass(b, a, up)
	go pass(a, b, down)
	return near, far
}

// A link that stops is told within seconds; what was typed into it is typed nowhere, also when it goes
// on later, and also when it was the session's machine that stood still.
func TestLinkThatStops(t *testing.T) {
	for _, c := range []struct {
		name     string
		up, down bool
		frozen   bool // the session's machine: its own clocks stand still, but the one that counts sleep
	}{{"both ways", true, true, false}, {"to the machine", true, false, false}, {"from the machine", false, true, false}} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				up, down := &stalledT{}, &stalledT{}
				near, far := between(up, down)
				f, screen := newFake(), &screenT{}
				begun := time.Now()
				left, end := make(chan Left, 1), make(chan error, 1)
				go func() {
					left <- Serve(context.Background(), far, f, Hosting{Now: func() time.Duration { return time.Since(begun) }, Ended: func() End { return End{} }})
				}()
				l := NewLink(near)
				go func() { end <- l.Run(context.Background(), screen) }()
				l.Type([]byte("before "))
				time.Sleep(3 * time.Second)
				at := time.Now()
				up.set(c.up)
				down.set(c.down)
				for range 20 {
					time.Sleep(100 * time.Millisecond)
					l.Type([]byte("after "))
				}
				if err := <-end; err == nil {
					t.Error("it was not told")
				}
				if d := time.Since(at); d > 2*Silence+2*time.Second {
					t.Errorf("it was told after %s", d)
				}
				if l.Type([]byte("x")) {
					t.Error("typed into a link that has ended")
				}
				up.set(false)
				down.set(false)
				<-left
				synctest.Wait()
				got := f.got()
				if c.up && got != "before " {
					t.Errorf("the program read %q", got)
				}
			})
		})
	}
}

// What a machine finds of the person's typing when it wakes is not typed: its beats are old by then.
func TestTypedBeforeASleep(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		slept := time.Duration(0)
		begun := time.Now()
		x := look(Hosting{Now: func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return time.Since(begun) + slept
		}})
		x.l.Type([]byte("one"))
		time.Sleep(100 * time.Millisecond)
		mu.Lock()
		slept = time.Hour // and no timer has run meanwhile
		mu.Unlock()
		x.l.Type([]byte("two"))
		time.Sleep(100 * time.Millisecond)
		x.l.Leave()
		if left := <-x.left; left.Why != "late" {
			t.Errorf("left %+v", left)
		}
		var e *End
		if err := <-x.end; !errors.As(err, &e) || e.Code != "late" || !e.Again {
			t.Errorf("ended with %v", err)
		}
		if x.f.got() != "one" {
			t.Errorf("the program read %q", x.f.got())
		}
	})
}

// Bytes of somebody who speaks something else end the look, and nothing else.
func TestStrangers(t *testing.T) {
	for _, b := range []string{"GET / HTTP/1.1\r\n\r\n", "t\x00\x00\x00\x01x", "w\xff\xff\xff\xff", "w\x00\x00\x00\x04\x7f\xff\xff\xff", "z\x00\x00\x00\x00t\x00\x00\x00\x00"} {
		synctest.Test(t, func(t *testing.T) {
			near, far := net.Pipe()
			go func() { _, _ = io.Copy(io.Discard, near) }()
			left := make(chan Left, 1)
			f := newFake()
			go func() {
				left <- Serve(context.Background(), far, f, Hosting{Now: func() time.Duration { return 0 }, Ended: func() End { return End{} }})
			}()
			_, _ = near.Write([]byte(b))
			if x := <-left; x.Why == "left" || x.Why == "ended" {
				t.Errorf("%q: %+v", b, x)
			}
			if f.got() != "" {
				t.Errorf("%q: typed %q", b, f.got())
			}
			near.Close()
		})
	}
}

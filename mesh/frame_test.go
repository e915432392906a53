package mesh

import (
	"bytes"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"time"
)

// wire writes frames as a connection would carry them.
func wire(t testing.TB, frames ...outFrame) []byte {
	t.Helper()
	var out bytes.Buffer
	var dropped atomic.Uint64
	q := newFrameWriter(&out, &dropped)
	for _, f := range frames {
		if _, err := q.put(f); err != nil {
			t.Fatal(err)
		}
	}
	done := make(chan struct{})
	ended := make(chan error, 1)
	go func() { ended <- q.run(done) }()
	deadline := time.Now().Add(10 * time.Second)
	for {
		q.mu.Lock()
		n := len(q.queue)
		q.mu.Unlock()
		if n == 0 {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("the writer does not write")
		}
	}
	// A batch that was taken is flushed before the writer looks at done.
	close(done)
	if err := <-ended; err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestFramesCross(t *testing.T) {
	call := &call{answer: make(chan answer, 1)}
	gone := newDroppedCall()
	b := wire(t,
		outFrame{kind: kindRequest, id: 7, left: 1500, word: "node.hello", body: []byte("body"), call: call},
		outFrame{kind: kindRequest, id: 8, word: "never", body: []byte("written"), call: gone},
		outFrame{kind: kindPush, word: "p"},
		outFrame{kind: kindAnswer, id: 9, body: []byte("out")},
		outFrame{kind: kindFailure, id: 10, word: "conflict", body: []byte("why")},
		outFrame{kind: kindPing},
	)
	r := bytes.NewReader(b)
	next := func(kind byte, id uint64) frame {
		t.Helper()
		f, err := readFrame(r)
		if err != nil || f.kind != kind || f.id != id {
			t.Fatalf("got %+v, %v; want kind %d id %d", f, err, kind, id)
		}
		return f
	}
	d, m, body, err := parseRequest(next(kindRequest, 7).payload)
	if err != nil || d != 1500*time.Millisecond || m != "node.hello" || string(body) != "body" {
		t.Errorf("request: %v %q %q %v", d, m, body, err)
	}
	// A call whose caller has left before is not written at all.
	d, m, body, err = parseRequest(next(kindPush, 0).payload)
	if err != nil || d != 0 || m != "p" || len(body) != 0 {
		t.Errorf("push: %v %q %q %v", d, m, body, err)
	}
	if f := next(kindAnswer, 9); string(f.payload) != "out" {
		t.Errorf("answer: %q", f.payload)
	}
	if e := parseFailure(next(kindFailure, 10).payload); e.Code != "conflict" || e.Text != "why" {
		t.Errorf("failure: %+v", e)
	}
	next(kindPing, 0)
	if _, err := readFrame(r); err != io.EOF {
		t.Errorf("then %v", err)
	}
	if call.drop() {
		t.Error("a call that was written counts as not sent")
	}
	if !gone.drop() {
		t.Error("a call that was not written counts as sent")
	}
}

func newDroppedCall() *call {
	c := &call{answer: make(chan answer, 1)}
	c.drop()
	return c
}

// A queue that is full says so, and tells when there is room.
func TestQueueFull(t *testing.T) {
	var dropped atomic.Uint64
	q := newFrameWriter(io.Discard, &dropped)
	big := make([]byte, queueBytes/4)
	for range 3 {
		if _, err := q.put(outFrame{kind: kindAnswer, body: big}); err != nil {
			t.Fatal(err)
		}
	}
	room, err := q.put(outFrame{kind: kindAnswer, body: big})
	if !errors.Is(err, errQueueFull) {
		t.Fatalf("got %v", err)
	}
	select {
	case <-room:
		t.Fatal("there is no room yet")
	default:
	}
	q.take(nil)
	<-room
	if _, err := q.put(outFrame{kind: kindAnswer, body: big}); err != nil {
		t.Fatal(err)
	}
}

// Invariant 27: no bytes make the parsers panic, read beyond, or make room for
// more than a frame may have.
func FuzzFrames(f *testing.F) {
	f.Add(wire(f, outFrame{kind: kindRequest, id: 1, word: "m", body: []byte("b")}, outFrame{kind: kindFailure, id: 2, word: "c"}))
	f.Add([]byte{0, 0, 0, 9, 1, 0, 0, 0, 0, 0, 0, 0, 0})
	f.Add([]byte{0xff, 0xff, 0xff, 0xff})
	f.Fuzz(func(t *testing.T, b []byte) {
		r := bytes.NewReader(b)
		for {
			fr, err := readFrame(r)
			if err != nil {
				return
			}
			if len(fr.payload) > len(b) {
				t.Fatal("a payload longer than the input")
			}
			_ = parseFailure(fr.payload)
			_, method, body, err := parseRequest(fr.payload)
			if err != nil {
				continue
			}
			if len(method)+len(body)+5 != len(fr.payload) {
				t.Fatalf("method %d + body %d of payload %d", len(method), len(body), len(fr.payload))
			}
		}
	})
}

func FuzzGreeting(f *testing.F) {
	var b bytes.Buffer
	_ = writeGreeting(&b, greeting{Fleet: "f", Addrs: []string{"1.2.3.4:5"}})
	f.Add(b.Bytes())
	f.Add([]byte{0xff, 0xff, '{'})
	f.Fuzz(func(t *testing.T, b []byte) {
		g, err := readGreeting(bytes.NewReader(b))
		if err == nil && len(g.Fleet)+len(g.Text) > 6*len(b) {
			t.Fatal("more than there was")
		}
	})
}

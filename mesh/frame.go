package mesh

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"
)

// A frame is: length of the rest (4 bytes, big endian), kind (1), id (8), and a
// payload. The payload of a request and a push is: time left in milliseconds or
// 0 (4), length of the method (1), method, body. That of a failure is: length of
// the code (1), code, text. That of an answer is its body.
const (
	kindRequest byte = iota + 1
	kindPush
	kindAnswer
	kindFailure
	kindCancel
	kindPing
	kindPong
)

const (
	frameHeader = 4 + 1 + 8
	// Bounds of what may wait in one connection's queue.
	queueFrames = 8192
	queueBytes  = 64 << 20
	queuePushes = 1024
)

var errFrame = errors.New("malformed frame")

type frame struct {
	kind    byte
	id      uint64
	payload []byte
}

// readFrame reads one frame; its payload is the caller's to keep.
func readFrame(r io.Reader) (frame, error) {
	var head [frameHeader]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	size := binary.BigEndian.Uint32(head[:4])
	if size < frameHeader-4 || size > MaxFrame-4 {
		return frame{}, fmt.Errorf("%w: length %d", errFrame, size)
	}
	f := frame{kind: head[4], id: binary.BigEndian.Uint64(head[5:])}
	if n := size - (frameHeader - 4); n > 0 {
		f.payload = make([]byte, n)
		if _, err := io.ReadFull(r, f.payload); err != nil {
			return frame{}, noEOF(err)
		}
	}
	return f, nil
}

func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

// parseRequest takes the payload of a request or push apart.
func parseRequest(p []byte) (left time.Duration, method string, body []byte, err error) {
	if len(p) < 5 || len(p) < 5+int(p[4]) {
		return 0, "", nil, fmt.Errorf("%w: request of %d bytes", errFrame, len(p))
	}
	left = time.Duration(binary.BigEndian.Uint32(p)) * time.Millisecond
	n := 5 + int(p[4])
	return left, string(p[5:n]), p[n:], nil
}

// parseFailure takes the payload of a failure apart.
func parseFailure(p []byte) *RemoteError {
	if len(p) < 1 || len(p) < 1+int(p[0]) {
		return &RemoteError{Code: CodeInternal, Text: "malformed failure"}
	}
	n := 1 + int(p[0])
	return &RemoteError{Code: string(p[1:n]), Text: string(p[n:])}
}

// outFrame is a frame that waits to be written. word is the method of a request
// or push, the code of a failure.
type outFrame struct {
	kind byte
	id   uint64
	left uint32
	word string
	body []byte
	call *call // of a request
}

func (f *outFrame) size() int {
	n := frameHeader + len(f.body)
	switch f.kind {
	case kindRequest, kindPush:
		n += 5 + len(f.word)
	case kindFailure:
		n += 1 + len(f.word)
	}
	return n
}

// appendHead appends everything but the body.
func (f *outFrame) appendHead(b []byte) []byte {
	b = binary.BigEndian.AppendUint32(b, uint32(f.size()-4))
	b = append(b, f.kind)
	b = binary.BigEndian.AppendUint64(b, f.id)
	switch f.kind {
	case kindRequest, kindPush:
		b = binary.BigEndian.AppendUint32(b, f.left)
		b = append(b, byte(len(f.word)))
		b = append(b, f.word...)
	case kindFailure:
		b = append(b, byte(len(f.word)))
		b = append(b, f.word...)
	}
	return b
}

// frameWriter writes queued frames in order, all that wait before each flush.
type frameWriter struct {
	w       *bufio.Writer
	dropped *atomic.Uint64 // pushes

	mu     sync.Mutex
	queue  []outFrame
	bytes  int
	pushes int
	err    error
	wake   chan struct{} // one slot: there is something to write
	room   chan struct{} // made by put when full, closed by the next take
}

func newFrameWriter(w io.Writer, dropped *atomic.Uint64) *frameWriter {
	return &frameWriter{
		w:       bufio.NewWriterSize(w, 64<<10),
		dropped: dropped,
		wake:    make(chan struct{}, 1),
	}
}

var errQueueFull = errors.New("the link's queue is full")

// put queues a frame, or says why not. When it is full, wait is closed once
// there may be room.
func (q *frameWriter) put(f outFrame) (wait <-chan struct{}, err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return nil, q.err
	}
	if f.kind == kindPush {
		for q.pushes > 0 && (q.pushes >= queuePushes || q.full(f.size())) {
			q.dropOldestPush()
		}
	}
	if len(q.queue) > 0 && q.full(f.size()) {
		if f.kind == kindPush {
			q.dropped.Add(1)
		}
		if q.room == nil {
			q.room = make(chan struct{})
		}
		return q.room, errQueueFull
	}
	q.queue = append(q.queue, f)
	q.bytes += f.size()
	if f.kind == kindPush {
		q.pushes++
	}
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil, nil
}

func (q *frameWriter) full(more int) bool {
	return len(q.queue) >= queueFrames || q.bytes+more > queueBytes
}

func (q *frameWriter) dropOldestPush() {
	for i := range q.queue {
		if q.queue[i].kind == kindPush {
			q.bytes -= q.queue[i].size()
			q.queue = append(q.queue[:i], q.queue[i+1:]...)
			q.pushes--
			q.dropped.Add(1)
			return
		}
	}
	q.pushes = 0
}

// take empties the queue into batch.
func (q *frameWriter) take(batch []outFrame) []outFrame {
	q.mu.Lock()
	defer q.mu.Unlock()
	batch, q.queue = q.queue, batch[:0]
	q.bytes, q.pushes = 0, 0
	q.makeRoom()
	return batch
}

// close makes put fail with err and counts the pushes that nobody will write.
func (q *frameWriter) close(err error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return
	}
	q.err = err
	q.dropped.Add(uint64(q.pushes))
	q.queue, q.bytes, q.pushes = nil, 0, 0
	q.makeRoom()
}

func (q *frameWriter) makeRoom() {
	if q.room != nil {
		close(q.room)
		q.room = nil
	}
}

// run writes until done is closed or a write fails.
func (q *frameWriter) run(done <-chan struct{}) error {
	var batch []outFrame
	var head [frameHeader + 5 + 255]byte
	for {
		select {
		case <-q.wake:
		case <-done:
			return nil
		}
		batch = q.take(batch)
		for len(batch) > 0 {
			for i := range batch {
				f := &batch[i]
				if f.call != nil && !f.call.begin() {
					continue // its caller has left
				}
				if _, err := q.w.Write(f.appendHead(head[:0])); err != nil {
					return err
				}
				if _, err := q.w.Write(f.body); err != nil {
					return err
				}
			}
			clear(batch)
			batch = q.take(batch)
		}
		if err := q.w.Flush(); err != nil {
			return err
		}
	}
}

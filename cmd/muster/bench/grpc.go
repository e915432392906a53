package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
)

// A grpcConn is one connection for unary gRPC calls over clear-text HTTP/2, with
// as little between caller and socket as that allows. It exists so that the
// load on etcd costs no more than the hand-written client on our side: with
// etcd's own client, a good part of what is measured would be the client.
type grpcConn struct {
	conn    net.Conn
	waiting atomic.Int32 // callers that will write after the one that holds mu

	mu     sync.Mutex // guards all below
	room   sync.Cond  // signalled when window grows or the connection fails
	out    *bufio.Writer
	frames *http2.Framer // written under mu, read by the reader alone
	fields bytes.Buffer
	encode *hpack.Encoder
	next   uint32 // stream id
	window int64  // bytes the server will take on the connection
	calls  map[uint32]*grpcCall
	err    error

	ended chan struct{}
}

type grpcCall struct {
	done chan struct{}
	err  error
	body []byte
}

const (
	streamWindow = 65535 // of a stream and of the connection, before anything is said
	topUp        = 1 << 20
	maxStream    = 1<<31 - 1
)

var errGRPCClosed = errors.New("connection closed")

func dialGRPC(ctx context.Context, addr string) (*grpcConn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	c := &grpcConn{
		conn: conn, out: bufio.NewWriter(conn), next: 1, window: streamWindow,
		calls: map[uint32]*grpcCall{}, ended: make(chan struct{}),
	}
	c.room.L = &c.mu
	c.encode = hpack.NewEncoder(&c.fields)
	c.frames = http2.NewFramer(c.out, bufio.NewReader(conn))
	c.frames.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	c.frames.SetReuseFrames()
	c.mu.Lock()
	defer c.mu.Unlock()
	_, err = c.out.WriteString(http2.ClientPreface)
	if err == nil {
		err = c.frames.WriteSettings(http2.Setting{ID: http2.SettingEnablePush, Val: 0})
	}
	if err == nil {
		err = c.frames.WriteWindowUpdate(0, topUp) // answers are small: no stream needs more
	}
	if err == nil {
		err = c.out.Flush()
	}
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("begin HTTP/2 with %s: %w", addr, err)
	}
	go c.read()
	return c, nil
}

// call makes one unary call; message and answer are protobuf. It fails unless
// the server said grpc-status 0.
func (c *grpcConn) call(ctx context.Context, path string, message []byte) ([]byte, error) {
	call := &grpcCall{done: make(chan struct{})}
	if err := c.send(ctx, call, path, message); err != nil {
		return nil, err
	}
	select {
	case <-call.done:
		return call.body, call.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

func (c *grpcConn) send(ctx context.Context, call *grpcCall, path string, message []byte) error {
	c.waiting.Add(1)
	c.mu.Lock()
	c.waiting.Add(-1)
	defer c.mu.Unlock()
	size := int64(5 + len(message))
	if size > streamWindow/4 { // one frame, and never more than a fresh stream's window
		return fmt.Errorf("message of %d bytes is too large for a bench", len(message))
	}
	if c.window < size {
		if err := c.waitForRoom(ctx, size); err != nil {
			return err
		}
	}
	if c.err == nil && c.next > maxStream {
		c.err = errors.New("the connection has used up its streams")
	}
	if c.err != nil {
		return c.err
	}
	id := c.next
	c.next += 2
	c.window -= size
	c.calls[id] = call
	if err := c.write(id, path, message); err != nil {
		delete(c.calls, id)
		return fmt.Errorf("send: %w", err)
	}
	return nil
}

// waitForRoom waits, with mu held, until the server takes size bytes more.
func (c *grpcConn) waitForRoom(ctx context.Context, size int64) error {
	if err := c.out.Flush(); err != nil { // the server makes room for what it has seen
		return fmt.Errorf("send: %w", err)
	}
	stop := context.AfterFunc(ctx, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.room.Broadcast()
	})
	defer stop()
	for c.err == nil && c.window < size {
		if err := ctx.Err(); err != nil {
			return err
		}
		c.room.Wait()
	}
	return nil
}

// write puts one request on the wire; the last of several callers flushes for
// all.
func (c *grpcConn) write(id uint32, path string, message []byte) error {
	c.fields.Reset()
	for _, f := range []hpack.HeaderField{
		{Name: ":method", Value: "POST"}, {Name: ":scheme", Value: "http"}, {Name: ":path", Value: path},
		{Name: ":authority", Value: "localhost"}, {Name: "content-type", Value: "application/grpc"}, {Name: "te", Value: "trailers"},
	} {
		if err := c.encode.WriteField(f); err != nil {
			return err
		}
	}
	if err := c.frames.WriteHeaders(http2.HeadersFrameParam{StreamID: id, BlockFragment: c.fields.Bytes(), EndHeaders: true}); err != nil {
		return err
	}
	data := make([]byte, 5, 5+len(message)) // not compressed, length, message
	binary.BigEndian.PutUint32(data[1:], uint32(len(message)))
	if err := c.frames.WriteData(id, true, append(data, message...)); err != nil {
		return err
	}
	if c.waiting.Load() > 0 {
		return nil
	}
	return c.out.Flush()
}

// read hands answers to their callers until the connection ends.
func (c *grpcConn) read() {
	defer close(c.ended)
	received := uint32(0)
	for {
		frame, err := c.frames.ReadFrame()
		if err == nil {
			err = c.take(frame, &received)
		}
		if err != nil {
			c.fail(err)
			return
		}
	}
}

func (c *grpcConn) take(frame http2.Frame, received *uint32) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch f := frame.(type) {
	case *http2.DataFrame:
		if call := c.calls[f.StreamID]; call != nil {
			call.body = append(call.body, f.Data()...)
		}
		if *received += f.Length; *received < topUp/2 {
			return nil
		}
		n := *received
		*received = 0
		return c.reply(c.frames.WriteWindowUpdate(0, n))
	case *http2.MetaHeadersFrame:
		if call := c.calls[f.StreamID]; call != nil && f.StreamEnded() {
			delete(c.calls, f.StreamID)
			call.finish(f)
		}
	case *http2.RSTStreamFrame:
		if call := c.calls[f.StreamID]; call != nil {
			delete(c.calls, f.StreamID)
			call.err = fmt.Errorf("the server reset the call: %s", f.ErrCode)
			close(call.done)
		}
	case *http2.WindowUpdateFrame:
		if f.StreamID == 0 {
			c.window += int64(f.Increment)
			c.room.Broadcast()
		}
	case *http2.SettingsFrame:
		if !f.IsAck() {
			return c.reply(c.frames.WriteSettingsAck())
		}
	case *http2.PingFrame:
		if !f.IsAck() {
			return c.reply(c.frames.WritePing(true, f.Data))
		}
	case *http2.GoAwayFrame:
		return fmt.Errorf("the server closes the connection: %s", f.ErrCode)
	}
	return nil
}

func (c *grpcConn) reply(err error) error {
	if err != nil {
		return err
	}
	return c.out.Flush()
}

// finish takes the outcome from the trailers.
func (call *grpcCall) finish(f *http2.MetaHeadersFrame) {
	status, said := "missing", ""
	for _, h := range f.Fields {
		switch h.Name {
		case "grpc-status":
			status = h.Value
		case "grpc-message":
			said = h.Value
		}
	}
	switch {
	case status != "0":
		call.err = fmt.Errorf("grpc-status %s %s", status, said)
	case len(call.body) >= 5:
		call.body = call.body[5:]
	default:
		call.err = errors.New("an answer without a message")
	}
	close(call.done)
}

func (c *grpcConn) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil {
		c.err = err
	}
	for id, call := range c.calls {
		delete(c.calls, id)
		call.err = c.err
		close(call.done)
	}
	c.room.Broadcast()
}

// close ends the connection and waits for its reader.
func (c *grpcConn) close() {
	c.fail(errGRPCClosed)
	_ = c.conn.Close()
	<-c.ended
}

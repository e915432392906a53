package bench

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httputil"
	"strconv"
	"strings"
	"time"
)

// An HTTPConn is one kept HTTP/1.1 connection driven by one client, as thin as
// grpcConn is for etcd: what a side of ours is measured through. net/http's
// client would add about 0.2 ms of its own to an answer.
type HTTPConn struct {
	conn net.Conn
	in   *bufio.Reader
	out  []byte
	host string
}

// DialHTTP connects to a server, "unix" with a path or "tcp" with host:port.
func DialHTTP(ctx context.Context, network, addr string) (*HTTPConn, error) {
	var d net.Dialer
	conn, err := d.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	host := addr
	if network == "unix" {
		host = "localhost"
	}
	return newHTTPConn(conn, host), nil
}

func newHTTPConn(conn net.Conn, host string) *HTTPConn {
	return &HTTPConn{conn: conn, in: bufio.NewReader(conn), host: host}
}

// Close closes the connection.
func (c *HTTPConn) Close() error { return c.conn.Close() }

// Post sends a JSON body and returns the answer's status and body. The context
// counts through its deadline alone. After an error the connection is of no
// further use. Not safe for concurrent use: one connection, one client.
func (c *HTTPConn) Post(ctx context.Context, path string, body []byte) (status int, answer []byte, err error) {
	deadline, _ := ctx.Deadline() // the zero time is none
	if err := c.conn.SetDeadline(deadline); err != nil {
		return 0, nil, err
	}
	c.out = fmt.Appendf(c.out[:0], "POST %s HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n", path, c.host, len(body))
	c.out = append(c.out, body...)
	if _, err := c.conn.Write(c.out); err != nil {
		return 0, nil, fmt.Errorf("send: %w", err)
	}
	status, answer, err = c.read()
	if err != nil {
		return 0, nil, fmt.Errorf("answer: %w", err)
	}
	return status, answer, nil
}

func (c *HTTPConn) read() (int, []byte, error) {
	line, err := c.line()
	if err != nil {
		return 0, nil, err
	}
	proto, rest, _ := strings.Cut(line, " ")
	code, _, _ := strings.Cut(rest, " ")
	status, err := strconv.Atoi(code)
	if err != nil || proto != "HTTP/1.1" {
		return 0, nil, fmt.Errorf("not an answer of HTTP/1.1: %q", line)
	}
	length, chunked := -1, false
	for {
		if line, err = c.line(); err != nil {
			return 0, nil, err
		}
		if line == "" {
			break
		}
		name, value, _ := strings.Cut(line, ":")
		switch value = strings.TrimSpace(value); strings.ToLower(name) {
		case "content-length":
			if length, err = strconv.Atoi(value); err != nil || length < 0 {
				return 0, nil, fmt.Errorf("content-length %q", value)
			}
		case "transfer-encoding":
			chunked = value == "chunked"
		}
	}
	body, err := c.body(length, chunked)
	return status, body, err
}

func (c *HTTPConn) body(length int, chunked bool) ([]byte, error) {
	switch {
	case chunked:
		body, err := io.ReadAll(httputil.NewChunkedReader(c.in))
		if err == nil {
			_, err = c.line() // the empty line behind the last chunk
		}
		return body, err
	case length >= 0:
		body := make([]byte, length)
		_, err := io.ReadFull(c.in, body)
		return body, err
	}
	return nil, errors.New("an answer without a length")
}

func (c *HTTPConn) line() (string, error) {
	line, err := c.in.ReadSlice('\n')
	return string(bytes.TrimRight(line, "\r\n")), err
}

// HTTPPosts is a side: clients in a closed loop, each on a kept connection of
// its own, spread over doors (addresses of one network). The value is
// requests/s; for the time of a single client use HTTPAck.
func HTTPPosts(name, network string, doors []string, clients int, p Posts) Side {
	return Side{Name: name, Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		load, counters, err := p.run(ctx, window, network, doors, clients)
		return Sample{Value: load.PerSecond(), Latency: &load.Latency, Counters: counters}, err
	}}
}

// HTTPAck is a side: one client on one kept connection. Its value is the p50
// in ms.
func HTTPAck(name, network, door string, p Posts) Side {
	return Side{Name: name, Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		load, counters, err := p.run(ctx, window, network, []string{door}, 1)
		return Sample{Value: Milliseconds(load.Latency.P50), Latency: &load.Latency, Counters: counters}, err
	}}
}

// Posts says what the clients of an HTTP side send.
type Posts struct {
	Path string
	Body func(client, n int) []byte // JSON of a client's n-th request in a window
	// OK judges an answer; one that is not ok ends the comparison.
	OK func(status int, answer []byte) error
	// Counters, unless nil, is read before and after a window; the growth is
	// reported per 1,000 requests.
	Counters func(context.Context) (map[string]float64, error)
}

func (p Posts) run(ctx context.Context, window time.Duration, network string, doors []string, clients int) (Load, map[string]float64, error) {
	conns := make([]*HTTPConn, 0, clients)
	defer func() {
		for _, c := range conns {
			_ = c.Close()
		}
	}()
	for i := range clients {
		c, err := DialHTTP(ctx, network, doors[i%len(doors)])
		if err != nil {
			return Load{}, nil, err
		}
		conns = append(conns, c)
	}
	before, err := p.counters(ctx)
	if err != nil {
		return Load{}, nil, err
	}
	load, err := ClosedLoop(ctx, window, clients, func(ctx context.Context, client, n int) error {
		status, answer, err := conns[client].Post(ctx, p.Path, p.Body(client, n))
		if err != nil {
			return err
		}
		return p.OK(status, answer)
	})
	if err != nil {
		return Load{}, nil, err
	}
	after, err := p.counters(ctx)
	if err != nil {
		return Load{}, nil, err
	}
	for name := range after {
		after[name] = (after[name] - before[name]) / float64(load.Ops) * 1000
	}
	return load, after, nil
}

func (p Posts) counters(ctx context.Context) (map[string]float64, error) {
	if p.Counters == nil {
		return nil, nil
	}
	return p.Counters(ctx)
}

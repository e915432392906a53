package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"muster/board"
)

// Client speaks the API over a unix socket, or over any connection that Dial makes.
type Client struct {
	Socket  string // path of a unix socket
	Dial    func(ctx context.Context) (net.Conn, error)
	Auth    string        // value of the Authorization header
	Timeout time.Duration // of one call; 0 is the default

	once sync.Once
	http *http.Client
}

// Answer is what a call gave besides its data.
type Answer struct {
	Data      json.RawMessage
	Index     uint64
	AgeMS     *int64 // of a local read; nil: not known
	RequestID string
}

func (c *Client) client() *http.Client {
	c.once.Do(func() {
		dial := c.Dial
		if dial == nil {
			dial = c.dialUnix
		}
		c.http = &http.Client{Transport: &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) { return dial(ctx) },
			MaxIdleConnsPerHost: 64, DisableCompression: true}}
	})
	return c.http
}

func (c *Client) dialUnix(ctx context.Context) (net.Conn, error) {
	short, done, err := shortPath(c.Socket)
	if err != nil {
		return nil, err
	}
	defer done()
	var d net.Dialer
	return d.DialContext(ctx, "unix", short)
}

func (c *Client) timeout() time.Duration {
	if c.Timeout > 0 {
		return c.Timeout
	}
	return defaultTimeout
}

// errNoNode is what a person is told when no node listens.
func (c *Client) errNoNode(err error) *board.Error {
	where := orElse(c.Socket, "that address")
	switch {
	case errors.Is(err, os.ErrPermission), errors.Is(err, syscall.EACCES):
		return board.Errorf(board.Unavailable, "no permission for the socket %s", where).WithCheck("no_node").WithHint("a node's socket is for the user who runs it")
	case (errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ECONNREFUSED)) && c.Socket != "" && Held(filepath.Dir(c.Socket)):
		return board.Errorf(board.Unavailable, "the node of %s is starting (it waits up to half a minute for the fleet's leader), or it ends", filepath.Dir(c.Socket)).WithCheck("no_node").
			WithHint("try again in a moment; what it waits for is in its output")
	case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ECONNREFUSED):
		return board.Errorf(board.Unavailable, "no muster node is running here (%s)", where).WithCheck("no_node").WithHint("start one with: muster up; or name its folder with --data")
	}
	return board.Errorf(board.Unavailable, "the node at %s cannot be reached: %v", where, err).WithCheck("no_node")
}

// Get reads.
func (c *Client) Get(ctx context.Context, path string, query url.Values) (*Answer, error) {
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout()+2*time.Second)
	defer cancel()
	return c.call(ctx, http.MethodGet, path, nil)
}

// Post asks for something that is not a request to the executor.
func (c *Client) Post(ctx context.Context, path string, body any) (*Answer, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout()+2*time.Second)
	defer cancel()
	a, err := c.call(ctx, http.MethodPost, path, b)
	var lost *lostError
	if errors.As(err, &lost) {
		return nil, board.Errorf(board.UnknownOutcome, "the node broke the connection: it may or may not have been done").WithHint("see: muster status")
	}
	return a, err
}

// Do has a request executed at most once. Without an id one is minted by the
// node first; under it the request is sent again, marked as a retry, while the
// connection fails, until the timeout. Of an outcome that stays unknown the
// answer holds the id, and the error says so.
func (c *Client) Do(ctx context.Context, verb string, args any, id string, retry bool) (*Answer, error) {
	raw, err := json.Marshal(args)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout()+2*time.Second)
	defer cancel()
	if id == "" {
		if id, err = c.Mint(ctx); err != nil {
			return nil, err
		}
	}
	d := Do{Verb: verb, Args: raw, ID: id, Retry: retry}
	sent := false
	for {
		body, err := json.Marshal(d)
		if err != nil {
			return nil, err
		}
		if len(body) > maxBody { // a node would cut the connection in the middle of it
			return nil, tooLarge()
		}
		a, err := c.call(ctx, http.MethodPost, "/v1/do", body)
		var lost *lostError
		switch {
		case errors.As(err, &lost):
			sent, d.Retry = true, true
		case sent && errors.Is(err, &board.Error{Code: board.Unavailable}): // this copy was not executed; one before may have been
		default:
			return a, err
		}
		select {
		case <-ctx.Done():
			return &Answer{RequestID: d.ID}, board.Errorf(board.UnknownOutcome, "no answer in time: it may or may not have been done").
				WithHint("ask again with: --request-id %s", d.ID)
		case <-time.After(200 * time.Millisecond):
		}
	}
}

// Mint makes a request id.
func (c *Client) Mint(ctx context.Context) (string, error) {
	id, err := Decode[string](c.Get(ctx, "/v1/id", nil))
	if err == nil && id == "" {
		return "", board.Errorf(board.Unavailable, "this node does not know its fleet's state yet").WithCheck("no_leader").WithHint("see: muster status")
	}
	return id, err
}

// lostError is a connection that broke after the request was written.
type lostError struct{ err error }

func (e *lostError) Error() string { return "connection lost: " + e.err.Error() }

func (c *Client) call(ctx context.Context, method, path string, body []byte) (*Answer, error) {
	req, err := http.NewRequestWithContext(ctx, method, "http://muster"+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set(HeaderTimeout, c.timeout().String())
	if c.Auth != "" {
		req.Header.Set("Authorization", c.Auth)
	}
	res, err := c.client().Do(req)
	if err != nil {
		return nil, c.failed(ctx, method, err)
	}
	defer res.Body.Close()
	a, err := answer(res)
	var lost *lostError
	if errors.As(err, &lost) {
		err = c.failed(ctx, method, lost.err)
	}
	return a, err
}

// failed is a call that got no answer: what was not sent, and a read, may simply
// be asked again; of a write nobody knows.
func (c *Client) failed(ctx context.Context, method string, err error) error {
	var op *net.OpError
	var refused *board.Error
	switch {
	case errors.As(err, &refused):
		return refused // the dialer says why
	case errors.As(err, &op) && op.Op == "dial" || errors.Is(err, os.ErrNotExist):
		return c.errNoNode(err)
	case method != http.MethodGet:
		return &lostError{err}
	case errors.Is(ctx.Err(), context.Canceled):
		return ctx.Err()
	case ctx.Err() != nil:
		return board.Errorf(board.Unavailable, "the node at %s did not answer in time", orElse(c.Socket, "that address")).WithCheck("no_node")
	}
	return board.Errorf(board.Unavailable, "the node at %s broke the connection: %v", orElse(c.Socket, "that address"), err).WithCheck("no_node").WithHint("see: muster status")
}

func answer(res *http.Response) (*Answer, error) {
	b, err := io.ReadAll(io.LimitReader(res.Body, 256<<20))
	if err != nil {
		return nil, &lostError{err}
	}
	var env Envelope
	if err := json.Unmarshal(b, &env); err != nil {
		return nil, board.Errorf(board.Internal, "the answer is no muster envelope (HTTP %d)", res.StatusCode)
	}
	a := &Answer{Data: env.Data, Index: env.Index, AgeMS: env.AgeMS, RequestID: res.Header.Get(HeaderRequestID)}
	if env.Error != nil {
		e := env.Error.Error
		if env.Error.RequestID != "" {
			a.RequestID = env.Error.RequestID
		}
		return a, &e
	}
	return a, nil
}

// Decode reads an answer's data.
func Decode[T any](a *Answer, err error) (T, error) {
	var x T
	if err != nil {
		return x, err
	}
	if len(a.Data) > 0 {
		if err := json.Unmarshal(a.Data, &x); err != nil {
			return x, fmt.Errorf("answer: %w", err)
		}
	}
	return x, nil
}

// reconnect is how long a stream looks for its node after it was lost.
const reconnect = time.Minute

// Events follows events from a cursor on until fn says false or ctx ends. When
// the stream breaks, as it does when the node is started anew, it goes on after
// the last event seen; a cursor "now" is taken anew then.
func (c *Client) Events(ctx context.Context, query url.Values, fn func(Event) bool) error {
	q := url.Values{}
	for k, v := range query {
		q[k] = v
	}
	q.Set("follow", "true")
	var lost time.Time // since when nothing answers; zero before the first answer
	for {
		open, last, stop, err := c.stream(ctx, q, fn)
		if open {
			lost = time.Now()
		}
		if last != "" {
			q.Set("since", last)
		}
		if stop || ctx.Err() != nil {
			return ctx.Err()
		}
		var e *board.Error
		if errors.As(err, &e) && (e.Code != board.Unavailable || time.Since(lost) > reconnect) {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(300 * time.Millisecond):
		}
	}
}

// maxLine is the longest line of a stream that is read; events are far smaller.
const maxLine = 4 << 20

// stream reads one stream; open tells that the node answered it.
func (c *Client) stream(ctx context.Context, q url.Values, fn func(Event) bool) (open bool, last string, stop bool, err error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://muster/v1/events?"+q.Encode(), nil)
	if err != nil {
		return false, "", false, err
	}
	if c.Auth != "" {
		req.Header.Set("Authorization", c.Auth)
	}
	req.Header.Set(HeaderTimeout, c.timeout().String())
	res, err := c.client().Do(req)
	if err != nil {
		return false, "", false, c.failed(ctx, http.MethodGet, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		_, err := answer(res)
		return false, "", false, err
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		if len(lines.Bytes()) == 0 {
			continue // the node is alive
		}
		var env Envelope
		var e Event
		if json.Unmarshal(lines.Bytes(), &env) != nil || json.Unmarshal(env.Data, &e) != nil {
			return true, last, false, nil // cut off in the middle of a line
		}
		last = e.ID
		if !fn(e) {
			return true, last, true, nil
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) { // again from the cursor it would come again
		return true, last, false, board.Errorf(board.Internal, "the event after %s is larger than %d MB", orElse(last, "the cursor"), maxLine>>20)
	}
	return true, last, false, lines.Err()
}

// Text reads what is no envelope: figures, a document, a profile. A failure is told as of any call.
func (c *Client) Text(ctx context.Context, path string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, c.timeout()+2*time.Second)
	defer cancel()
	res, err := c.large(ctx, http.MethodGet, path, nil)
	if err != nil {
		return nil, err
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		_, err := answer(res)
		return nil, err
	}
	return io.ReadAll(io.LimitReader(res.Body, 256<<20))
}

package api

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"time"

	"muster/board"
)

// LiveSilence is how long a live view may say nothing: its node tells every 5 s that it is alive.
const LiveSilence = 3 * liveEvery

// maxLive is the longest message of a live view: a whole board.
const maxLive = 256 << 20

// Live follows a board over one connection: fn gets each message of /v1/live by its kind, `board` first, then `cards`, `fleet`,
// `needs` and `alive`. It returns when fn says false or ctx ends (nil), when the node refuses, or when the connection breaks or says nothing
// for [LiveSilence] (Unavailable). Who calls again is told the board whole again, so nothing is missed in between.
func (c *Client) Live(ctx context.Context, slug string, fn func(kind string, env Envelope) bool) error {
	cut, stop := context.WithCancel(ctx)
	defer stop()
	quiet := time.AfterFunc(LiveSilence, stop)
	defer quiet.Stop()
	req, err := http.NewRequestWithContext(cut, http.MethodGet, "http://muster/v1/live?"+url.Values{"board": {slug}}.Encode(), nil)
	if err != nil {
		return err
	}
	if c.Auth != "" {
		req.Header.Set("Authorization", c.Auth)
	}
	res, err := c.client().Do(req)
	if err != nil {
		return c.silent(ctx, cut, err)
	}
	defer res.Body.Close()
	if res.StatusCode != http.StatusOK {
		_, err := answer(res)
		return err
	}
	lines := bufio.NewScanner(res.Body)
	lines.Buffer(nil, maxLive)
	kind := ""
	for lines.Scan() {
		if name, ok := bytes.CutPrefix(lines.Bytes(), []byte("event: ")); ok {
			kind = string(name)
			continue
		}
		data, ok := bytes.CutPrefix(lines.Bytes(), []byte("data: "))
		if !ok {
			continue
		}
		var env Envelope
		if err := json.Unmarshal(data, &env); err != nil {
			return board.Errorf(board.Internal, "a message of the live view is no muster envelope").WithHint("the node may be of another version; see: muster version")
		}
		quiet.Reset(LiveSilence)
		if !fn(kind, env) {
			return nil
		}
	}
	return c.silent(ctx, cut, lines.Err())
}

// silent is why a live view has ended.
func (c *Client) silent(ctx, cut context.Context, err error) error {
	switch {
	case ctx.Err() != nil:
		return nil
	case cut.Err() != nil:
		return board.Errorf(board.Unavailable, "the node at %s says nothing any more", orElse(c.Socket, "that address")).WithCheck("no_node").WithHint("see: muster status")
	case err == nil:
		return board.Errorf(board.Unavailable, "the node at %s ended the connection: it is being restarted, or was stopped", orElse(c.Socket, "that address")).WithCheck("no_node").WithHint("see: muster status")
	}
	return c.failed(ctx, http.MethodGet, err)
}

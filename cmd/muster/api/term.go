package api

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime/debug"
	"strconv"
	"strings"
	"sync"
	"time"

	"muster/board"
	"muster/cmd/muster/tty"
)

// TermAsk is what a person asks to look at: a pane of a card's session, or a shell.
type TermAsk struct {
	tty.Ask
	Slot    string // of Card; "" is the newest session
	Machine string // of a shell without a card
}

var termAsks = asks{"card": anyText, "slot": anyText, "run": anyText, "machine": anyText, "shell": truth, "read_only": truth,
	"cols": number(1), "rows": number(1), "term": anyText, "color": truth, "look": anyText}

// termTime bounds how long the way to a terminal may take.
const termTime = 15 * time.Second

// terminal shows a terminal of any machine: the connection is a person's from then on, and speaks
// [tty.Protocol]. What they may do is found by the machine that has it.
func (h *handler) terminal(w http.ResponseWriter, r *http.Request) {
	defer func() {
		if p := recover(); p != nil {
			h.log.Error("panic in a terminal", "panic", p, "stack", string(debug.Stack()))
		}
	}()
	q, c, err := h.termAsk(r)
	if err != nil {
		h.refuse(w, c, err)
		return
	}
	ctx, cancel := context.WithTimeout(r.Context(), termTime)
	opened, far, err := h.b.Terminal(ctx, q)
	cancel()
	if err != nil {
		send(w, nil, unread, err, "")
		return
	}
	defer far.Close()
	near, ahead, err := http.NewResponseController(w).Hijack()
	if err != nil {
		send(w, nil, unread, board.Errorf(board.Internal, "terminal: %v", err), "")
		return
	}
	defer near.Close()
	_ = near.SetDeadline(time.Time{})
	if _, err := io.WriteString(near, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: "+tty.Protocol+"\r\n\r\n"); err != nil {
		return
	}
	if tty.Answer(near, opened) != nil || near.SetDeadline(time.Time{}) != nil {
		return
	}
	relay(near, ahead.Reader, far)
}

func (h *handler) termAsk(r *http.Request) (q TermAsk, c caller, err error) {
	c, err = h.caller(r)
	if err == nil {
		err = termAsks.check(r)
	}
	if err == nil {
		err = h.mayRead(r, &c)
	}
	if err != nil {
		return q, c, err
	}
	if !strings.EqualFold(r.Header.Get("Upgrade"), tty.Protocol) {
		return q, c, board.Errorf(board.Invalid, "a terminal is asked for with Upgrade: %s", tty.Protocol).WithHint("use: muster attach CARD")
	}
	v := r.URL.Query()
	cols, _ := strconv.Atoi(v.Get("cols"))
	rows, _ := strconv.Atoi(v.Get("rows"))
	q = TermAsk{Slot: v.Get("slot"), Machine: v.Get("machine"), Ask: tty.Ask{ID: clip(v.Get("look")), Run: v.Get("run"), Shell: v.Get("shell") == "true", Card: v.Get("card"),
		Name: c.actor.Name, Secret: c.secret, ReadOnly: v.Get("read_only") == "true", Term: clip(v.Get("term")), Color: v.Get("color") == "true",
		Size: tty.Size{Cols: uint16(min(cols, tty.MaxSide)), Rows: uint16(min(rows, tty.MaxSide))}}}
	if q.Card == "" && (!q.Shell || q.Machine == "") {
		return q, c, board.Errorf(board.Invalid, "a terminal of what? name a card, or a machine for a shell")
	}
	return q, c, nil
}

// relay passes bytes on between two connections until either ends. Each holds up the other: nothing
// is kept here.
func relay(near net.Conn, ahead io.Reader, far net.Conn) {
	var wg sync.WaitGroup
	pass := func(to net.Conn, from io.Reader) {
		_, _ = io.CopyBuffer(struct{ io.Writer }{to}, struct{ io.Reader }{from}, make([]byte, 32<<10))
		if c, ok := far.(interface{ Abort() }); ok {
			c.Abort()
		}
		_ = far.Close()
		_ = near.Close()
	}
	wg.Go(func() { pass(far, ahead) })
	wg.Go(func() { pass(near, far) })
	wg.Wait()
}

// Terminal asks the node for a terminal. The connection speaks [tty.Protocol] from then on.
func (c *Client) Terminal(ctx context.Context, query url.Values) (opened tty.Opened, conn net.Conn, err error) {
	dial := c.Dial
	if dial == nil {
		dial = c.dialUnix
	}
	ctx, cancel := context.WithTimeout(ctx, termTime+2*time.Second)
	defer cancel()
	raw, err := dial(ctx)
	if err != nil {
		return opened, nil, c.failed(ctx, http.MethodGet, &net.OpError{Op: "dial", Err: err})
	}
	defer func() {
		if err != nil {
			raw.Close()
		}
	}()
	defer context.AfterFunc(ctx, func() { _ = raw.SetDeadline(time.Unix(1, 0)) })()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://muster/v1/terminal?"+query.Encode(), nil)
	if err != nil {
		return opened, nil, err
	}
	req.Header.Set("Connection", "Upgrade")
	req.Header.Set("Upgrade", tty.Protocol)
	if c.Auth != "" {
		req.Header.Set("Authorization", c.Auth)
	}
	if err := req.Write(raw); err != nil {
		return opened, nil, c.failed(ctx, http.MethodGet, err)
	}
	buf := bufio.NewReader(raw)
	res, err := http.ReadResponse(buf, req)
	if err != nil {
		return opened, nil, c.failed(ctx, http.MethodGet, err)
	}
	if res.StatusCode != http.StatusSwitchingProtocols {
		defer res.Body.Close()
		_, err := answer(res)
		var lost *lostError
		if err == nil || errors.As(err, &lost) {
			err = board.Errorf(board.Internal, "the node answered with HTTP %d", res.StatusCode)
		}
		return opened, nil, err
	}
	conn = &handed{Conn: raw, read: buf}
	if opened, err = tty.Opening(conn, tty.Silence); err != nil {
		return opened, nil, c.failed(ctx, http.MethodGet, err)
	}
	return opened, conn, nil
}

package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

// session is who speaks when a verb is used inside a session: the file is
// rewritten when a kept session goes on with another run.
type session struct {
	Run    string `json:"run"`
	Role   string `json:"role"`
	Slot   string `json:"slot"`
	Secret string `json:"secret"`
}

// inSession tells whether this call is a session's: it has a socket and a secret
// file, and nobody named another node.
func (a *app) inSession() bool {
	return a.io.Env("MUSTER_SOCKET") != "" && a.io.Env("MUSTER_SECRET_FILE") != "" && !a.dataSet && a.node == ""
}

// client is how this call reaches its node: --node with a token, a session's
// socket, or the socket in the data folder.
func (a *app) client() (*api.Client, error) {
	if a.cl != nil {
		return a.cl, nil
	}
	c := &api.Client{Timeout: a.timeout}
	switch {
	case a.node != "":
		tok, err := a.token("")
		if err != nil {
			return nil, err
		}
		if a.deps.Door == nil {
			return nil, board.Errorf(board.Invalid, "this build reaches no other node")
		}
		if c.Dial, c.Auth, err = a.deps.Door(a.node, tok); err != nil {
			return nil, err
		}
		c.Socket = a.node
	case a.inSession():
		b, err := os.ReadFile(a.io.Env("MUSTER_SECRET_FILE"))
		if err != nil {
			return nil, fmt.Errorf("the session's secret: %w", err)
		}
		a.session = &session{}
		if err := json.Unmarshal(b, a.session); err != nil {
			return nil, fmt.Errorf("the session's secret file is broken: %w", err)
		}
		c.Socket, c.Auth = a.io.Env("MUSTER_SOCKET"), "Run "+a.session.Run+":"+a.session.Secret
		if !a.timeoutSet {
			c.Timeout = patience
		}
	default:
		home, err := a.home()
		if err != nil {
			return nil, err
		}
		c.Socket = filepath.Join(home, "muster.sock")
	}
	a.cl = c
	return c, nil
}

// token is what --token-file holds; "-" is stdin. word is one given as an argument.
func (a *app) token(word string) (string, error) {
	file := a.tokenFile
	if word == "-" {
		file = "-"
	} else if word != "" {
		return word, nil
	}
	switch file {
	case "":
		return "", usagef("a token is needed: --token-file F")
	case "-":
		var b strings.Builder
		buf := make([]byte, 4096)
		for b.Len() < 1<<16 && !strings.Contains(b.String(), "\n") {
			n, err := a.io.In.Read(buf)
			b.Write(buf[:n])
			if err != nil {
				break
			}
		}
		return tokenIn("stdin", b.String())
	}
	b, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("token: %w", err)
	}
	return tokenIn("token file "+file, string(b))
}

// tokenIn is the token that a text holds. None is an error: up would take it for no join,
// and make a fleet of its own.
func tokenIn(what, text string) (string, error) {
	tok := strings.TrimSpace(text)
	if tok == "" {
		return "", usagef("%s is empty; it must hold a token, as muster token create prints it", oneLine(what))
	}
	return tok, nil
}

// get reads from the node.
func (a *app) get(ctx context.Context, path string, q url.Values) (*api.Answer, error) {
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	if a.consistent {
		if q == nil {
			q = url.Values{}
		}
		q.Set("consistent", "true")
	}
	return a.patient(ctx, func() (*api.Answer, error) { return c.Get(ctx, path, q) })
}

// do has a request executed.
func (a *app) do(ctx context.Context, verb string, args any) (*api.Answer, error) {
	c, err := a.client()
	if err != nil {
		return nil, err
	}
	return a.patient(ctx, func() (*api.Answer, error) { return c.Do(ctx, verb, args, a.requestID, a.requestID != "") })
}

// patient lets a session's verb outlive a restart of its node: a session has
// nobody to tell that it was refused for a reason that passes (M-25).
func (a *app) patient(ctx context.Context, call func() (*api.Answer, error)) (*api.Answer, error) {
	if a.session == nil {
		ans, err := call()
		return ans, withID(ans, err)
	}
	end := time.Now().Add(a.cl.Timeout)
	slow := time.AfterFunc(3*time.Second, func() {
		fmt.Fprintln(a.io.Err, "muster: waiting for this machine's node and a leader ...")
	})
	defer slow.Stop()
	for {
		ans, err := call()
		if !errors.Is(err, &board.Error{Code: board.Unavailable, Check: "no_node"}) || time.Now().After(end) {
			return ans, withID(ans, err)
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(300 * time.Millisecond):
		}
	}
}

func withID(ans *api.Answer, err error) error {
	var e *board.Error
	if errors.As(err, &e) && ans != nil && ans.RequestID != "" && e.Code == board.UnknownOutcome {
		return &callError{e, ans.RequestID}
	}
	return err
}

// ownCard is the card of the session that speaks.
func (a *app) ownCard() (string, error) {
	if a.inSession() {
		if c := a.io.Env("MUSTER_CARD"); c != "" {
			return c, nil
		}
	}
	return "", usagef("which card? (only inside a session a verb knows its own)")
}

// boardName is the board this call is about.
func (a *app) boardName() string {
	if a.board == "" {
		return "default"
	}
	return a.board
}

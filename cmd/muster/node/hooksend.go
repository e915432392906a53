package node

import (
	"bytes"
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"muster/board"
)

// Headers of a webhook, as the Standard Webhooks specification names them: the
// signature is HMAC-SHA256 over "ID.TIME.BODY".
const (
	hookIDHeader   = "Webhook-Id" // the event's id: a receiver tells a repeat by it
	hookTimeHeader = "Webhook-Timestamp"
	hookSignHeader = "Webhook-Signature"
)

const (
	maxHookAnswer = 64 << 10 // bytes of an answer that are read
	minHookSecret = 16
	maxHookSecret = 4 << 10
)

// hookSender posts events. Nothing of an answer is believed but its status.
type hookSender struct {
	data, name string
	client     *http.Client
}

func newHookSender(data, name string) *hookSender {
	d := &net.Dialer{Timeout: 5 * time.Second}
	t := &http.Transport{ // no proxy: what goes to this machine must not leave it
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			host, port, err := net.SplitHostPort(addr)
			if err == nil && host == "localhost" { // whatever a resolver says
				if c, err := d.DialContext(ctx, network, net.JoinHostPort("127.0.0.1", port)); err == nil {
					return c, nil
				}
				addr = net.JoinHostPort("::1", port)
			}
			return d.DialContext(ctx, network, addr)
		},
		TLSHandshakeTimeout: 5 * time.Second, ResponseHeaderTimeout: hookTime, MaxResponseHeaderBytes: 64 << 10,
		DisableCompression: true, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute,
	}
	return &hookSender{data: data, name: name, client: &http.Client{Transport: t, Timeout: hookTime,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// send posts one event; nil when it was taken (2xx).
func (s *hookSender) send(ctx context.Context, h *board.Webhook, id string, body []byte) error {
	if err := board.CheckHookURL(h.URL); err != nil { // a state of another version
		return err
	}
	secret, err := s.secret(h.Secret)
	if err != nil {
		return err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, h.URL, bytes.NewReader(body))
	if err != nil {
		return errors.New("its address cannot be used")
	}
	at := strconv.FormatInt(time.Now().Unix(), 10)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("User-Agent", "muster")
	req.Header.Set(hookIDHeader, id)
	req.Header.Set(hookTimeHeader, at)
	req.Header.Set(hookSignHeader, sign(secret, id, at, body))
	res, err := s.client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err // without the address: it may hold a secret
		}
		return err
	}
	defer res.Body.Close()
	_, _ = io.CopyN(io.Discard, res.Body, maxHookAnswer)
	switch {
	case res.StatusCode >= 200 && res.StatusCode < 300:
		return nil
	case res.StatusCode >= 300 && res.StatusCode < 400:
		return fmt.Errorf("answered %d: redirects are not followed", res.StatusCode)
	}
	return fmt.Errorf("answered %d %s", res.StatusCode, http.StatusText(res.StatusCode))
}

// sign is the value of the signature's header.
func sign(secret []byte, id, at string, body []byte) string {
	m := hmac.New(sha256.New, secret)
	fmt.Fprintf(m, "%s.%s.", id, at)
	m.Write(body)
	return "v1," + base64.StdEncoding.EncodeToString(m.Sum(nil))
}

// secret reads the file that the state names: a path, or a name in the folder
// `secrets` of this node's data. It is read each time, so that it can be changed.
func (s *hookSender) secret(file string) ([]byte, error) {
	path := file
	if !filepath.IsAbs(path) {
		path = filepath.Join(s.data, "secrets", filepath.Base(file))
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("its secret file %s cannot be read on %s: %w", file, s.name, bare(err))
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return nil, fmt.Errorf("its secret file %s cannot be read on %s: %w", file, s.name, bare(err))
	case !st.Mode().IsRegular():
		return nil, fmt.Errorf("its secret file %s on %s is no file", file, s.name)
	case st.Mode().Perm()&0o077 != 0:
		return nil, fmt.Errorf("its secret file %s on %s can be read by others: chmod 600", file, s.name)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxHookSecret))
	if err != nil {
		return nil, fmt.Errorf("its secret file %s cannot be read on %s: %w", file, s.name, bare(err))
	}
	text := strings.TrimSpace(string(b))
	if key, ok := strings.CutPrefix(text, "whsec_"); ok {
		if b, err = base64.StdEncoding.DecodeString(key); err != nil {
			return nil, fmt.Errorf("its secret file %s on %s: what follows whsec_ is no base64", file, s.name)
		}
	} else {
		b = []byte(text)
	}
	if len(b) < minHookSecret {
		return nil, fmt.Errorf("its secret file %s on %s holds fewer than %d bytes", file, s.name, minHookSecret)
	}
	return b, nil
}

// bare is an error without the path that its message names already.
func bare(err error) error {
	var p *os.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

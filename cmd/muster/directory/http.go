package directory

import (
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
	"strings"
	"time"

	"muster/board"
)

const (
	maxAnswer = 64 << 10 // bytes of an answer that are read
	maxToken  = 4 << 10
	maxURL    = 2 << 10
)

// Config is an organisation as a machine's own file names it.
type Config struct {
	URL         string `yaml:"url"`         // of the directory; "": the fleet itself is
	Credentials string `yaml:"credentials"` // file that holds the bearer token: a path, or a name in the folder secrets of the data folder
}

// Check says what is wrong with it.
func (c Config) Check() error {
	switch u, err := url.Parse(c.URL); {
	case c.URL == "" && c.Credentials == "":
		return nil
	case c.URL == "":
		return errors.New("credentials without a url")
	case c.Credentials == "":
		return errors.New("credentials: name the file that holds the directory's token")
	case err != nil || u.Host == "" || u.Opaque != "" || len(c.URL) > maxURL:
		return errors.New("url: that is no address")
	case u.User != nil || u.RawQuery != "" || u.Fragment != "":
		return errors.New("url: an address has no password, query or fragment; what lets in stands in the file of credentials")
	case u.Scheme == "https" || u.Scheme == "http" && board.Loopback(u.Hostname()):
		return nil
	}
	return errors.New("url: https://HOST/..., or http only to 127.0.0.1, [::1] or localhost: what is sent would be read on the way")
}

// HTTP is a directory at an address.
type HTTP struct {
	url, file string
	client    *http.Client
}

// New is the service that a machine's file names; data is its data folder.
func New(c Config, data string) Service {
	if c.URL == "" {
		return Fleet{}
	}
	file := c.Credentials
	if !filepath.IsAbs(file) {
		file = filepath.Join(data, "secrets", filepath.Base(file))
	}
	t := &http.Transport{DialContext: (&net.Dialer{Timeout: 5 * time.Second}).DialContext, TLSHandshakeTimeout: 5 * time.Second,
		MaxResponseHeaderBytes: 64 << 10, DisableCompression: true, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 1, IdleConnTimeout: time.Minute}
	if !strings.HasPrefix(c.URL, "http:") { // what goes to this machine does not leave it
		t.Proxy = http.ProxyFromEnvironment
	}
	return &HTTP{url: strings.TrimRight(c.URL, "/"), file: file, client: &http.Client{Transport: t, Timeout: Timeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}}
}

// Declare implements [Service].
func (s *HTTP) Declare(ctx context.Context, d Declaration) error {
	return s.say(ctx, "/agents", d.ID, d.Key, d)
}

// End implements [Service].
func (s *HTTP) End(ctx context.Context, e End) error {
	return s.say(ctx, "/agents/"+url.PathEscape(e.ID)+"/end", e.ID, e.Key, e)
}

// say posts one word about an agent.
func (s *HTTP) say(ctx context.Context, path, agent, key string, word any) error {
	token, err := s.token()
	if err != nil {
		return err
	}
	body, err := json.Marshal(word)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, Timeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+path, bytes.NewReader(body))
	if err != nil {
		return errors.New("its address cannot be used")
	}
	req.Header.Set("Authorization", "Bearer "+token)
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Idempotency-Key", key)
	req.Header.Set("User-Agent", "muster")
	res, err := s.client.Do(req)
	if err != nil {
		var u *url.Error
		if errors.As(err, &u) {
			err = u.Err
		}
		if errors.Is(err, context.DeadlineExceeded) {
			return fmt.Errorf("no answer within %s", Timeout)
		}
		return err
	}
	defer res.Body.Close()
	b, err := io.ReadAll(io.LimitReader(res.Body, maxAnswer))
	if err != nil {
		return fmt.Errorf("its answer broke off: %w", err)
	}
	return judge(res.StatusCode, b, agent)
}

// answer is what is read of a directory's answer.
type answer struct {
	ID    string `json:"id"`
	Agent string `json:"agent"` // that it does not know
	Error string `json:"error"`
}

// judge reads an answer to a word about an agent.
func judge(status int, body []byte, agent string) error {
	var a answer
	_ = json.Unmarshal(body, &a) // what is no JSON says nothing more than its status
	text := fmt.Sprintf("answered %d %s", status, http.StatusText(status))
	if a.Error != "" {
		text += ": " + clip(a.Error)
	}
	switch {
	case status >= 200 && status < 300 || status == http.StatusConflict && a.ID == agent:
		if a.ID != "" && a.ID != agent {
			return &Refused{fmt.Sprintf("has another agent there: %s instead of %s", clip(a.ID), agent)}
		}
		return nil
	case status >= 300 && status < 400:
		return fmt.Errorf("answered %d: redirects are not followed", status)
	case status == http.StatusNotFound && board.IsAgentID(a.Agent):
		return &Unknown{a.Agent}
	case status == http.StatusUnauthorized, status == http.StatusForbidden, status == http.StatusNotFound, status == http.StatusRequestTimeout,
		status == http.StatusTooEarly, status == http.StatusTooManyRequests, status >= 500, status < 200:
		return errors.New(text)
	}
	return &Refused{text}
}

func clip(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r == 0x7f {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	if r := []rune(s); len(r) > 200 {
		return string(r[:200]) + "..."
	}
	return s
}

// token reads the file of credentials: each time, so that it can be changed.
func (s *HTTP) token() (string, error) {
	f, err := os.Open(s.file)
	if err != nil {
		return "", fmt.Errorf("the file of credentials cannot be read: %w", err)
	}
	defer f.Close()
	st, err := f.Stat()
	switch {
	case err != nil:
		return "", fmt.Errorf("the file of credentials cannot be read: %w", err)
	case !st.Mode().IsRegular():
		return "", fmt.Errorf("credentials: %s is no file", s.file)
	case st.Mode().Perm()&0o077 != 0:
		return "", fmt.Errorf("credentials: %s can be read by others: chmod 600", s.file)
	}
	b, err := io.ReadAll(io.LimitReader(f, maxToken+1))
	if err != nil {
		return "", fmt.Errorf("the file of credentials cannot be read: %w", err)
	}
	t := strings.TrimSpace(string(b))
	if t == "" || len(b) > maxToken || strings.ContainsFunc(t, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return "", fmt.Errorf("credentials: %s holds no token: one word of at most %d printable characters", s.file, maxToken)
	}
	return t, nil
}

// Limit is how long one call may take.
func (s *HTTP) Limit() time.Duration { return s.client.Timeout }

package web

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/renameio/v2"
)

const (
	codeTime = 2 * time.Minute
	maxCodes = 64
	stayTime = 7 * 24 * time.Hour // how long a page stays let in without `muster web`
	keyBytes = 32
	stayMark = "w1." // what a page's own bearer begins with; tokens of the fleet begin otherwise
)

// codes are the ways in that were made and not used yet.
type codes struct {
	mu  sync.Mutex
	all map[string]code
}

type code struct {
	name  string
	until time.Time
}

// make gives out a code; the oldest goes when there are too many.
func (c *codes) make(name string) (string, time.Time) {
	b := make([]byte, 24)
	_, _ = rand.Read(b) // never fails
	text := base64.RawURLEncoding.EncodeToString(b)
	until := time.Now().Add(codeTime)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.all == nil {
		c.all = map[string]code{}
	}
	oldest := ""
	for k, x := range c.all {
		if time.Now().After(x.until) {
			delete(c.all, k)
		} else if oldest == "" || x.until.Before(c.all[oldest].until) {
			oldest = k
		}
	}
	if len(c.all) >= maxCodes {
		delete(c.all, oldest)
	}
	c.all[text] = code{name, until}
	return text, until
}

// take uses a code up.
func (c *codes) take(text string) (name string, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	x, ok := c.all[text]
	delete(c.all, text)
	return x.name, ok && time.Now().Before(x.until)
}

// stay is what a page's bearer says. It is signed and kept nowhere, so it outlives
// a restart of the node; another web.key ends them all.
type stay struct {
	Name  string `json:"n"`
	Until int64  `json:"u"` // Unix seconds
	At    string `json:"a"` // the listener it is for: worth nothing elsewhere
}

func (s *Server) bearer(name string) (string, time.Time) {
	until := time.Now().Add(stayTime)
	raw, err := json.Marshal(stay{name, until.Unix(), s.Addr()})
	if err != nil {
		return "", until
	}
	return stayMark + base64.RawURLEncoding.EncodeToString(raw) + "." + base64.RawURLEncoding.EncodeToString(s.sign(raw)), until
}

func (s *Server) sign(raw []byte) []byte {
	m := hmac.New(sha256.New, s.key)
	m.Write([]byte("muster web 1\n"))
	m.Write(raw)
	return m.Sum(nil)
}

// known is the person that a page's own bearer was made for.
func (s *Server) known(text string) (name string, ok bool) {
	body, sum, cut := strings.Cut(strings.TrimPrefix(text, stayMark), ".")
	raw, err := base64.RawURLEncoding.DecodeString(body)
	got, err2 := base64.RawURLEncoding.DecodeString(sum)
	var x stay
	if !cut || err != nil || err2 != nil || !hmac.Equal(got, s.sign(raw)) || json.Unmarshal(raw, &x) != nil {
		return "", false
	}
	return x.Name, x.At == s.Addr() && time.Now().Unix() < x.Until
}

// loadKey reads the key that bearers are signed with, and makes one that is not there.
func loadKey(path string) ([]byte, error) {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		key := make([]byte, keyBytes)
		_, _ = rand.Read(key) // never fails
		return key, writePrivate(path, key)
	}
	if err != nil {
		return nil, fmt.Errorf("the page's key: %w", err)
	}
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 {
		return nil, fmt.Errorf("the page's key %s can be read by others, or is no file: delete it, and a new one is made", path)
	}
	key, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("the page's key: %w", err)
	}
	if len(key) != keyBytes {
		return nil, fmt.Errorf("the page's key %s is broken: delete it, and a new one is made", path)
	}
	return key, nil
}

// writePrivate replaces a file of the node's user.
func writePrivate(path string, data []byte) error {
	return renameio.WriteFile(path, data, 0o600, renameio.WithTempDir(filepath.Dir(path)), renameio.IgnoreUmask())
}

package node

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"muster/board"
)

const tokenPrefix = "muster1."

// Token is what the one string of `muster token create` says: which fleet, where
// some of its nodes are and the hashes of their keys (a node's id is that hash),
// and the secret. The key is checked before the secret is sent.
type Token struct {
	Fleet   string   `json:"f"`
	Nodes   []peerID `json:"n"`
	Secret  string   `json:"s"`
	Role    string   `json:"r"`
	Expires int64    `json:"x,omitempty"` // ms
}

// String is the token as people copy it.
func (t *Token) String() string {
	b, err := json.Marshal(t)
	if err != nil {
		return ""
	}
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(b)
}

// ParseToken reads the string of `muster token create`.
func ParseToken(s string) (*Token, error) {
	s = strings.TrimSpace(s)
	body, ok := strings.CutPrefix(s, tokenPrefix)
	bad := board.Errorf(board.Invalid, "that is not a muster token").WithHint("copy the whole line that `muster token create` printed; it begins with %s", tokenPrefix)
	if !ok {
		return nil, bad
	}
	b, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return nil, bad
	}
	t := &Token{}
	if json.Unmarshal(b, t) != nil || t.Secret == "" || t.Fleet == "" || len(t.Nodes) == 0 {
		return nil, bad
	}
	if t.Expires != 0 && time.Now().UnixMilli() > t.Expires {
		return nil, board.Errorf(board.Refused, "this token ended %s ago", time.Since(time.UnixMilli(t.Expires)).Round(time.Second)).
			WithHint("make a new one on a node of the fleet: muster token create")
	}
	return t, nil
}

// random is n bytes of text that nobody can guess.
func random(n int) string {
	b := make([]byte, n)
	_, _ = rand.Read(b) // never fails
	return base64.RawURLEncoding.EncodeToString(b)
}

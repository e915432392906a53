package board

import (
	"fmt"
	"slices"
	"strings"
)

// tokenCreate stores a token by the hash of its secret: the secret itself never enters the state.
func tokenCreate(t *tx) (any, *Error) {
	a, err := args[TokenCreate](t)
	if err != nil {
		return nil, err
	}
	switch {
	case len(a.ID) != 64 || strings.Trim(a.ID, "0123456789abcdef") != "":
		return nil, Errorf(Invalid, "a token's id is the SHA-256 of its secret, in hex")
	case !slices.Contains([]string{"node", "manager", "member", "viewer"}, a.Role):
		return nil, Errorf(Invalid, "token role %q: use node, manager, member or viewer", clip(a.Role, 40))
	case !slices.Contains([]string{"", "manager", "member", "viewer", "none"}, a.Local):
		return nil, Errorf(Invalid, "--local %q: use manager, member, viewer or none", clip(a.Local, 40))
	case a.TTL < 0 || a.TTL > 366*24*3600 || a.Uses < 0 || a.Uses > 1_000_000:
		return nil, Errorf(Invalid, "a token lives at most a year and is used at most a million times")
	case GetToken(t, a.ID) != nil:
		return nil, Errorf(Conflict, "that token exists")
	case a.Name != "" && !validName(a.Name, 40):
		return nil, Errorf(Invalid, "--name %q: use letters, digits, dots, dashes and underscores, at most 40", clip(a.Name, 50))
	case a.Role == "node" && (a.Name != "" || a.Board != ""):
		return nil, Errorf(Invalid, "a token that lets machines join is of the whole fleet, and of nobody").WithHint("give --role manager, member or viewer with --name and --board")
	case a.Role != "node" && a.Local != "":
		return nil, Errorf(Invalid, "--local is for tokens that let machines join")
	}
	if err := t.freeToken(a.Name); err != nil {
		return nil, err
	}
	if a.Board != "" {
		if _, err := t.board(a.Board); err != nil {
			return nil, err
		}
	}
	k := &Token{ID: a.ID, Role: a.Role, Local: a.Local, Made: t.env.Now, Uses: a.Uses, By: t.req.Actor, Name: a.Name, Board: a.Board}
	if a.TTL > 0 {
		k.Expires = t.env.Now + a.TTL*1000
		t.putDue(k.Expires, DueExpire, k.ID)
	}
	t.putToken(k)
	t.event(nil, Event{Kind: "token_made", Payload: object("id", k.ID[:8], "role", k.Role, "name", k.Name, "board", k.Board)})
	return map[string]any{"id": k.ID[:8], "expires": k.Expires}, nil
}

// maxTokens is how many tokens may stand at a time.
const maxTokens = 1000

// freeToken refuses a name that another token has: what its bearer does is known
// by it. It also holds the bound of all tokens.
func (t *tx) freeToken(name string) *Error {
	var other *Token
	n := 0
	EachToken(t, func(k *Token) bool {
		n++
		if name != "" && k.Name == name && (k.Expires == 0 || k.Expires > t.env.Now) {
			other = k
		}
		return other == nil
	})
	if other != nil {
		return Errorf(Conflict, "a token of the name %q stands: %s", name, other.ID[:8]).WithHint("end it first (muster token revoke %s), or give another name", other.ID[:8])
	}
	if n >= maxTokens {
		return Errorf(Exhausted, "%d tokens stand already", n).WithHint("end some: muster token list, muster token revoke ID")
	}
	return nil
}

// tokenRevoke ends a token by its id or the first characters of it.
func tokenRevoke(t *tx) (any, *Error) {
	a, err := args[TokenRevoke](t)
	if err != nil {
		return nil, err
	}
	var found []*Token
	EachToken(t, func(k *Token) bool {
		if len(a.ID) >= 4 && strings.HasPrefix(k.ID, a.ID) {
			found = append(found, k)
		}
		return true
	})
	if len(found) != 1 {
		return nil, Errorf(NotFound, "%d tokens begin with %q", len(found), clip(a.ID, 64)).WithHint("see: muster token list")
	}
	t.delDue(found[0].Expires, DueExpire, found[0].ID)
	t.del(TToken, found[0].ID)
	t.event(nil, Event{Kind: "token_revoked", Payload: jsonOf(map[string]any{"id": found[0].ID[:8]})})
	return map[string]any{"id": fmt.Sprint(found[0].ID[:8])}, nil
}

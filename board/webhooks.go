package board

import (
	"net/netip"
	"net/url"
	"path"
	"regexp"
	"slices"
	"strings"
)

// Bounds of webhooks.
const (
	maxWebhooks = 20 // of a board
	maxHookURL  = 2 << 10
)

var secretRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// GetWebhook reads a board's webhook.
func GetWebhook(v View, slug, id string) *Webhook {
	return read[Webhook](v, TWebhook, WebhookKey(slug, id))
}

// EachWebhook reads all webhooks, by board.
func EachWebhook(v View, fn func(*Webhook) bool) {
	scan(v, TWebhook, "", "", func(_ string, h *Webhook) bool { return fn(h) })
}

// Wants tells whether an event is one of a webhook's. What an import brought along
// has happened elsewhere.
func (h *Webhook) Wants(e *Event) bool {
	return e.Board == h.Board && e.Origin == "" && (len(h.Kinds) == 0 || contains(h.Kinds, e.Kind))
}

// Where is a webhook's address as it may be shown: paths and queries hold secrets.
func (h *Webhook) Where() string {
	u, err := url.Parse(h.URL)
	if err != nil {
		return h.ID
	}
	return u.Scheme + "://" + u.Host + "/... (" + h.ID + ")"
}

// WebhookID is made of the address: a board has an address once.
func WebhookID(address string) string { return HashSecret(address)[:8] }

// CheckHookURL says what is wrong with an address: https, or http to this very machine.
func CheckHookURL(address string) *Error {
	u, err := url.Parse(address)
	bad := func(what string) *Error {
		return Errorf(Invalid, "webhook: %s", what).WithHint("use https://HOST/..., or http only to 127.0.0.1, [::1] or localhost")
	}
	switch {
	case err != nil || u.Host == "" || u.Opaque != "":
		return bad("that is no address")
	case len(address) > maxHookURL:
		return bad("its address is too long")
	case u.User != nil:
		return bad("an address holds no password: it would stand in the state")
	case u.Fragment != "":
		return bad("an address has no fragment")
	case u.Scheme == "https" || u.Scheme == "http" && Loopback(u.Hostname()):
		return nil
	}
	return bad("what is sent would be read on the way")
}

// Loopback tells whether a host name or address is this very machine.
func Loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	a, err := netip.ParseAddr(host)
	return err == nil && a.IsLoopback()
}

// webhookSet makes, changes or ends a webhook.
func webhookSet(t *tx) (any, *Error) {
	a, err := args[WebhookSet](t)
	if err != nil {
		return nil, err
	}
	b, err := t.board(a.Board)
	if err != nil {
		return nil, err
	}
	id := WebhookID(a.URL)
	h := GetWebhook(t, b.Slug, id)
	if a.Off {
		if h == nil {
			return nil, Errorf(NotFound, "board %s has no webhook to that address", b.Slug).WithHint("see: muster status")
		}
		t.del(TWebhook, WebhookKey(b.Slug, id))
		t.event(nil, Event{Kind: "webhook_ended", Board: b.Slug, Payload: object("id", id)})
		return map[string]any{"board": b.Slug, "id": id, "off": true}, nil
	}
	if err := CheckHookURL(a.URL); err != nil {
		return nil, err
	}
	if !secretRE.MatchString(a.Secret) && (!path.IsAbs(a.Secret) || path.Clean(a.Secret) != a.Secret || len(a.Secret) > 1000) {
		return nil, Errorf(Invalid, "webhook: its secret is a file: an absolute path, or a name in the folder `secrets` of each node's data folder").
			WithHint("the file must be on every machine that may lead; only its name is stored")
	}
	if len(a.Kinds) > 32 || slices.ContainsFunc(a.Kinds, func(k string) bool { return k == "" || len(k) > 64 }) {
		return nil, Errorf(Invalid, "at most 32 kinds of events, each a name")
	}
	if h == nil {
		n := 0
		t.Scan(TWebhook, b.Slug+"/", "", func(string, []byte) bool { n++; return true })
		if n >= maxWebhooks {
			return nil, Errorf(Exhausted, "board %s has %d webhooks already", b.Slug, n)
		}
		h = &Webhook{Board: b.Slug, ID: id, URL: a.URL, At: t.env.Now}
	}
	t.event(nil, Event{Kind: "webhook_set", Board: b.Slug, Payload: object("id", id)})
	if h.Cursor == "" {
		h.Cursor = EventKey(t.env.Seq, 0) // from here on
	}
	h.Secret, h.Kinds, h.By = a.Secret, a.Kinds, t.req.Actor
	h.Since, h.Failures, h.Error = 0, 0, ""
	t.put(TWebhook, WebhookKey(b.Slug, id), h)
	return map[string]any{"board": b.Slug, "id": id}, nil
}

// hookState notes how far the leader came with a webhook. It is no event: a hook
// of all events would never come to rest.
func hookState(t *tx) (any, *Error) {
	a, err := args[HookState](t)
	if err != nil {
		return nil, err
	}
	h := GetWebhook(t, a.Board, a.ID)
	if h == nil {
		return nil, Errorf(NotFound, "board %s has no webhook %s any more", a.Board, a.ID)
	}
	h.Cursor = max(h.Cursor, a.Cursor)
	h.Failures, h.Error = a.Failures, clip(strings.TrimSpace(a.Error), 300)
	switch {
	case a.Failures == 0:
		h.Since = 0
	case h.Since == 0:
		h.Since = t.env.Now
	}
	t.put(TWebhook, WebhookKey(h.Board, h.ID), h)
	return nil, nil
}

package board

import "testing"

// Threats: what is signed and sent goes over TLS, or stays on the machine; an address holds no password, a secret no content.
func TestWebhookAddresses(t *testing.T) {
	f := newFleet(t)
	for _, x := range []struct {
		url, secret string
		ok          bool
	}{
		{"https://example.org/hook?x=1", "web.key", true},
		{"http://127.0.0.1:8080/", "web.key", true},
		{"http://[::1]/", "/etc/muster/web.key", true},
		{"http://localhost:1/", "web.key", true},
		{"http://example.org/", "web.key", false},
		{"http://127.0.0.1.example.org/", "web.key", false},
		{"http://169.254.169.254/", "web.key", false},
		{"ftp://example.org/", "web.key", false},
		{"https://ann:pw@example.org/", "web.key", false},
		{"https://example.org/#x", "web.key", false},
		{"https:example.org", "web.key", false},
		{"", "web.key", false},
		{"https://example.org/", "", false},
		{"https://example.org/", "../web.key", false},
		{"https://example.org/", "/etc/../key", false},
		{"https://example.org/", "two words", false},
	} {
		res := f.do(by(ann, VWebhook), WebhookSet{Board: "default", URL: x.url, Secret: x.secret})
		if ok := res.Err == nil; ok != x.ok {
			t.Errorf("%q with secret %q: %v", x.url, x.secret, res.Err)
		}
	}
}

// M-21: a webhook's cursor is state and never goes back; failures are counted with their beginning, and end with a success.
func TestWebhookStateIsKept(t *testing.T) {
	f := newFleet(t)
	const url = "https://example.org/hook"
	f.must(by(ann, VWebhook), WebhookSet{Board: "default", URL: url, Secret: "k"})
	id := WebhookID(url)
	first := GetWebhook(f.v, "default", id).Cursor
	if first != EventKey(f.v.Seq(), 0) {
		t.Fatalf("a new webhook begins at %s, want %s: what happens from now on", first, EventKey(f.v.Seq(), 0))
	}
	say := func(s HookState) *Webhook {
		t.Helper()
		s.Board, s.ID = "default", id
		f.must(Request{Actor: Platform(), Verb: VHookState}, s)
		return GetWebhook(f.v, "default", id)
	}
	f.now += 1000
	began := f.now
	say(HookState{Failures: 1, Error: "no"})
	f.now += 1000
	if h := say(HookState{Failures: 2, Error: "still no"}); h.Since != began || h.Failures != 2 || h.Error != "still no" || h.Cursor != first {
		t.Fatalf("failing: %+v", h)
	}
	far := EventKey(f.v.Seq()+5, 1)
	say(HookState{Cursor: far})
	if h := say(HookState{Cursor: first}); h.Cursor != far || h.Since != 0 || h.Failures != 0 || h.Error != "" {
		t.Fatalf("working again: %+v", h)
	}
	if res := f.do(by(ann, VHookState), HookState{Board: "default", ID: id}); code(res) != Refused {
		t.Fatalf("a person moved the cursor: %v", res.Err)
	}
	f.must(by(ann, VWebhook), WebhookSet{Board: "default", URL: url, Off: true})
	if GetWebhook(f.v, "default", id) != nil {
		t.Fatal("it is still there")
	}
}

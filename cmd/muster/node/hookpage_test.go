package node

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

// The page on webhooks shows this function: what people copy is what is tested.
func verify(secret []byte, r *http.Request, body []byte, now time.Time) error {
	id, at := r.Header.Get("Webhook-Id"), r.Header.Get("Webhook-Timestamp")
	sent, err := strconv.ParseInt(at, 10, 64)
	if err != nil || now.Sub(time.Unix(sent, 0)).Abs() > 5*time.Minute {
		return errors.New("too old, or from the future")
	}
	mac := hmac.New(sha256.New, secret)
	fmt.Fprintf(mac, "%s.%s.%s", id, at, body)
	want := "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	for _, got := range strings.Fields(r.Header.Get("Webhook-Signature")) {
		if hmac.Equal([]byte(got), []byte(want)) {
			return nil
		}
	}
	return errors.New("not signed with this secret")
}

// TestWebhooksPage: the page's code takes what a node signs and nothing else, and its example is right.
func TestWebhooksPage(t *testing.T) {
	raw, err := os.ReadFile("../../../docs/webhooks.md")
	if err != nil {
		t.Fatal(err)
	}
	own, err := os.ReadFile("hookpage_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page := string(raw)
	_, code, _ := strings.Cut(page, "```go\n")
	code, _, _ = strings.Cut(code, "```")
	if code == "" || !strings.Contains(string(own), code) {
		t.Errorf("the page's code is not the one that is tested here:\n%s", code)
	}
	secret, body := []byte("0123456789abcdef0123456789abcdef"), []byte(`{"v":1}`)
	signed := sign(secret, "42.0", "1700000000", body)
	if !strings.Contains(page, "`"+signed+"`") {
		t.Errorf("the page's example is %s", signed)
	}
	r := &http.Request{Header: http.Header{hookIDHeader: {"42.0"}, hookTimeHeader: {"1700000000"}, hookSignHeader: {signed}}}
	now := time.Unix(1700000000, 0)
	if err := verify(secret, r, body, now.Add(time.Minute)); err != nil {
		t.Error(err)
	}
	for what, err := range map[string]error{
		"another body": verify(secret, r, []byte(`{"v":2}`), now), "another secret": verify([]byte("another secret of 32 bytes or so"), r, body, now),
		"a copy of an hour ago": verify(secret, r, body, now.Add(time.Hour)),
	} {
		if err == nil {
			t.Errorf("%s is taken", what)
		}
	}
}

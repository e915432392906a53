package api_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/api/apitest"
)

// onlyError reads an answer that must be one error envelope of one line.
func onlyError(t *testing.T, body []byte) *api.Failure {
	t.Helper()
	var env api.Envelope
	if err := json.Unmarshal(body, &env); err != nil || env.Error == nil || env.V != api.Version || env.Data != nil || strings.Contains(env.Error.Message, "\n") {
		t.Fatalf("no error envelope: %.300s (%v)", body, err)
	}
	return env.Error
}

// Bodies that no client of ours sends are answered by one clear error, through
// both ways into the socket (a plain request, and net/http), and change nothing;
// text that would not be stored as it was sent is refused (BRD).
func TestOddBodies(t *testing.T) {
	f := apitest.New()
	c := serve(t, f)
	card := func(args string) string { return `{"verb":"card.add","args":{"board":"default",` + args + `}}` }
	deep := strings.Repeat(`{"a":`, 20_000) + "1" + strings.Repeat("}", 20_000)
	for name, x := range map[string]struct {
		body   string
		status int
		words  string
	}{
		"bytes":                   {card(`"title":"` + "a\xff\xfe" + `"`), 400, "no UTF-8"},
		"bytes in a key":          {card(`"title":"x","labels":{"` + "\xff" + `":"v"}`), 400, "no UTF-8"},
		"bytes in a payload":      {`{"verb":"event","args":{"card":"d-1","event":"comment","payload":{"text":"` + "\xc3" + `"}}}`, 400, "no UTF-8"},
		"half a pair":             {card(`"title":"\ud800"`), 400, "surrogate"},
		"the other half":          {card(`"title":"\udc00x"`), 400, "surrogate"},
		"two first halves":        {card(`"title":"\ud800\ud800"`), 400, "surrogate"},
		"half a pair at the end":  {`"\ud83d`, 400, "surrogate"},
		"an overlong form":        {card(`"title":"` + "\xc0\xaf" + `"`), 400, "no UTF-8"},
		"an encoded surrogate":    {card(`"title":"` + "\xed\xa0\x80" + `"`), 400, "no UTF-8"},
		"NaN":                     {card(`"title":"x","priority":NaN`), 400, "invalid character"},
		"Infinity":                {card(`"title":"x","priority":-Infinity`), 400, "invalid character"},
		"a huge number":           {card(`"title":"x","priority":1e400`), 400, "number 1e400"},
		"a number beyond int64":   {card(`"title":"x","priority":9223372036854775808`), 400, "number 9223372036854775808"},
		"a fraction":              {card(`"title":"x","priority":1.5`), 400, "number 1.5"},
		"a number for a text":     {card(`"title":7`), 400, "cannot unmarshal number"},
		"a list for a text":       {card(`"title":["x"]`), 400, "cannot unmarshal array"},
		"a text for a list":       {card(`"title":"x","skills":"y"`), 400, "cannot unmarshal string"},
		"a list of args":          {`{"verb":"card.add","args":[]}`, 400, "cannot unmarshal array"},
		"a list":                  {`[]`, 400, "cannot unmarshal array"},
		"a text":                  {`"card.add"`, 400, "cannot unmarshal string"},
		"nothing":                 {`null`, 400, "unknown verb"},
		"no args":                 {`{"verb":"card.add","args":null}`, 400, "title"},
		"deep":                    {`{"verb":"card.add","args":` + deep + `}`, 400, "exceeded max depth"},
		"deep in a payload":       {`{"verb":"event","args":{"card":"d-1","event":"comment","payload":` + deep + `}}`, 400, "exceeded max depth"},
		"a zero byte":             {card(`"title":"` + "a\x00b" + `"`), 400, "invalid character"},
		"a byte order mark":       {"\ufeff" + card(`"title":"x"`), 400, "invalid character"},
		"cut off":                 {`{"verb":"card.add","args":{"title":"x"`, 400, "unexpected EOF"},
		"rubbish after it":        {card(`"title":"x"`) + "rubbish", 400, "more than one"},
		"the last of two verbs":   {`{"verb":"card.add","verb":"report","args":{"board":"default","title":"x"}}`, 400, "report"},
		"the last of two titles":  {card(`"title":"x","title":""`), 400, "title"},
		"an id that is no string": {`{"verb":"card.add","id":7,"args":{"title":"x"}}`, 400, "cannot unmarshal number"},
		"a long id":               {`{"verb":"card.add","id":"` + strings.Repeat("1", 100_000) + `","args":{"board":"default","title":"x"}}`, 400, "id"},
	} {
		for way, header := range map[string]http.Header{"plain": nil, "net/http": {"X-Other": {"1"}, "Expect": {"100-continue"}}} {
			t.Run(name+", "+way, func(t *testing.T) {
				before := f.Hash()
				b, status, _ := exchange(t, c, http.MethodPost, "/v1/do", strings.NewReader(x.body), header)
				e := onlyError(t, b)
				if status != x.status || !strings.Contains(e.Message, x.words) || len(e.Message) > 600 {
					t.Errorf("status %d, %q; want %d with %q", status, clip(e.Message), x.status, x.words)
				}
				if after := f.Hash(); after != before {
					t.Errorf("it has changed the state")
				}
			})
		}
	}
	// What is odd and is text passes as it is.
	b, status, _ := exchange(t, c, http.MethodPost, "/v1/do", strings.NewReader(card(`"title":"\ud83d\ude00 \\ud800 \ufffd �"`)), nil)
	if status != 200 {
		t.Fatalf("status %d: %s", status, b)
	}
	if x, err := api.Decode[api.CardDetail](c.Get(t.Context(), "/v1/cards/d-1", nil)); err != nil || x.Title != "😀 \\ud800 \ufffd \ufffd" {
		t.Errorf("title %q (%v)", x.Title, err)
	}
}

func clip(s string) string { return s[:min(len(s), 300)] }

// A parameter that a read does not take, or whose value cannot be, is refused:
// it would be answered as if it had not been asked.
func TestQueriesAreHeldAgainstWhatIsTaken(t *testing.T) {
	c := serve(t, apitest.Story())
	for path, words := range map[string]string{
		"/v1/cards?limit=-1":                           `takes no "limit"`,
		"/v1/cards?Status=done":                        `takes no "Status"`,
		"/v1/cards?all=yes":                            `all="yes" cannot be`,
		"/v1/cards?consistent=1":                       `consistent="1" cannot be`,
		"/v1/cards?label=%ff":                          "cannot be",
		"/v1/cards?x=%zz":                              "cannot be read",
		"/v1/cards/d-1?deep=true":                      `takes no "deep"`,
		"/v1/events?limit=abc":                         `takes no "limit"`,
		"/v1/events?last=-1":                           `last="-1" cannot be`,
		"/v1/events?last=abc":                          `last="abc" cannot be`,
		"/v1/events?last=1e3":                          `last="1e3" cannot be`,
		"/v1/events?follow=1":                          `follow="1" cannot be`,
		"/v1/events?follow=true&limit=1":               `takes no "limit"`,
		"/v1/rounds?n=0":                               `n="0" cannot be`,
		"/v1/rounds?n=abc":                             `n="abc" cannot be`,
		"/v1/runs/d-1.1/log?from=-1":                   `from="-1" cannot be`,
		"/v1/runs/d-1.1/log?from=99999999999999999999": "cannot be",
		"/v1/status?verbose=true":                      `takes no "verbose"`,
	} {
		b, status, _ := exchange(t, c, http.MethodGet, path, nil, nil)
		if e := onlyError(t, b); status != 400 || !strings.Contains(e.Message, words) {
			t.Errorf("%s: status %d, %q; want 400 with %q", path, status, e.Message, words)
		}
	}
}

// Junk on the sockets ends its own connection, soon and without a stack, and
// nobody else's.
func TestJunkOnTheSocket(t *testing.T) {
	f := apitest.New()
	c := serve(t, f)
	big := strings.Repeat("x", 100<<10)
	for name, junk := range map[string]string{
		"bytes":                      "\x00\xff\x16\x03\x01\r\n\r\n",
		"no HTTP":                    "hello\r\n\r\n",
		"an endless line":            big,
		"an endless head":            "POST /v1/do HTTP/1.1\r\nHost: muster\r\nX-A: " + big + "\r\n\r\n",
		"no length":                  "POST /v1/do HTTP/1.1\r\nHost: muster\r\nContent-Length: abc\r\n\r\n",
		"length below zero":          "POST /v1/do HTTP/1.1\r\nHost: muster\r\nContent-Length: -1\r\n\r\n",
		"length beyond all":          "POST /v1/do HTTP/1.1\r\nHost: muster\r\nContent-Length: 99999999999999999999\r\n\r\n",
		"a length of 1 TB":           "POST /v1/do HTTP/1.1\r\nHost: muster\r\nContent-Length: 1099511627776\r\n\r\n{}",
		"two lengths":                "POST /v1/do HTTP/1.1\r\nHost: muster\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\n{}x",
		"length and chunks":          "POST /v1/do HTTP/1.1\r\nHost: muster\r\nContent-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"broken chunks":              "POST /v1/do HTTP/1.1\r\nHost: muster\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"a header without a name":    "POST /v1/do HTTP/1.1\r\nHost: muster\r\n: x\r\n\r\n",
		"a header over two lines":    "POST /v1/do HTTP/1.1\r\nHost: muster\r\nA: b\r\n c\r\nContent-Length: 2\r\n\r\n{}",
		"bytes in the authorization": "POST /v1/do HTTP/1.1\r\nHost: muster\r\nAuthorization: Run \xff\x00:\r\nContent-Length: 2\r\n\r\n{}",
		"another version":            "POST /v1/do HTTP/9.9\r\nHost: muster\r\n\r\n",
		"a proxy's request":          "CONNECT example.org:443 HTTP/1.1\r\nHost: example.org\r\n\r\n",
		"up the tree":                "GET /../../etc/passwd HTTP/1.1\r\nHost: muster\r\nConnection: close\r\n\r\n",
		"bytes in the path":          "GET /v1/cards/%ff%00 HTTP/1.1\r\nHost: muster\r\nConnection: close\r\n\r\n",
		"half a head":                "POST /v1/do HTT",
	} {
		for _, socket := range []string{"muster.sock", "session.sock"} {
			t.Run(name+", "+socket, func(t *testing.T) {
				before := f.Hash()
				conn, err := net.Dial("unix", filepath.Join(filepath.Dir(c.Socket), socket))
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
				_ = conn.SetDeadline(time.Now().Add(20 * time.Second))
				go func() { // it may be cut off while it writes
					_, _ = io.WriteString(conn, junk)
					_ = conn.(*net.UnixConn).CloseWrite()
				}()
				for r := bufio.NewReader(conn); ; {
					res, err := http.ReadResponse(r, nil)
					if err != nil {
						if ne, ok := err.(net.Error); ok && ne.Timeout() {
							t.Errorf("the connection is still open after 20 s")
						}
						break
					}
					b, _ := io.ReadAll(res.Body)
					if res.StatusCode/100 == 2 || strings.Contains(string(b), "goroutine ") {
						t.Errorf("HTTP %d: %.300s", res.StatusCode, b)
					}
				}
				if after := f.Hash(); after != before {
					t.Errorf("it has changed the state")
				}
			})
		}
	}
	if _, err := c.Do(t.Context(), board.VCardAdd, board.CardAdd{CardFields: title("after all that")}, "", false); err != nil {
		t.Errorf("then: %v", err)
	}
}

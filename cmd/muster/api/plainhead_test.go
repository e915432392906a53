package api

import "testing"

// What is plain is read right; whatever is not is left to net/http.
func TestPlainHead(t *testing.T) {
	for lines, plain := range map[string]bool{
		"Host: m\r\nContent-Length: 12\r\n": true,
		"host: m\r\ncontent-length:12 \r\nUser-Agent: x\r\nAccept: */*\r\nAccept-Encoding: gzip\r\n": true,
		"Content-Length: 12\r\n": false,
		"Host: m\r\n":            false,
		"Host: m\r\nContent-Length: 12\r\nHost: n\r\n":              false,
		"Host: m\r\nContent-Length: 12\r\nConnection: close\r\n":    false,
		"Host: m\r\nContent-Length: 12\r\nExpect: 100-continue\r\n": false,
		"Host: m\r\nContent-Length: 1e1\r\n":                        false,
		"Host: m\r\nContent-Length: -1\r\n":                         false,
		"Host: m\r\nContent-Length: 2000000\r\n":                    false,
		"Host: m\r\n Content-Length: 12\r\n":                        false,
		"Host: m\r\nContent-Length: 12\r\nAccept: a\x00b\r\n":       false,
		"Host: m\nContent-Length: 12\r\n":                           false,
	} {
		var h plainHead
		if got := h.parse([]byte(lines)); got != plain || got && h.length != 12 {
			t.Errorf("%q: plain %v, length %d", lines, got, h.length)
		}
	}
	var h plainHead
	if !h.parse([]byte("Host: m\r\nAuthorization: Run a:b\r\nMuster-Timeout: 3s\r\nMuster-Request-Id: 1-x.2.y\r\nContent-Length: 0\r\n")) ||
		h.authorization != "Run a:b" || h.timeout != "3s" || h.id != "1-x.2.y" {
		t.Errorf("%+v", h)
	}
}

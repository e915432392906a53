package api

import "testing"

// FuzzHead: whatever the head of a request is, it is plain and within its bounds, or net/http's.
func FuzzHead(f *testing.F) {
	for _, s := range []string{"", "Host: x\r\nContent-Length: 5\r\n", "Content-Length: 99999999999999999999\r\n", "Content-Length: -1\r\n", "Authorization: Run a:b\r\nContent-Length: 0\r\n",
		"Content-Length: 1\r\nContent-Length: 2\r\n", "Transfer-Encoding: chunked\r\n", "a\r\n", ": \r\n", "Host\x00: x\r\n"} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var h plainHead
		if h.parse(b) && (h.length < 0 || h.length > maxBody) {
			t.Errorf("%q is plain, with a body of %d bytes", b, h.length)
		}
	})
}

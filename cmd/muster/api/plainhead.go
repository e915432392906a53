package api

import (
	"bytes"
	"strconv"
)

// plainStart is how a plain request begins.
var plainStart = []byte("POST /v1/do HTTP/1.1\r\n")

// plainMost is the length of the largest plain body; what is larger is net/http's.
const plainMost = 1 << 20

// plainHead is what a plain request says in its head.
type plainHead struct {
	length                     int
	authorization, timeout, id string
}

// parse reads header lines, each with its end. It is false for whatever is not
// plain: a header that it does not know, one that comes twice, a body without
// length, no host. Those requests may be good ones: net/http decides.
func (h *plainHead) parse(lines []byte) bool {
	seen := 0
	for len(lines) > 0 {
		line, rest, _ := bytes.Cut(lines, []byte("\r\n"))
		lines = rest
		name, value, ok := bytes.Cut(line, []byte(":"))
		if !ok || !printable(string(value)) {
			return false
		}
		value = bytes.Trim(value, " ")
		field := h.field(name, value)
		if field == 0 || field != passed && seen&field != 0 {
			return false
		}
		seen |= field
	}
	return seen&hasHost != 0 && seen&hasLength != 0
}

// Headers that a plain request may have.
const (
	passed = 1 << iota // says nothing that matters here
	hasHost
	hasLength
	hasAuthorization
	hasTimeout
	hasID
)

// field takes one header; 0 when it is none of a plain request.
func (h *plainHead) field(name, value []byte) int {
	is := func(known string) bool { return len(name) == len(known) && bytes.EqualFold(name, []byte(known)) }
	switch {
	case is("Host"):
		return hasHost
	case is("Content-Length"):
		n, err := strconv.ParseUint(string(value), 10, 31)
		if err != nil || n > plainMost {
			return 0
		}
		h.length = int(n)
		return hasLength
	case is("Content-Type"), is("User-Agent"), is("Accept"), is("Accept-Encoding"):
		return passed
	case is("Authorization"):
		h.authorization = string(value)
		return hasAuthorization
	case is(HeaderTimeout):
		h.timeout = string(value)
		return hasTimeout
	case is(HeaderRequestID):
		h.id = string(value)
		return hasID
	}
	return 0
}

// printable tells that a text has no control characters: it can stand in a head.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] < ' ' || s[i] == 0x7f {
			return false
		}
	}
	return true
}

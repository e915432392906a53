package api

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"muster/board"
)

// decodeFrom reads one JSON value, strictly, and nothing after it.
func decodeFrom(from io.Reader, into any) error {
	raw, err := io.ReadAll(from)
	if err != nil {
		var large *http.MaxBytesError
		if errors.As(err, &large) {
			return err
		}
		return board.Errorf(board.Invalid, "request: %v", err)
	}
	return decodeBytes(raw, into)
}

func decodeBytes(raw []byte, into any) error {
	if err := onlyText(raw); err != nil {
		return err
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return board.Errorf(board.Invalid, "request: %v", err)
	}
	if _, err := d.Token(); err != io.EOF {
		return board.Errorf(board.Invalid, "request: more than one JSON value")
	}
	return nil
}

// onlyText refuses what encoding/json would replace without a word: bytes that
// are no UTF-8, and halves of surrogate pairs. What is stored is what was sent.
func onlyText(raw []byte) error {
	if !utf8.Valid(raw) {
		return board.Errorf(board.Invalid, "request: it holds bytes that are no UTF-8").WithCheck("utf8").WithHint("send text; what is no text belongs into a file")
	}
	for rest := raw; ; {
		i := bytes.IndexByte(rest, '\\')
		if i < 0 || i+1 >= len(rest) {
			return nil
		}
		u := escaped(rest[i:])
		rest = rest[i+2:] // past an escaped backslash, too
		switch {
		case u>>10 == 0xd800>>10 && escaped(rest[min(4, len(rest)):])>>10 == 0xdc00>>10:
			rest = rest[10:]
		case u>>11 == 0xd800>>11:
			return board.Errorf(board.Invalid, `request: it holds half of a surrogate pair, \u%04x`, u).WithCheck("utf8")
		}
	}
}

// escaped is the value of a \uXXXX that b begins with, 0 without one.
func escaped(b []byte) uint64 {
	if len(b) < 6 || b[0] != '\\' || b[1] != 'u' {
		return 0
	}
	u, err := strconv.ParseUint(string(b[2:6]), 16, 16)
	if err != nil {
		return 0
	}
	return u
}

// asks are the parameters that a read takes besides `consistent`, each with what
// its value has to be. One that is not here is a mistake, which would be answered
// as if it had not been asked.
type asks map[string]func(string) bool

func anyText(s string) bool { return utf8.ValidString(s) }
func truth(s string) bool   { return s == "true" || s == "false" }

// number is one from least on.
func number(least int64) func(string) bool {
	return func(s string) bool {
		n, err := strconv.ParseInt(s, 10, 64)
		return err == nil && n >= least
	}
}

// check holds a query against what is taken.
func (a asks) check(r *http.Request) error {
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return board.Errorf(board.Invalid, "%s: its query cannot be read: %v", clip(r.URL.Path), err)
	}
	for _, k := range slices.Sorted(maps.Keys(q)) {
		fits := a[k]
		if k == "consistent" {
			fits = truth
		}
		if fits == nil {
			known := append(slices.Collect(maps.Keys(a)), "consistent")
			slices.Sort(known)
			return board.Errorf(board.Invalid, "%s takes no %q", clip(r.URL.Path), clip(k)).WithHint("it takes: %s", strings.Join(known, ", "))
		}
		for _, v := range q[k] {
			if !fits(v) {
				return board.Errorf(board.Invalid, "%s: %s=%q cannot be", clip(r.URL.Path), clip(k), clip(v))
			}
		}
	}
	return nil
}

package board

import (
	"errors"
	"fmt"
)

// Code is the machine-readable class of an [Error]. The API maps it to a status
// and back, so errors.Is works across the socket.
type Code string

// The codes. Few on purpose: a caller reacts to the class, a person reads the message.
const (
	Invalid        Code = "invalid"         // the request itself is wrong; do not repeat it as it is
	NotFound       Code = "not_found"       // what it names is not there
	Refused        Code = "refused"         // a rule of the board, the fleet or the workflow says no
	Conflict       Code = "conflict"        // somebody was faster; look again
	Exhausted      Code = "exhausted"       // a bound or a quota is reached
	Unavailable    Code = "unavailable"     // no leader, no quorum, too many waiting: try again
	UnknownOutcome Code = "unknown_outcome" // it may or may not have happened; ask again under the same id
	Internal       Code = "internal"        // a defect of muster
)

// Error is what every refusal and failure of the domain is: a class, one
// sentence for people (what, which, why) and what to do next.
type Error struct {
	Code    Code   `json:"code"`
	Check   string `json:"check,omitempty"` // the named check that refused (no_transition, respawn_guard, cap, ...)
	Message string `json:"message"`
	Hint    string `json:"hint,omitempty"`
}

func (e *Error) Error() string { return e.Message }

// Is makes errors.Is(err, &Error{Code: c}) compare classes only.
func (e *Error) Is(target error) bool {
	t, ok := target.(*Error)
	return ok && t.Code == e.Code && (t.Check == "" || t.Check == e.Check)
}

// Errorf makes an Error of a class.
func Errorf(code Code, format string, args ...any) *Error {
	return &Error{Code: code, Message: fmt.Sprintf(format, args...)}
}

// WithHint returns a copy that says what to do next.
func (e *Error) WithHint(format string, args ...any) *Error {
	c := *e
	c.Hint = fmt.Sprintf(format, args...)
	return &c
}

// WithCheck returns a copy that names the check that refused.
func (e *Error) WithCheck(check string) *Error {
	c := *e
	c.Check = check
	return &c
}

// CodeOf is the class of any error: Internal for one that is not ours, "" for nil.
func CodeOf(err error) Code {
	var e *Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &e):
		return e.Code
	}
	return Internal
}

// NoTransition is the check of the refusal that no transition took an event
// (ERR-01): the platform drops it silently (WFL-09), a person is told.
const NoTransition = "no_transition"

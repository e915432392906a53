// Package web serves the board in a browser: static files that are part of the
// binary, and the one API behind a bearer that only this page has.
//
// It trusts nothing that a browser sends by itself. Host is held against a list
// before anything else is looked at (DNS rebinding), Origin against it, no
// cookie is ever set or read, no other origin is answered, and what does not
// carry a bearer gets static files at most. All methods are safe for concurrent use.
package web

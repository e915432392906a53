// Package api is muster's one API: wire types, handlers, and a typed client.
//
// It is HTTP with JSON, on two unix sockets of a node (its user's, and the
// sessions'), and on the door of the mesh with a token. Every answer is an
// [Envelope]; errors keep their class across the wire, so errors.Is works on
// both sides. All faces (command line, page, terminal, bots) are clients of it.
//
// Concurrency. Handlers and Client may be used from many goroutines.
package api

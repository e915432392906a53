// Package board records: it is the domain of muster (boards, cards, runs,
// orders, nodes, the workflow that moves them) and [Exec], the pure function
// that turns a request into a transaction or a refusal.
//
// Guarantees. Everything here is values in, values out: no clock, no random
// source, no I/O, no goroutine, no logger. The same view, request and
// environment give the same transaction, byte for byte. Nothing in this package
// panics on any input.
//
// Concurrency. A [View] is read by one goroutine at a time; records returned by
// it are copies and may be kept. Exec is called by one goroutine, the leader's
// executor; helpers that only read may run anywhere.
package board

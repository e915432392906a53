// Package meshtest is a mesh in memory, with faults to order.
//
// Its Node keeps the promises of mesh.Network and mesh.Directory: calls answer,
// or fail as certainly not sent, or with an unknown outcome; a peer is who it
// is. It starts no goroutine that outlives a call, so that it works inside a
// testing/synctest bubble.
//
// Concurrency: everything may be used from any goroutine.
package meshtest

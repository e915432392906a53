// Package mesh says who a node is, who is in reach, and gives an authenticated
// connection to any node of the fleet.
//
// A node is its Ed25519 key: its id is the hash of that key, and a peer is who
// its key says. One TCP listener serves four protocols (ALPN): Raft, framed
// streams, gossip and the door. On every protocol but the door both sides must
// show a key that the Trust function of the wiring accepts; any other key is
// refused inside the handshake. One UDP socket on the same port number carries
// encrypted gossip packets.
//
// Guarantees:
//   - A connection handed out or accepted (but for the door) belongs to the
//     node named by its Peer; Recheck closes what is no longer trusted.
//   - Call answers with the handler's answer, a *RemoteError, an error that is
//     ErrNotSent (certainly not executed), or an error that Ambiguous reports as
//     an outcome nobody knows. It is never resent by itself once it was written.
//   - Nothing here decides anything: presence is a hint.
//
// Concurrency: all methods of Node may be used from any goroutine between Open
// and Close. Close is idempotent and waits for every goroutine of this package (the
// gossip library's own end soon after).
// Handlers run in goroutines of their own, bounded per peer. Trust and the other
// functions of Config are called with internal locks of the gossip library held:
// they must be quick and must not call back into the mesh.
package mesh

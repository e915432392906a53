// Package node is one running node of a fleet: it wires the rooms together and
// knows nothing that they know.
//
// It opens them in the order in which they need each other and closes them in
// the reverse (see [Node.Close]); it carries requests to the leader in one hop
// ([Node.Do]), keeps this node's contact with the leader, and, while this node
// leads, answers the contacts of others, runs the scheduler, pushes orders and
// keeps Raft's members as the node list wants them.
//
// Guarantees. A request is executed at most once, however often it is sent
// under its id; what may have happened is never answered as if it had not.
// Stopping or killing a node ends no session.
//
// Concurrency. All exported methods may be used from many goroutines between
// Open and Close; Close is idempotent and waits for all of them.
package node

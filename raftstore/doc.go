// Package raftstore agrees: one Raft group for the whole fleet, its log, the
// state it builds (one bbolt file on every machine), snapshots, membership,
// the leader's executor and the feed of changes.
//
// Guarantees. A request that was answered as done is in the logs of a majority,
// synced, and stays. A transaction is applied whole or not at all, once, in the
// same order everywhere; equal Seqs mean equal state hashes. A refusal, like a
// consistent read, was true at a moment at which this node led. What may or may
// not have been done is answered as unknown, never guessed. A state that is
// damaged, cut off, deleted, rolled back or behind its snapshot is restored or
// refused, never served. After a failed or hung write nobody is answered as
// done, and the store fails for good (Failed).
//
// Concurrency. All methods may be called from any goroutine. Functions given to
// View and Subscribe, and Config.OnCommit, must not block. Requests are decided
// one after the other by one goroutine; the state is written by one, Raft's.
// Apart from a snapshot being written, no reading of the state outlives a call.
package raftstore

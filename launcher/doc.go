// Package launcher acts: on every node it makes this machine's processes match
// the runs recorded for it.
//
// Guarantees. No session process exists without an order of the state or of a
// push that names the run (invariant 1), and none whose run folder does not
// record it. At most one process per run, whatever is killed in between: the
// folder's lock admits one keeper, and a folder that has been used is not used
// again (invariant 2). What is decided is in the journal, synced, before it is
// done. A session ends with its whole tree, or the exit record is not written.
// No signal goes to a process that is not verified by start time, boot and
// nonce. Reports leave in order, each until it has an outcome.
//
// Concurrency. A [Reconciler] is safe for concurrent use; one goroutine
// decides, and one order at a time is acted upon per run. [Keep] is the whole
// life of a keeper process and owns its process.
package launcher

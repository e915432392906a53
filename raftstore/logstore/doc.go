// Package logstore keeps a node's Raft log and vote on disk: one folder, one of two kinds (raft-wal or bbolt),
// one latch in front of both.
//
// Guarantees. A write that returned nil is on the disk, byte for byte, and survives kill -9 and a power cut; what an
// Open reports as its last entry is on the disk as well, even if an earlier process died before it had synced it. An
// entry is served only if its checksum holds. After the first failed or hung write no later write succeeds
// (Log.Failed tells the node to stop): on Linux a second fsync after a failed one may report success for data that is
// gone. A folder is used by one process at a time.
//
// Concurrency. Every method of Log may be called from any goroutine. Writes (entries and stable values) are done one
// after the other, in the order in which they get their turn; reads never wait for a write.
package logstore

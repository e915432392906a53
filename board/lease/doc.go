// Package lease decides when a session may start, and when it is certain that
// it is over: contact, lease, orders and their ends (architecture.md §3 to §5).
//
// It holds the deciding half of four actors, as step functions of values: the
// leader's contact table ([Table]), a node's lease clock ([Clock]), a node's
// order journal ([Next], [Orders]), the keeper's last checks ([KeeperMayExec],
// [KeeperDue]) and the order and session of a run as the state has them
// ([Run.Step]). The leader, the nodes and the keepers call exactly these; the
// explicit-state search of this package's tests drives the same functions.
//
// Guarantees, as long as a keeper lives or its machine's kernel ends its child
// with it: no process without an earlier committed run, at most one process
// per run, at most one live session per card and slot, and nothing that waits
// for a dead session waits for ever (invariants 1 to 3 and 20).
//
// Nothing here reads a clock, starts a goroutine or touches a disk. Values are
// safe to copy; [Table] and [Orders] belong to one goroutine at a time.
package lease

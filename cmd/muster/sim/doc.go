// Package sim runs whole fleets in one process and in fake time: the real node,
// Raft, executor, scheduler and launcher, over a network, disks and sessions in
// memory that fail by a seed. Its tests hold what came of it against the invariants.
//
// Guarantees. The same seed gives the same faults at the same moments of fake
// time; what the goroutines make of them may differ from run to run.
//
// Concurrency. A [Fleet] belongs to one bubble of testing/synctest.
package sim

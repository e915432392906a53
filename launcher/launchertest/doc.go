// Package launchertest holds the twin of the keepers: sessions in memory that
// leave the same files in a run's folder as a real keeper does.
//
// Guarantees. It holds a folder's lock, looks at the same things before it
// starts, is used once a folder, keeps the lease's deadline, and writes the exit
// record before it lets go. It starts no process and reads no clock but the one
// it is given, so that a fleet of many nodes runs in fake time.
//
// Concurrency. A [Runner] may be used by several reconcilers at once; its
// sessions outlive a reconciler that is closed, as real ones do.
package launchertest

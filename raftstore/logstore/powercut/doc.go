// Package powercut is a disk for tests that forgets what was not synced: an in-memory file system, mounted through
// FUSE for a process under test, that knows at any moment which pages, sizes and names are durable.
//
// Model. A page (4 KiB) is durable after a sync of its file; until then each version written since may be the one on
// the disk, or a mix of two by sectors of 512 bytes, or none. The size of a file is durable with its sync. A name
// (create, rename, unlink, mkdir) is durable after a sync of its folder; one rename is atomic. Names may be lost from
// the end (as journalling file systems do) or, in some cuts, in any combination. This is harsher than ext4: there a
// sync of a new file also keeps its name.
//
// Use. Only a child process may touch the mounted folder: a process that maps a file of its own FUSE server can stop
// for ever. Mount, run the child, Cut at a random moment (every later call of the child fails with EIO), kill the
// child, look at what survived in the plain folder that Cut wrote.
//
//	disk := powercut.New()
//	unmount, err := disk.Mount(dir)   // ErrUnavailable: no root, no /dev/fuse, not Linux
//	... start the child on dir; a kill -9 and a second child on the same disk is a crash without a power cut ...
//	<-disk.StopAfter(rng.IntN(500), true) // or at any moment, by the clock
//	lost, err := disk.Cut(rng, survivors)
//	... kill the child; unmount() ...
//	... open the store in survivors: what was acknowledged must be there ...
//
// Without FUSE a trace recorded with Record can be cut at any point by Replay: it proves how a store opens what a cut
// leaves, not that today's store still syncs where the recorded one did.
//
// Concurrency. A Disk may be used from many goroutines; every call takes its lock.
package powercut

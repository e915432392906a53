// Package orphantest runs a package's tests so that no process of theirs outlives them.
//
// Guarantees. What a keeper, a tmux server or a session is made for, to live on when who
// started it ends, is a leak when that was a test. On Linux nothing of it is left when the
// tests have ended, also by a panic, their own time limit or a kill; elsewhere only what
// they clean up themselves. What ends a test's own processes stays that test's affair: it
// shows that they can be ended.
//
// Concurrency. [Run] is called once, by TestMain.
package orphantest

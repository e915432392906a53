// Package service installs a node with the machine's own manager of services:
// systemd (of a user, or of the system) or launchd.
//
// Guarantees. What is written is a pure function of a [Spec]. Whatever the
// manager does to the node's process, it leaves sessions alone: they belong to
// their keepers, and the next start of the node adopts them. An install that
// fails half way is taken back.
//
// Concurrency. One call at a time per machine and user.
package service

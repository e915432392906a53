package raftstore

import "muster/raftstore/logstore"

// Operations are the named operations of the disk that Config.Fault is asked for:
// an error of it is the operation's, and as long as it does not return the disk
// hangs. A test breaks each, and fails when one is never met.
func Operations(kind logstore.Kind) []string {
	list := []string{"marker-write", "state-aside", "state-open", "state-commit", "state-sync",
		"restore-create", "restore-sync", "restore-check", "restore-rename", "restore-syncdir", "snapshot-write", "snapshot-sync"}
	for _, op := range logstore.Operations(kind) {
		list = append(list, "log-"+op)
	}
	return list
}

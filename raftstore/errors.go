package raftstore

import (
	"errors"

	"muster/board"
)

// Errors of this package, for errors.Is.
var (
	// ErrDamaged: the state file cannot be trusted. Open sets such a file aside and rebuilds it; a running store stops.
	ErrDamaged = errors.New("state is damaged")
	// ErrLocked: another process has the folder open.
	ErrLocked = errors.New("state is in use by another process")
	// ErrNoRebuild: the state is bad or missing, and snapshot and log of this node do not make a whole one. The node
	// must rejoin under a new store id (M-32).
	ErrNoRebuild = errors.New("state cannot be rebuilt from snapshot and log")
	// ErrLogBehind: the log ends before the state: log or vote were lost or rolled back. The node must not vote; it
	// rejoins under a new store id (M-32).
	ErrLogBehind = errors.New("log ends before the state")
	// ErrCopied: the folder was copied or put back, and others vote: what was promised since is not in it. The node
	// rejoins under a new store id (M-32).
	ErrCopied = errors.New("the folder is a copy, or was put back")
	// ErrDiverged: the leader's log has other entries where this node's state has applied some. What it serves is not
	// the fleet's; nothing was cut off. The node rejoins under a new store id.
	ErrDiverged = errors.New("the leader's log differs from what this state has applied")
	// ErrOtherEra: a snapshot of an era with the same number and another random half: a second recovery took place.
	ErrOtherEra = errors.New("snapshot of another era with the same number")
	// ErrClosed: the store was closed.
	ErrClosed = errors.New("store is closed")
	// ErrNotLeader: what was asked for can be done by the leader only.
	ErrNotLeader = errors.New("not the leader")
	// ErrHung: a write did not return in time.
	ErrHung = errors.New("write to the state hangs")

	errRefused   = errors.New("entry refused")
	errSkipped   = errors.New("entry skipped")
	errCancelled = errors.New("snapshot cancelled")
)

// Checks of results that this package makes.
const (
	CheckNotLeader = "not_leader" // this node does not lead; the request was certainly not executed by this copy
	CheckBusy      = "busy"       // too many requests wait; not executed by this copy
	CheckTooLarge  = "too_large"  // the transaction is over the bounds; nothing was written
	CheckUnknown   = "unknown"    // it may or may not have been executed
)

func notLeader() board.Result {
	return failure(board.Unavailable, CheckNotLeader, "this node is not the leader",
		"ask again: the node looks for the leader")
}

func busy() board.Result {
	return failure(board.Unavailable, CheckBusy, "the leader has too many requests waiting", "try again in a moment")
}

func gaveUp() board.Result {
	return failure(board.Unavailable, CheckBusy, "gave up before its turn came; it was not executed", "try again")
}

func unknown() board.Result {
	return failure(board.UnknownOutcome, CheckUnknown, "it is not known whether this was done",
		"ask again under the same request id: it is done at most once")
}

func failure(code board.Code, check, msg, hint string) board.Result {
	return board.Result{Err: board.Errorf(code, "%s", msg).WithCheck(check).WithHint("%s", hint)}
}

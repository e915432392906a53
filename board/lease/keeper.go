package lease

import "time"

// LastCheck is what a keeper looks at last thing before exec, holding the lock
// of its run's folder.
type LastCheck struct {
	Void  bool    // the file `void` is in the run's folder
	Estop bool    // the file ESTOP is in the node's folder (M-16)
	By    Instant // [Clock.StartBy] of when the node spawned it
	Now   Instant
}

// KeeperMayExec tells whether the keeper may exec its session; if not, why.
// From the spawn to here the machine may have slept and the order may have
// been voided: only this check is late enough.
func KeeperMayExec(c LastCheck) (bool, string) {
	switch {
	case c.Void:
		return false, "the start was voided"
	case c.Estop:
		return false, "ESTOP is set on this node"
	case c.Now >= c.By:
		return false, "the start came too late: the contact or lease it rested on has run out"
	}
	return true, ""
}

// Extend is the keeper's deadline after its node has told a new one. It only
// moves forward: an older contact told late takes nothing back.
func Extend(deadline, told Instant) Instant { return max(deadline, told) }

// Due says what a keeper owes its session now.
type Due uint8

// What is due. DueTerm is asked of the session, DueKill is done to its tree.
const (
	DueNothing Due = iota
	DueTerm
	DueKill
)

// KeeperDue is what the deadline asks for now, and when to look again (on the
// same clock, which counts sleep). A session is told to end `kill` before its
// deadline and killed at it.
func KeeperDue(deadline Instant, kill time.Duration, now Instant) (Due, Instant) {
	switch {
	case now >= deadline:
		return DueKill, deadline
	case now >= deadline.Add(-kill):
		return DueTerm, deadline
	}
	return DueNothing, deadline.Add(-kill)
}

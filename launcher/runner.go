package launcher

import (
	"context"
	"time"

	"muster/board/lease"
)

// Runner starts keepers and finds them again. The real one is [Keepers]; its
// twin for tests is launchertest.Runner. Both leave the same files in a run's
// folder, which the reconciler reads.
type Runner interface {
	// Start makes a keeper for a folder that holds a spec. An error means that
	// none was made. It does not wait for the session.
	Start(dir string) (Session, error)
	// Adopt finds the living keeper of a folder: nil without one, an error when
	// one holds the folder and does not answer.
	Adopt(ctx context.Context, dir string) (Session, error)
	// End ends what a dead keeper left behind, verified, and sees to it that
	// there is an exit record. An error means that something may live.
	End(ctx context.Context, dir string) error
}

// Session is a living keeper, as its node sees it. Safe for concurrent use.
type Session interface {
	// PID of the session's process, 0 as long as nothing was executed.
	PID() int
	// Keeper is the pid of the keeper itself, 0 when there is none of its own.
	Keeper() int
	// Started is closed when the session executes.
	Started() <-chan struct{}
	// Done is closed when the keeper is gone, however it went.
	Done() <-chan struct{}
	// Extend moves the lease's deadline forward; it is a moment of this process's boot clock.
	Extend(deadline lease.Instant) error
	// Stop asks for the end of the whole tree: TERM, and KILL after kill.
	Stop(kill time.Duration, why string) error
	// Close lets go of the keeper; the session goes on.
	Close()
}

package launcher

import (
	"os"
	"path/filepath"
	"time"

	"muster/board"
	"muster/board/lease"
)

// What a node sees of its headless sessions between their start and their end. That one is seen is said by `launched`, and
// an end is told as such: whose keeper is dead, its node ends and records at once. It is missing only as long as that
// cannot be done. Of one whose workflow asks (`stale`), it is told when nothing was heard for an hour, by the last write to
// its log, and when something is again. Only changes are told (M-10); nothing is looked at more often than once an hour.

// tell files a change that this node saw of a session. Said again after a restart, it is no news to the state (SUP-22).
func (r *Reconciler) tell(n *run, kind string, ago time.Duration) {
	if n.saw == kind || !r.orders.Entry(n.id).Filed.Has(lease.ActLaunched) { // before, it means nothing to the state
		return
	}
	n.saw = kind
	it := r.note(n.id, &board.Report{Kind: kind, Run: n.id})
	it.At, it.Wall = it.At.Add(-ago), it.Wall-ago.Milliseconds()
	r.fileNotes([]*item{it})
}

// listen looks, when it may be time, at how long a session has been quiet. Its time runs while the machine is awake: who
// sleeps with it is not to blame for its silence.
func (r *Reconciler) listen(n *run) {
	if n.want == nil || n.want.Stale == 0 || n.want.Surface == surfacePane || n.attached() || n.session() != lease.SessionLive {
		return
	}
	now := time.Now()
	if n.listenAt.IsZero() || !now.Before(n.listenAt) {
		n.listenAt = now.Add(r.cfg.quiet)
		if quiet := now.Sub(n.lastHeard(now)); quiet >= r.cfg.quiet {
			r.tell(n, board.ReportQuiet, quiet)
			r.hearAgain(n, now)
		} else {
			if n.saw == board.ReportQuiet {
				r.tell(n, board.ReportHeard, quiet)
			}
			n.listenAt = now.Add(r.cfg.quiet - quiet)
		}
	}
	n.lookAgain(n.listenAt.Sub(now))
}

// learn takes over what an earlier life of this node told: that it is over has to be told as well.
func (n *run) learn(v board.View) {
	if !n.learned && n.stage == lease.StageNone {
		n.learned = true
		rec := board.GetRun(v, n.id)
		n.isDeaf = rec != nil && rec.Session.Deaf != 0
	}
	if n.want != nil && n.want.Stale == 0 || n.saw != "" || n.stage != lease.StageNone {
		return
	}
	if rec := board.GetRun(v, n.id); rec != nil && rec.Session.Quiet != 0 {
		n.saw, n.listenAt = board.ReportQuiet, time.Time{}
	}
}

// lastHeard is when the session wrote to its log last, as far as this process was awake to see it.
func (n *run) lastHeard(now time.Time) time.Time {
	st, err := os.Stat(filepath.Join(n.dir, fileLog))
	switch {
	case err != nil && n.heard.IsZero():
		n.heard = now
	case err != nil, st.ModTime().Equal(n.wrote):
	default:
		silent := max(now.Sub(st.ModTime()), 0) // by the wall clock
		if !n.heard.IsZero() {
			silent = min(silent, now.Sub(n.heard))
		}
		n.wrote, n.heard = st.ModTime(), now.Add(-silent)
	}
	return n.heard
}

// hearAgain looks at a quiet session at once when it writes something.
func (r *Reconciler) hearAgain(n *run, since time.Time) {
	if n.hearing || n.link == nil {
		return
	}
	wrote, closeWatch, err := written(filepath.Join(n.dir, fileLog))
	if err != nil {
		r.trouble(n, "its log cannot be watched", err) // it is looked at every hour
		closeWatch()
		return
	}
	n.hearing = true
	if n.lastHeard(time.Now()).After(since) { // between the look and the watch
		n.listenAt = time.Time{}
	}
	link := n.link
	r.wg.Go(func() {
		defer closeWatch()
		select {
		case <-wrote:
		case <-link.Done():
		case <-r.stop:
			return
		}
		r.post(func() {
			n.hearing, n.listenAt = false, time.Time{}
			r.Wake()
		})
	})
}

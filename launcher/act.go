package launcher

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"muster/board"
	"muster/board/lease"
)

// prepare makes a run's folder and workspace, beside the loop, a few at a time.
func (r *Reconciler) prepare(n *run) {
	n.stage = lease.StagePreparing
	job := prepJob{dir: n.dir, order: n.order, want: n.want}
	ctx, cancel := context.WithCancelCause(r.ctx)
	n.giveUp = func() { cancel(errEnded) }
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		defer cancel(nil)
		select {
		case r.starts <- struct{}{}:
		case <-r.stop:
			return
		}
		spec, err := r.prepareRun(ctx, job)
		<-r.starts
		r.post(func() {
			n.giveUp = nil
			n.spec, n.stage = spec, lease.StageReady
			if err != nil {
				n.notStarted(err)
				r.log.Warn("start of a run failed", "run", n.id, "err", err)
			}
			at(atPrepared)
			r.Wake()
		})
	}()
}

// spawn starts the keeper of a run that has passed the last check, with the
// deadlines of the contact it was passed at.
func (r *Reconciler) spawn(n *run, s *seen) {
	n.stage, n.busy = lease.StageSpawned, true
	n.spec.Boot = BootID()
	n.spec.StartBy = s.clock.StartBy(n.spec.Lease)
	n.spec.Deadline = 0 // without a lease nothing ends it but its own end or an order
	if at, ok := s.clock.Deadline(n.spec.Lease); ok {
		n.spec.Deadline = at
	}
	dir, spec := n.dir, *n.spec
	r.wg.Add(1)
	go func() { // beside the loop: a fork on a busy machine takes its time, and others' stops must not wait for it
		defer r.wg.Done()
		err := writeJSON(dir, fileSpec, &spec, false)
		var link Session
		if err == nil {
			at(atSpec)
			link, err = r.cfg.Runner.Start(dir)
		}
		if !r.post(func() { r.spawned(n, link, err) }) && link != nil {
			link.Close() // the next Open finds it
		}
	}()
}

// spawned takes over the keeper that spawn has started. What became of the run's
// orders meanwhile, the next pass looks at; the keeper has looked at its folder.
func (r *Reconciler) spawned(n *run, link Session, err error) {
	n.busy = false
	if err != nil {
		n.notStarted(err)
		r.log.Error("keeper cannot be started", "run", n.id, "err", err)
	} else {
		at(atSpawned)
		r.follow(n, link)
	}
	r.Wake()
}

// follow takes over a living keeper and watches it.
func (r *Reconciler) follow(n *run, link Session) {
	n.link, n.asked = link, false
	h := held{Session: link, extend: make(chan struct{}, 1)}
	if n.spec != nil {
		h.lease = n.spec.Lease
	}
	r.mu.Lock()
	r.links[n.id] = h
	r.mu.Unlock()
	if h.lease > 0 {
		r.wg.Add(1)
		go r.extender(h)
	}
	r.followPane(link)
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		select {
		case <-link.Started():
			r.Wake()
		case <-link.Done():
		case <-r.stop:
			return
		}
		select {
		case <-link.Done():
			r.post(func() { r.unfollow(n, link) })
		case <-r.stop:
		}
	}()
}

// unfollow is the end of a keeper, or of its connection.
func (r *Reconciler) unfollow(n *run, link Session) {
	if n.link != link {
		return
	}
	n.link = nil
	r.mu.Lock()
	delete(r.links, n.id)
	r.mu.Unlock()
	if n.stage == lease.StageSpawned {
		n.stage = lease.StageOver
	}
	if err := n.look(); err != nil {
		r.log.Warn("run folder cannot be read", "run", n.id, "err", err)
		n.backoff()
	}
	if n.state == lease.SessionLive || n.state == lease.SessionHeld {
		n.lookAgain(10 * time.Millisecond) // its lock is let go of a moment later, or it lives
	}
	r.Wake()
}

// kill asks a keeper, once, to end its session.
func (r *Reconciler) kill(n *run, why string) {
	if n.link == nil {
		n.backoff() // its keeper does not talk to us yet: adopt it first
		return
	}
	if n.asked {
		return
	}
	if n.stop != nil && n.stop.Why != "" {
		why = n.stop.Why
	}
	patience := 5 * time.Second
	if n.spec != nil {
		patience = n.spec.Kill
	}
	r.log.Info("session is stopped", "run", n.id, "why", why)
	n.asked = true
	link := n.link
	r.wg.Add(1)
	go func() { // beside the loop: a frozen keeper does not read
		defer r.wg.Done()
		if err := link.Stop(patience, why); err != nil {
			link.Close() // its end is seen by who follows it; adopted anew, it is asked again
		}
	}()
}

// notStarted ends a preparation that came to nothing.
func (n *run) notStarted(err error) {
	n.stage, n.failed, n.full = lease.StageOver, err.Error(), isFull(err)
}

// trouble logs what goes on going wrong with a run once, and again after a minute.
func (r *Reconciler) trouble(n *run, msg string, err error) {
	text := msg + ": " + err.Error()
	if n.said == text && time.Since(n.saidAt) < time.Minute {
		return
	}
	n.said, n.saidAt = text, time.Now()
	r.log.Error(msg, "run", n.id, "err", err)
}

// reap ends what a dead keeper left behind.
func (r *Reconciler) reap(n *run) {
	if time.Now().Before(n.reapAt) {
		return // it was tried, and what stood in the way may still be there
	}
	if r.watchAgain(n) {
		return
	}
	n.busy = true
	if n.tries == 0 {
		r.log.Warn("keeper is dead; its session is ended", "run", n.id)
	}
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		at(atReap)
		err := r.cfg.Runner.End(r.ctx, n.keptDir())
		at(atReaped)
		r.post(func() {
			n.busy = false
			if err != nil {
				r.trouble(n, "a session without keeper is not verified dead", err)
				r.tell(n, board.ReportMissing, 0)
				n.backoff()
				n.reapAt = n.again
			} else {
				n.tries = 0
			}
			if err := n.look(); err != nil {
				n.backoff()
			}
			r.Wake()
		})
	}()
}

// adopt looks for the living keeper of a run that has no link.
func (r *Reconciler) adopt(n *run) {
	n.busy = true
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		link, err := r.cfg.Runner.Adopt(r.ctx, n.keptDir())
		r.post(func() {
			n.busy = false
			r.adopted(n, link, err)
			r.Wake()
		})
	}()
}

func (r *Reconciler) adopted(n *run, link Session, err error) {
	if lerr := n.look(); lerr != nil {
		r.log.Warn("run folder cannot be read", "run", n.id, "err", lerr)
		n.backoff()
	}
	switch {
	case link != nil:
		n.tries = 0
		r.follow(n, link)
	case err != nil:
		r.log.Warn("a session cannot be adopted yet", "run", n.id, "err", err)
		n.backoff()
	}
}

// adoptAll finds every session of earlier lives of this node: the living are
// followed, the dead keepers' trees will be ended, the ended are reported.
func (r *Reconciler) adoptAll(ctx context.Context) error {
	names, err := os.ReadDir(filepath.Join(r.cfg.Dir, "runs"))
	if err != nil {
		return err
	}
	for _, e := range names {
		n := r.runs[e.Name()]
		if n == nil {
			if r.runDir(e.Name()) == "" {
				continue
			}
			n = r.newRun(e.Name())
		}
		r.meet(n)
		if r.runs[n.id] == nil && (n.state == lease.SessionNone || n.state == lease.SessionEnded) && n.again.IsZero() {
			continue // ended long ago; an order that still names it finds it
		}
		if n.spec != nil && n.epoch == (lease.Epoch{}) {
			n.epoch = lease.Epoch{Era: n.spec.Era, Seq: n.spec.Epoch}
			n.slot = board.SlotKey(n.spec.Card, n.spec.Slot)
		}
		r.runs[n.id] = n
	}
	r.passOn()
	var wg sync.WaitGroup
	gate := make(chan struct{}, 8)
	for _, n := range r.runs {
		if n.state != lease.SessionLive && n.state != lease.SessionHeld {
			continue
		}
		wg.Add(1)
		go func() {
			defer wg.Done()
			gate <- struct{}{}
			link, err := r.cfg.Runner.Adopt(ctx, n.keptDir())
			<-gate
			r.adopted(n, link, err)
			if link != nil {
				r.log.Info("session adopted", "run", n.id, "pid", link.PID())
			}
		}()
	}
	wg.Wait()
	r.prune()
	return nil
}

// sayLost says what went with a journal, and what is there without it.
func (r *Reconciler) sayLost(why string) {
	names, _ := os.ReadDir(filepath.Join(r.cfg.Dir, "runs"))
	alive, open := 0, 0
	for _, n := range r.runs {
		if n.link != nil {
			alive++
		}
		if n.word.state() == lease.WordOpen {
			open++
		}
	}
	r.log.Error("the journal of before is lost: sessions are found by their folders and keepers, nothing is started again; what had been reported is reported once more",
		"why", why, "lost", "which orders were taken or refused, which reports had their outcome", "folders", len(names), "alive", alive, "words without outcome", open)
}

// prune removes the folders of the oldest ended runs. Called where nothing is
// being prepared: at Open, and in the loop.
func (r *Reconciler) prune() {
	dir := filepath.Join(r.cfg.Dir, "runs")
	names, err := os.ReadDir(dir)
	if err != nil || len(names) <= r.cfg.KeepRuns {
		return
	}
	type old struct {
		path string
		at   time.Time
	}
	var list []old
	for _, e := range names {
		path := filepath.Join(dir, e.Name())
		st, err := os.Stat(filepath.Join(path, fileExit))
		if err != nil { // somebody has taken it away: what is not known here any more is over
			st, err = os.Stat(path)
		}
		if r.runs[e.Name()] == nil && err == nil {
			list = append(list, old{path, st.ModTime()})
		}
	}
	slices.SortFunc(list, func(a, b old) int { return a.at.Compare(b.at) })
	for _, o := range list[:max(0, len(list)-r.cfg.KeepRuns)] {
		lock, err := takeLock(o.path)
		if err != nil {
			continue
		}
		if err := errors.Join(os.RemoveAll(o.path), lock.Close()); err != nil {
			r.log.Warn("old run folder cannot be removed", "path", o.path, "err", err)
		}
	}
}

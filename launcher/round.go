package launcher

import (
	"cmp"
	"errors"
	"slices"
	"time"

	"muster/board"
	"muster/board/lease"
)

// seen is one look at the applied state and the contact.
type seen struct {
	applied  lease.Epoch
	starts   map[string]*board.Order // by run
	stops    map[string]*board.Order
	delivers map[string][]*board.Order // by run
	orders   map[string]bool           // ids of those
	errands  map[string]*board.Order   // by order
	clock    lease.Clock
	now      lease.Instant
	mayStart bool
	why      string
}

// read looks at the state: this node's orders, and the runs it knows of.
func (r *Reconciler) read() (*seen, error) {
	index := r.cfg.Index() // before the view, which is then at least as new
	s := &seen{starts: map[string]*board.Order{}, stops: map[string]*board.Order{},
		delivers: map[string][]*board.Order{}, orders: map[string]bool{}, errands: map[string]*board.Order{}, clock: r.cfg.Clock(), now: r.cfg.Now()}
	s.mayStart, s.why = s.clock.MayStart(s.now, index)
	err := r.cfg.View(func(v board.View) error {
		if e := board.TooNew(v); e != nil {
			s.mayStart, s.why = false, e.Message
		}
		if fleet := board.GetFleet(v); fleet != nil {
			s.applied = lease.Epoch{Era: fleet.Era, Seq: v.Seq()}
		}
		board.EachOrder(v, r.cfg.Node, func(o *board.Order) bool {
			if r.runDir(o.Run) == "" {
				return true // an id that is none
			}
			switch o.Kind {
			case board.OrderStop:
				s.stops[o.Run] = o
			case board.OrderStart:
				s.starts[o.Run] = o
			case board.OrderDeliver:
				s.delivers[o.Run] = append(s.delivers[o.Run], o)
				s.orders[o.ID] = true
			case board.OrderCleanup, board.OrderHook:
				s.errands[o.ID] = o
			}
			return true
		})
		for id := range s.starts {
			r.run(id)
		}
		for id := range s.stops {
			r.run(id)
		}
		for id, n := range r.runs {
			n.own = false
			if s.starts[id] != nil && s.stops[id] == nil {
				n.learn(v)
				continue // current: its order says all else
			}
			if rec := board.GetRun(v, id); rec != nil && rec.Node == r.cfg.Node {
				n.epoch = lease.Epoch{Era: rec.Era, Seq: rec.Epoch}
				n.own = rec.Verdict == board.ByOwn && (rec.Gone == "" || rec.Gone == board.GonePassed)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	for _, n := range r.runs {
		r.meet(n)
	}
	for _, o := range s.starts {
		r.run(o.Run).take(o)
	}
	for _, o := range s.stops {
		r.run(o.Run).take(o)
	}
	return s, nil
}

// meet looks, once, at the folder of a run that is new here: one that ended in
// an earlier life of this node may still owe its report.
func (r *Reconciler) meet(n *run) {
	if n.met {
		return
	}
	n.met = true
	if err := n.look(); err != nil {
		r.log.Warn("run folder cannot be read", "run", n.id, "err", err)
		n.backoff()
	}
	req, err := openWord(n.dir)
	if err != nil {
		r.log.Error("words of a session cannot be read", "run", n.id, "err", err)
	}
	if req != nil {
		n.word = &word{req: req, st: lease.WordOpen, done: make(chan struct{})}
		if r.box.hasWord(req.ID) {
			n.word.st = lease.WordFiled
		}
	}
}

// step is a decision that has to be written before anything else.
type step struct {
	n    *run
	d    lease.Decision
	item *item
}

// passes bounds one round.
const passes = 50

// round decides for every run until nothing is left to do at once. Each pass
// looks anew: what is executed was not ordered to stop meanwhile.
func (r *Reconciler) round() {
	r.takePushes()
	r.revisit()
	for pass := range passes {
		if r.Err() != nil {
			return
		}
		s, err := r.read()
		if err != nil {
			r.log.Warn("state cannot be read", "err", err)
			r.timer.Reset(time.Second)
			return
		}
		steps := r.decide(s)
		if len(steps) == 0 {
			r.errands(s)
			r.sweep(s)
			r.tendPanes(s)
			break
		}
		if !r.commit(steps) {
			return
		}
		if pass == passes-1 {
			r.Wake() // let others have the loop, then go on
		}
	}
	r.arm()
}

// decide asks for every run what is next, does what is done and answers what is
// to be written. Older claims come first.
func (r *Reconciler) decide(s *seen) []step {
	list := make([]*run, 0, len(r.runs))
	for _, n := range r.runs {
		if !n.busy {
			list = append(list, n)
		}
	}
	slices.SortFunc(list, func(a, b *run) int {
		return cmp.Or(cmp.Compare(a.epoch.Era, b.epoch.Era), cmp.Compare(a.epoch.Seq, b.epoch.Seq), cmp.Compare(a.id, b.id))
	})
	var steps []step
	for _, n := range list {
		if st, ok := r.decideRun(n, s); ok {
			steps = append(steps, st)
		}
	}
	return steps
}

func (r *Reconciler) decideRun(n *run, s *seen) (step, bool) {
	f := r.facts(n, s)
	if r.again(n, f) {
		f.Stage = n.stage
	}
	r.listen(n)
	d := r.orders.Decide(n.id, n.slot, f)
	switch d.Do {
	case lease.DoRecord:
		if d.Files && !r.quiet(n, d.File) {
			return step{}, false
		}
		if !r.bar(n, d) {
			n.backoff()
			return step{}, false
		}
		st := step{n: n, d: d}
		if d.Files {
			st.item = r.item(n, d)
		}
		if d.File == lease.ActTaken && d.Files { // applied below claimed: it came by a push, ahead of the state
			r.log.Debug("order is taken", "run", n.id, "claimed", n.epoch.Seq, "applied", s.applied.Seq)
		}
		return st, true
	case lease.DoForget:
		return step{n: n, d: d}, true
	case lease.DoSpawn:
		r.spawn(n, s)
		return step{}, false
	case lease.DoKill:
		r.kill(n, d.Why)
	case lease.DoReap:
		r.reap(n)
	case lease.DoAdopt:
		r.adoptKept(n, s)
	}
	if d.Why != n.why {
		n.why = d.Why
		if d.Why != "" {
			r.log.Debug("run waits", "run", n.id, "why", d.Why)
		}
	}
	return step{}, false
}

// quiet makes sure that nothing is done in a run's workspace any more when its
// end is reported. False: look again when it is.
func (r *Reconciler) quiet(n *run, f lease.Report) bool {
	switch f {
	case lease.ActGone, lease.ActFailed, lease.ActRefused:
		if n.stage == lease.StagePreparing {
			if n.giveUp != nil {
				n.giveUp()
			}
			return false
		}
		return r.settled(n)
	case lease.ActExited:
		return r.settled(n)
	}
	return true
}

// bar takes the lock of a run's folder and voids it, as a decision wants it
// before it is written. False: somebody holds the folder, look again.
func (r *Reconciler) bar(n *run, d lease.Decision) bool {
	if !exists(n.dir) {
		return true
	}
	if d.Lock {
		lock, err := takeLock(n.dir)
		if errors.Is(err, errHeld) && n.link == nil {
			if err := n.look(); err != nil {
				r.log.Warn("run folder cannot be read", "run", n.id, "err", err)
			}
		}
		if err != nil {
			return false
		}
		defer lock.Close()
	}
	if d.Bar {
		if err := writeVoid(n.dir); err != nil {
			r.trouble(n, "run folder cannot be voided", err)
			return false
		}
		at(atBarred)
	}
	return true
}

// revisit does again what could not be done when it was last tried.
func (r *Reconciler) revisit() {
	now := time.Now()
	if !r.flushAt.IsZero() && !now.Before(r.flushAt) {
		if err := r.flush(); err != nil {
			r.broken(err)
			return
		}
	}
	for _, n := range r.runs {
		if n.again.IsZero() || now.Before(n.again) {
			continue
		}
		n.again = time.Time{}
		if n.link != nil || n.busy {
			continue
		}
		if err := n.look(); err != nil {
			r.log.Warn("run folder cannot be read", "run", n.id, "err", err)
			n.backoff()
			continue
		}
		if n.state == lease.SessionLive || n.state == lease.SessionHeld {
			r.adopt(n)
		}
	}
}

// arm sets the timer for the next moment something is due by itself.
func (r *Reconciler) arm() {
	at := r.flushAt
	for _, n := range r.runs {
		if !n.again.IsZero() && (at.IsZero() || n.again.Before(at)) {
			at = n.again
		}
	}
	if at.IsZero() {
		r.timer.Stop()
		return
	}
	r.timer.Reset(max(0, time.Until(at)))
}

// sweep forgets runs that are over, and now and then removes old folders.
func (r *Reconciler) sweep(s *seen) {
	known := map[string]bool{}
	for _, k := range r.orders.Keys() {
		known[k] = true
	}
	var forget []change
	for id, n := range r.runs {
		e := r.orders.Entry(id)
		switch {
		case !n.over(e, s):
		case !known[id]:
			delete(r.runs, id)
			r.ended++
		}
		if e.Mark == lease.MarkNone && e.Filed != 0 && e.Filed&^e.Done == 0 && !n.own &&
			n.state == lease.SessionEnded && n.link == nil && s.starts[id] == nil && s.stops[id] == nil {
			// Found in its folder by a new journal; told, and over.
			r.orders.Commit(id, n.slot, lease.Decision{Do: lease.DoForget})
			forget = append(forget, change{key: id})
		}
	}
	if len(forget) > 0 {
		if err := r.write(forget); err != nil {
			r.broken(err)
			return
		}
		r.Wake()
	}
	if r.ended >= 100 {
		r.ended = 0
		r.prune()
	}
}

package launcher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"muster/board/lease"
)

// A session with a pane stays when its run has ended by its own word, and carries the
// card's next run (SES-06): same process, same keeper, same folder. The next run has a
// folder of its own, whose spec names the run whose folder the keeper holds; its secret,
// prompt and body are written over those that the session's environment names.

// root is the run whose folder the keeper holds that carries this run.
func (n *run) root() string {
	if n.spec != nil && n.spec.Carrier != "" {
		return n.spec.Carrier
	}
	return n.id
}

// keptDir is the folder that the keeper of this run's session holds.
func (n *run) keptDir() string {
	if n.spec == nil {
		return n.dir
	}
	return carrierDir(n.dir, n.spec)
}

func carrierDir(dir string, s *Spec) string {
	if s.Carrier == "" || s.Carrier != filepath.Base(s.Carrier) {
		return dir
	}
	return filepath.Join(filepath.Dir(dir), s.Carrier)
}

// kept is the session that a run is to take over, as long as it does not carry it.
func (r *Reconciler) kept(n *run) (old *run, st lease.KeptState) {
	if n.want == nil || n.want.Keep == "" || n.session() != lease.SessionNone {
		return nil, lease.KeptNone
	}
	old = r.runs[n.want.Keep]
	if old == nil || old.passed {
		return nil, lease.KeptNone
	}
	switch old.session() {
	case lease.SessionNone, lease.SessionEnded:
		return nil, lease.KeptNone // verified dead: taken up again in a process of its own
	}
	if pane, ok := old.paneOf(); ok && pane.Quiet && !old.typing {
		return old, lease.KeptIdle
	}
	return old, lease.KeptBusy
}

// adoptKept gives a kept session the identity of its next run. The spec, synced, is the
// point of it: before, the session is the old run's, after it the new one's. What
// follows is done again by a node that ended in between.
func (r *Reconciler) adoptKept(n *run, s *seen) {
	old, st := r.kept(n)
	if st != lease.KeptIdle {
		return
	}
	spec := *n.spec
	spec.Carrier, spec.Boot, spec.Surface, spec.Ready, spec.Typed = old.root(), BootID(), surfacePane, old.spec.Ready, true
	err := writeJSON(n.dir, fileSpec, &spec, true)
	if err == nil {
		n.spec = &spec
		err = n.giveIdentity()
	}
	if err != nil {
		r.trouble(n, "the kept session cannot be given its next run", err)
		n.backoff()
		if spec.Carrier != n.root() {
			return // nothing has happened
		}
	}
	link := old.link
	old.link, old.state, old.passed = nil, lease.SessionNone, true
	r.mu.Lock()
	delete(r.links, old.id)
	r.mu.Unlock()
	n.proc, n.stage, n.shown = old.proc, lease.StageOver, true
	r.follow(n, link)
	r.renamePane(old.id, n.id)
	r.Wake()
}

// giveIdentity writes what the session finds of its run over what it found before.
func (n *run) giveIdentity() error {
	dir := n.keptDir()
	if dir == n.dir {
		return nil
	}
	var errs []error
	for _, name := range []string{fileBrief, fileBody, fileSecret} { // who it is last
		b, err := os.ReadFile(filepath.Join(n.dir, name))
		if err == nil {
			err = writeAtomic(dir, name, b, false)
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// renamePane gives a pane the name of the run that it is of now, beside the loop: only
// people look for it by that.
func (r *Reconciler) renamePane(old, now string) {
	if r.cfg.panes == nil {
		return
	}
	r.wg.Go(func() {
		ctx, cancel := context.WithTimeout(r.ctx, 10*time.Second)
		defer cancel()
		if err := r.cfg.panes.Rename(ctx, old, now); err != nil {
			r.log.Warn("a pane keeps its old name", "run", now, "err", fmt.Errorf("%s: %w", old, err))
		}
	})
}

// passOn finds, among the runs of earlier lives, those whose session carries a later
// one: of all that one keeper has carried, only the newest has it.
func (r *Reconciler) passOn() {
	newest := map[string]*run{}
	for _, n := range r.runs {
		if n.spec == nil {
			continue
		}
		if o := newest[n.root()]; o == nil || o.epoch.Less(n.epoch) {
			newest[n.root()] = n
		}
	}
	for _, n := range r.runs {
		if n.spec == nil {
			continue
		}
		switch last := newest[n.root()]; {
		case last != n:
			n.passed, n.state = true, lease.SessionNone
		case n.root() != n.id && n.state == lease.SessionLive:
			if err := n.giveIdentity(); err != nil {
				r.trouble(n, "the kept session cannot be given its next run", err)
			}
			r.renamePane(n.spec.Keeps, n.id)
		}
	}
}

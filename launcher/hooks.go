package launcher

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"muster/board"
	"muster/board/lease"
)

// A hook is a command of the workflow in a card's workspace (TRI-08, M-17). It runs
// under a keeper of its own like a script. Its folder is its journal: written and
// synced before the keeper is there, and it stays until the answer is heard. So a
// node that was killed finds it running, finds how it ended, or finds that it
// never began, and only then begins it again.

// hookPrefix begins the name of a hook's folder among the jobs; its order's id follows.
const hookPrefix = "hook."

// hookTail is how much of a hook's output is told, in bytes.
const hookTail = 1 << 10

var (
	errWithdrawn = errors.New("its card does not wait for it any more")
	errNotBegun  = errors.New("it did not begin") // and nothing of it ever will
)

func (r *Reconciler) hookDir(order string) string {
	return filepath.Join(r.jobsDir(), hookPrefix+order)
}

// hookHeld says why a hook may not begin now, "" when it may. One run at a time
// works in a workspace; a pane whose run is over only stands open.
func (r *Reconciler) hookHeld(s *seen, card string) string {
	switch {
	case !s.mayStart:
		return cmp.Or(s.why, "no contact")
	case exists(r.cfg.Estop):
		return "ESTOP is set"
	}
	for _, n := range r.runs {
		open := n.link != nil || n.state == lease.SessionLive || n.state == lease.SessionHeld || n.state == lease.SessionOrphan
		pane := n.spec != nil && n.spec.Surface == surfacePane
		if n.card == card && (n.busy || n.stage == lease.StagePreparing || n.stage == lease.StageReady || n.stage == lease.StageSpawned || open && !pane) {
			return "run " + n.id + " is in its workspace"
		}
	}
	return ""
}

// hook carries out the order of a hook, and answers it once. What did not begin
// is left to a later round: the order stands.
func (r *Reconciler) hook(ctx context.Context, o *board.Order) {
	rep := board.Report{Kind: board.ReportDone, Run: o.Run, Order: o.ID}
	var h board.HookSpec
	err := json.Unmarshal(o.Spec, &h)
	dir := r.hookDir(o.ID)
	if err == nil {
		var exit *Exit
		if exit, err = r.hookEnd(ctx, dir, o, &h); err == nil {
			rep.Code = exit.Code
			rep.Output = strings.TrimSpace(strings.ToValidUTF8(string(tailOf(dir, hookTail)), "?"))
			err = hookFailure(exit, &h, rep.Output)
		}
	}
	switch {
	case ctx.Err() != nil && r.ctx.Err() == nil: // withdrawn: nobody asks any more
		if err := r.endJob(r.ctx, dir); err != nil {
			r.log.Error("a hook that is not wanted any more is not verified dead", "card", o.Card, "hook", h.Name, "err", err)
		}
		return
	case ctx.Err() != nil: // the node ends; the hook goes on
		return
	case errors.Is(err, errNotBegun):
		r.log.Info("hook waits", "card", o.Card, "hook", h.Name, "why", err)
		r.post(func() { delete(r.errand, o.ID) }) // with the next contact again
		return
	case err != nil:
		rep.Error = err.Error()
	}
	if left, err := r.work.Settle(ctx, o.Card, h.Workspace, false); err == nil {
		rep.Work, rep.Head = left.Work, left.Head
	} else {
		r.log.Warn("what a hook left cannot be looked at", "card", o.Card, "hook", h.Name, "err", err)
	}
	if r.answer(&rep) {
		if err := os.RemoveAll(dir); err != nil {
			r.log.Warn("folder of a hook cannot be removed", "dir", dir, "err", err)
		}
	}
}

// hookEnd begins a hook that has not begun, and waits for its end. An error means that
// it did not run: it cannot, or, errNotBegun, not now.
func (r *Reconciler) hookEnd(ctx context.Context, dir string, o *board.Order, h *board.HookSpec) (*Exit, error) {
	if s, err := ReadSpec(dir); err != nil || s.Key != h.Key {
		if err := r.endJob(ctx, dir); err != nil {
			return nil, fmt.Errorf("what another hook left in %s is not verified dead: %w", dir, err)
		}
		if err := r.writeHook(dir, o, h); err != nil {
			return nil, err
		}
		link, err := r.cfg.Runner.Start(dir)
		if err != nil {
			return nil, fmt.Errorf("%w: %w", errNotBegun, err)
		}
		if err := r.followHook(ctx, link); err != nil {
			return nil, err
		}
	} else if link, err := r.cfg.Runner.Adopt(ctx, dir); err != nil {
		return nil, fmt.Errorf("%w: %w", errNotBegun, err) // its keeper is silent: it is asked again
	} else if link != nil {
		if err := r.followHook(ctx, link); err != nil {
			return nil, err
		}
	}
	begun := Used(dir)
	exit, err := r.exitOf(ctx, dir)
	switch {
	case err != nil:
		return nil, fmt.Errorf("%w: %w", errNotBegun, err)
	case begun && exit.Refused == "":
		return exit, nil
	}
	err = fmt.Errorf("%w: %s", errNotBegun, cmp.Or(exit.Error, "its keeper died"))
	return nil, errors.Join(err, os.RemoveAll(dir))
}

// followHook waits for a hook's keeper. The node may end before it: the hook goes on.
func (r *Reconciler) followHook(ctx context.Context, link Session) error {
	defer link.Close()
	defer r.atWork(link)()
	select {
	case <-link.Done():
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// writeHook makes a hook's folder: what is to run, on disk before anything does.
func (r *Reconciler) writeHook(dir string, o *board.Order, h *board.HookSpec) error {
	place, err := r.work.Find(o.Card, h.Workspace)
	if err != nil {
		return err
	}
	slug := ""
	if err := r.cfg.View(func(v board.View) error {
		if c := board.GetCard(v, o.Card); c != nil {
			slug = c.Board
		}
		return nil
	}); err != nil {
		return fmt.Errorf("%w: the state cannot be read: %w", errNotBegun, err)
	}
	env, err := r.given(&board.StartSpec{Env: h.Env, EnvFrom: h.EnvFrom}, nil)
	if err != nil {
		return err
	}
	limit := ms(h.Timeout)
	by := r.cfg.Now().Add(limit)
	s := &Spec{V: format, Run: o.Card + "." + hookPrefix + o.ID, Node: r.cfg.Node, Key: h.Key, Nonce: randomHex(16), Argv: h.Argv, Dir: place.Path,
		Boot: BootID(), StartBy: by, Deadline: by, Lease: limit, Kill: min(scriptKill, limit/2), Estop: r.cfg.Estop, Card: o.Card, Order: o.ID}
	env = append(append(r.gitEnv(), env...), "MUSTER_CARD="+o.Card, "MUSTER_BOARD="+slug, "MUSTER_NODE="+r.cfg.Name,
		"MUSTER_WORKSPACE="+place.Path, "MUSTER_PORT_BASE="+strconv.Itoa(place.Port), "PWD="+place.Path, envNonce+"="+s.Nonce)
	if place.Branch != "" {
		env = append(env, "MUSTER_BRANCH="+place.Branch)
	}
	s.Env = dedupe(env)
	err = os.MkdirAll(dir, 0o700)
	if err == nil {
		err = errors.Join(makeRoom(dir), writeJSON(dir, fileSpec, s, true), syncDir(r.jobsDir()), syncDir(r.cfg.Dir))
	}
	if err != nil {
		return fmt.Errorf("%w: %w", errNotBegun, err)
	}
	return nil
}

// hookFailure says how a hook failed, with the end of its output; nil when it did not.
func hookFailure(exit *Exit, h *board.HookSpec, said string) error {
	how := ""
	switch {
	case exit.Lapsed:
		how = fmt.Sprintf("it took longer than %s and was ended", ms(h.Timeout))
	case exit.Error != "":
		how = exit.Error
	case exit.Signal != "":
		how = "it was ended by signal " + exit.Signal
	case exit.Code == nil || *exit.Code != 0:
		how = "it " + codeText(exit.Code)
	default:
		return nil
	}
	if said != "" {
		how += ":\n" + said
	}
	return errors.New(how)
}

// oldHooks lists what earlier lives have begun; nothing can be told of it before
// the state is that of the fleet.
func (r *Reconciler) oldHooks() (orders []string) {
	names, _ := os.ReadDir(r.jobsDir()) // none: there are no jobs
	for _, e := range names {
		if id, ok := strings.CutPrefix(e.Name(), hookPrefix); ok {
			orders = append(orders, id)
		}
	}
	return orders
}

// endOldHooks ends, once, what earlier lives have begun and no order wants any more.
func (r *Reconciler) endOldHooks(s *seen) {
	if !s.mayStart || r.swept == nil {
		return
	}
	swept := r.swept
	r.swept = nil
	old := slices.DeleteFunc(r.oldHooks(), func(id string) bool { return s.errands[id] != nil })
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		defer close(swept)
		for _, id := range old {
			if err := r.endJob(r.ctx, r.hookDir(id)); err != nil {
				r.log.Error("a hook of an earlier life is not verified dead", "order", id, "err", err)
			}
		}
	}()
}

// hooksOver waits until no hook works in a card's workspace: one whose card went on
// without it is being ended.
func (r *Reconciler) hooksOver(ctx context.Context, card string) error {
	var over []<-chan struct{}
	r.ask(func() {
		if r.swept != nil {
			over = append(over, r.swept)
		}
		for _, e := range r.errand {
			if e.card == card && e.hook {
				over = append(over, e.done)
			}
		}
	})
	for _, c := range over {
		select {
		case <-c:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
}

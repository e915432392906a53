package launcher

import (
	"context"
	"encoding/json"
	"errors"
	"strings"
	"time"

	"muster/board"
	"muster/board/lease"
	"muster/launcher/workspace"
)

// newWork is the workspaces of this machine.
func (r *Reconciler) newWork() *workspace.Store {
	return workspace.New(workspace.Config{
		Dir: r.cfg.Dir, Env: r.gitEnv(), Logger: r.log, Repos: r.cfg.Repos, Ports: r.cfg.Ports,
		Run: r.runScript, Live: r.live, Failpoint: func(step string) { at(point("workspace " + step)) },
	})
}

// gitEnv is what git and scripts get of the node's environment. Who may ask the
// user's agent for keys is git's affair; sessions are not given it by this.
func (r *Reconciler) gitEnv() []string {
	env := r.baseEnv()
	for _, key := range []string{"SSH_AUTH_SOCK", "GIT_SSH", "GIT_SSH_COMMAND", "GIT_SSL_CAINFO", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_NOSYSTEM"} {
		if v := envOf(r.cfg.Env, key); v != "" {
			env = append(env, key+"="+v)
		}
	}
	return env
}

// makeWorkspace finds or makes the folder a session works in (HLS-09, M-26).
func (r *Reconciler) makeWorkspace(ctx context.Context, w *board.StartSpec, env []string) (workspace.Place, error) {
	if err := r.hooksOver(ctx, w.Card); err != nil {
		return workspace.Place{}, err
	}
	want := workspace.Want{Card: w.Card, Board: w.Board, Spec: w.Workspace, Env: env}
	if x := w.Work; x != nil {
		want.Branch, want.Base, want.Head, want.Push = x.Branch, x.Base, x.Head, x.Push
		want.Setup, want.Teardown, want.Limit, want.Bring = x.Setup, x.Teardown, ms(x.Timeout), x.Bring
	}
	return r.work.Make(ctx, want)
}

// live tells whether a run of a card is being started here or has a session, or a hook runs:
// its workspace is not looked at with a view to deleting it. Not for the loop.
func (r *Reconciler) live(card string) bool {
	alive := true // of a launcher that closes nothing is known
	r.ask(func() { alive = r.liveNow(card) })
	return alive
}

// liveNow is live, in the loop.
func (r *Reconciler) liveNow(card string) bool { return r.liveBut(card, nil) }

// liveBut is liveNow for all runs of the card but one.
func (r *Reconciler) liveBut(card string, but *run) bool {
	for _, e := range r.errand {
		if e.card == card && e.hook && !e.over() {
			return true
		}
	}
	for _, n := range r.runs {
		if n.card != card || n == but {
			continue
		}
		if n.link != nil || n.busy || n.stage == lease.StagePreparing || n.stage == lease.StageReady || n.stage == lease.StageSpawned ||
			n.state == lease.SessionLive || n.state == lease.SessionHeld || n.state == lease.SessionOrphan {
			return true
		}
	}
	return false
}

// rested notes that a run left nothing to be done; a folder that stays gives its ports back with its last session (WSP-01).
func (r *Reconciler) rested(n *run) {
	if n.settled = true; n.spec.Kind != workspace.Worktree && !r.liveBut(n.card, n) {
		r.work.Rest(n.card)
	}
}

// settled sees to it that what a run left in its worktree is pushed, if it ended
// by its own word, and known, before its end is reported: the next start of the
// card may be anywhere. False: it is being done, and wakes the loop.
func (r *Reconciler) settled(n *run) bool {
	if n.settled || n.spec == nil || n.spec.Kind == "" || n.session() != lease.SessionEnded {
		return true
	}
	tree, spec := n.spec.Kind == workspace.Worktree, n.spec
	if !tree && spec.AgentHome == "" {
		r.rested(n)
		return true
	}
	n.busy = true
	card, dir := n.card, n.spec.Dir
	push := n.own || n.spoke || n.word != nil || n.spec.Verdict == "exit" && n.exit != nil && n.exit.Code != nil && *n.exit.Code == 0
	r.wg.Add(1)
	go func() {
		defer r.wg.Done()
		var left workspace.Left
		var err error
		if tree {
			left, err = r.work.Settle(r.ctx, card, dir, push)
		}
		mem := r.takeMemory(r.ctx, spec, endTime)
		r.post(func() {
			n.busy, n.left, n.unsaved, n.memory = false, left, err, mem
			r.dropCopy(spec)
			r.rested(n)
			if err != nil {
				r.log.Warn("work of a run is not saved elsewhere", "run", n.id, "err", err)
			}
			r.Wake()
		})
		r.measure(card)
	}()
	return false
}

// saveBefore pushes what a session leaves in its worktree, and tells what stays
// there, before its word is asked: by that word the next session may begin, on
// another machine, while this one lives on. What cannot be told now is told with
// the exit.
func (r *Reconciler) saveBefore(ctx context.Context, n *run) {
	var card, dir string
	var spec *Spec
	r.ask(func() {
		spec = n.spec
		if n.spec != nil && n.spec.Kind == workspace.Worktree {
			card, dir = n.card, n.spec.Dir
		}
	})
	r.saveMemory(ctx, spec, wordTime)
	if card == "" {
		return
	}
	left, err := r.work.Settle(ctx, card, dir, true)
	if err != nil {
		r.log.Warn("work of a session is not saved elsewhere", "run", n.id, "err", err)
	}
	if left.Work == "" {
		return
	}
	args, err := json.Marshal(&board.Report{Kind: board.ReportWork, Run: n.id, Work: left.Work, Head: left.Head})
	if err != nil { // texts only
		return
	}
	r.forward(ctx, &board.Request{Verb: board.VReport, Args: args, Actor: board.Actor{Kind: board.ActorNode, Role: "node", Name: r.cfg.Name, Node: r.cfg.Node}})
}

// measure notes what a card's workspaces take of the disk, one at a time.
func (r *Reconciler) measure(card string) {
	select {
	case r.measuring <- struct{}{}:
		defer func() { <-r.measuring }()
	case <-r.stop:
		return
	}
	if err := r.work.Measure(r.ctx, card); err != nil && r.ctx.Err() == nil {
		r.log.Warn("workspace cannot be measured", "card", card, "err", err)
	}
}

// Workspaces is how many there are on this machine, and what they take of the
// disk as it was last measured, in bytes.
func (r *Reconciler) Workspaces() (n int, bytes int64) { return r.work.Use() }

// Diff is what a card has changed in its worktree here.
func (r *Reconciler) Diff(ctx context.Context, card string, stat bool) (*workspace.Diff, error) {
	return r.work.Diff(ctx, card, stat)
}

// Gc lets workspaces go that no card needs and that hold nothing unsaved, and
// lists all of them with what keeps them. dry only says what would be done.
func (r *Reconciler) Gc(ctx context.Context, dry, scratch bool) ([]workspace.Item, error) {
	if !dry {
		if err := r.gcMemory(); err != nil {
			r.log.Warn("snapshots of agents that nobody needs stay", "err", err)
		}
	}
	return r.work.Gc(ctx, workspace.Sweep{Dry: dry, Scratch: scratch, Over: r.over})
}

// over tells whether a card is finished, so that it needs no workspace; else why not.
func (r *Reconciler) over(card string) (over bool, why string) {
	err := r.cfg.View(func(v board.View) error {
		c := board.GetCard(v, card)
		switch {
		case c == nil: // it is of no board here; what is saved can go
			over = true
		case c.Run != "":
			why = "its card is worked on"
		case c.Stored == "done" || c.Stored == "cancelled" || c.Stored == "archived":
			over = true
		default:
			why = "its card is " + c.Status
		}
		return nil
	})
	if err != nil {
		return false, "the state cannot be read: " + err.Error()
	}
	return over, why
}

// errand is an order of that kind under way.
type errand struct {
	card   string
	hook   bool
	cancel context.CancelCauseFunc
	done   chan struct{} // closed when nothing is done for it any more
}

func (e *errand) over() bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// errands begins what the state orders besides starts and stops: a hook, or a
// clean-up, when no run of its card is in its workspace any more, one for a card
// at a time, each answered once (M-26). The order stands until then, so that a
// node that dies does it again. A hook whose order has gone is ended.
func (r *Reconciler) errands(s *seen) {
	r.endOldHooks(s)
	busy := map[string]bool{} // cards
	for id, e := range r.errand {
		switch {
		case !e.over():
			busy[e.card] = true
			if s.errands[id] == nil && e.hook {
				e.cancel(errWithdrawn)
			}
		case s.errands[id] == nil:
			delete(r.errand, id) // it has been answered
		}
	}
	for id, o := range s.errands {
		hook := o.Kind == board.OrderHook
		if r.errand[id] != nil || busy[o.Card] || !hook && r.liveNow(o.Card) || hook && r.hookHeld(s, o.Card) != "" {
			continue
		}
		busy[o.Card] = true
		ctx, cancel := context.WithCancelCause(r.ctx)
		e := &errand{card: o.Card, hook: hook, cancel: cancel, done: make(chan struct{})}
		r.errand[id] = e
		act, room := r.cleanup, r.starts
		if hook {
			act, room = r.hook, r.hooks
		}
		o := *o
		r.wg.Add(1)
		go func() {
			defer r.wg.Done()
			defer r.Wake() // another may wait for the card
			defer close(e.done)
			defer cancel(nil)
			select {
			case room <- struct{}{}:
				defer func() { <-room }()
				act(ctx, &o)
			case <-ctx.Done():
			}
		}()
	}
}

// cleanup lets a card's workspaces go, or says why they stay.
func (r *Reconciler) cleanup(ctx context.Context, o *board.Order) {
	err := r.work.Clear(ctx, o.Card)
	if ctx.Err() != nil {
		return
	}
	at(atCleared)
	rep := board.Report{Kind: board.ReportDone, Run: o.Run, Order: o.ID}
	if err != nil {
		rep.Error = strings.ReplaceAll(err.Error(), "\n", "; ")
	}
	r.answer(&rep)
}

// answer tells the leader that an order was carried out, until it has heard it;
// false: it has not.
// It needs no place in the outbox: the order itself stands until it is answered.
func (r *Reconciler) answer(rep *board.Report) bool {
	args, err := json.Marshal(rep)
	if err != nil { // texts and numbers only
		return false
	}
	for tries := 1; ; tries++ {
		ctx, cancel := context.WithTimeout(r.ctx, sendWait)
		res := r.cfg.Send(ctx, &board.Request{Verb: board.VReport, Args: args, Retry: tries > 1,
			Actor: board.Actor{Kind: board.ActorNode, Role: "node", Name: r.cfg.Name, Node: r.cfg.Node}})
		cancel()
		switch {
		case isOutcome(res):
			return true
		case r.ctx.Err() != nil, res.Err.Code == board.Internal && tries >= poisonTries, !r.pause(r.ctx, nil, tries):
			return false
		}
	}
}

// scriptKill is the time between TERM and KILL of a script.
const scriptKill = 2 * time.Second

var errEnded = errors.New("it was ended, because its start does not count any more")

package launcher

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/subtle"
	"encoding/json"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"muster/board"
	"muster/board/lease"
)

// word is a request of a session that must not be lost: what ends its run. It
// is in the run's folder before it is asked, and leaves this node before the
// run's exit does. It belongs to the loop.
type word struct {
	req  *board.Request
	st   lease.WordState
	done chan struct{} // closed with the outcome
	res  board.Result
}

func (w *word) state() lease.WordState {
	if w == nil {
		return lease.WordNone
	}
	return w.st
}

// wordLine is a line of the words file: a word, or the outcome of one.
type wordLine struct {
	ID   string         `json:"id"`
	Req  *board.Request `json:"req,omitempty"`
	Done bool           `json:"done,omitempty"`
	Code board.Code     `json:"code,omitempty"`
}

// appendLine adds to the words file; synced, the line is there when this returns.
func appendLine(dir string, l wordLine, sync bool) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, fileWords), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	// A line cut off by a crash must not swallow this one.
	_, err = f.Write(append([]byte{'\n'}, append(b, '\n')...))
	if err == nil && sync {
		err = errors.Join(f.Sync(), syncDir(dir))
	}
	return errors.Join(err, f.Close())
}

// openWord is the word in a run's folder that has no outcome, nil without one.
func openWord(dir string) (*board.Request, error) {
	if dir == "" {
		return nil, nil
	}
	b, err := os.ReadFile(filepath.Join(dir, fileWords))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var last *board.Request
	sc := bufio.NewScanner(bytes.NewReader(b))
	sc.Buffer(nil, 4<<20)
	for sc.Scan() {
		var l wordLine
		if len(bytes.TrimSpace(sc.Bytes())) == 0 || json.Unmarshal(sc.Bytes(), &l) != nil {
			continue // cut off: it was never asked
		}
		switch {
		case l.Req != nil:
			last = l.Req
		case l.Done && last != nil && l.ID == last.ID:
			last = nil
		}
	}
	return last, sc.Err()
}

// finishWord notes the outcome of the run's word. The mark need not be synced:
// a word that is asked again under its id has the same outcome.
func (n *run) finishWord(res board.Result, log *slog.Logger) {
	w := n.word
	l := wordLine{ID: w.req.ID, Done: true}
	if res.Err != nil {
		l.Code = res.Err.Code
	}
	if err := appendLine(n.dir, l, false); err != nil {
		log.Warn("outcome of a word cannot be marked", "run", n.id, "err", err)
	}
	if w.st == lease.WordFiled {
		n.unheard = w // whoever said it was not told
	}
	w.res, n.word = res, nil
	n.spoke = n.spoke || res.Err == nil
	close(w.done)
}

// speaker is what SessionSay needs of a run, copied out of the loop.
type speaker struct {
	n        *run
	dir      string
	launched <-chan struct{}
	turn     chan struct{}
	role     string
}

// SessionSay sends on what a session says under its run's secret. One run's
// requests go one after the other, the first when the leader knows the secret
// (M-25). What would end the run is in the run's folder, synced, before it is
// asked: should ctx end first, or this node die, it is delivered later under
// the same id, before the run's exit, and the answer says so.
func (r *Reconciler) SessionSay(ctx context.Context, runID, secret string, req board.Request) board.Result {
	sp, refusal := r.speaker(runID, secret)
	if refusal != nil {
		return board.Result{Err: refusal}
	}
	req.Secret, req.Journal, req.Number = secret, "", 0
	req.Actor = board.Actor{Kind: board.ActorRun, Role: sp.role, Name: runID, Run: runID, Node: r.cfg.Node}
	if req.ID == "" {
		return board.Result{Err: board.Errorf(board.Invalid, "run %s: a request needs an id from its door", runID)}
	}
	for _, c := range []<-chan struct{}{sp.launched, sp.turn} {
		select {
		case <-c:
		case <-ctx.Done():
			return board.Result{Err: notYet(runID, "its node could not report its start yet, or an earlier word of it is on its way")}
		case <-r.stop:
			return board.Result{Err: notYet(runID, "its node is stopping")}
		}
	}
	defer func() { sp.turn <- struct{}{} }()
	if !endsRun(&req) {
		return r.forward(ctx, &req)
	}
	return r.sayWord(ctx, sp, &req)
}

func (r *Reconciler) speaker(runID, secret string) (sp speaker, refusal *board.Error) {
	known := false
	r.ask(func() {
		n := r.runs[runID]
		if n == nil {
			return
		}
		known = true
		if n.turn == nil {
			n.turn = make(chan struct{}, 1)
			n.turn <- struct{}{}
		}
		sp = speaker{n: n, dir: n.dir, launched: n.launched, turn: n.turn}
	})
	if !known {
		return sp, board.Errorf(board.Refused, "run %s is not a session of this node (any more)", runID).WithCheck("secret")
	}
	s, err := ReadSecret(sp.dir)
	if err != nil || subtle.ConstantTimeCompare([]byte(s.Secret), []byte(secret)) != 1 || s.Run != runID {
		return sp, board.Errorf(board.Refused, "the secret is not that of run %s", runID).WithCheck("secret")
	}
	sp.role = s.Role
	return sp, nil
}

func notYet(run, why string) *board.Error {
	return board.Errorf(board.Unavailable, "run %s: %s; nothing was sent", run, why).WithHint("say it again")
}

// endsRun tells whether a request may end its run: every event of the workflow
// but the two that never do.
func endsRun(req *board.Request) bool {
	if req.Verb != board.VEvent {
		return false
	}
	var e board.FireEvent
	return json.Unmarshal(req.Args, &e) != nil || e.Event != "comment" && e.Event != "heartbeat"
}

// forward asks until there is an outcome or ctx ends.
func (r *Reconciler) forward(ctx context.Context, req *board.Request) board.Result {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(r.ctx, func() { cancel(errClosed) })()
	again := make(chan struct{}) // a session's verb is not woken by a new leader: its pause is short
	for tries := 1; ; tries++ {
		res := r.cfg.Send(ctx, req)
		if isOutcome(res) || res.Err.Code == board.Internal {
			return res
		}
		req.Retry = true
		if ctx.Err() != nil || !r.pause(ctx, again, min(tries, 4)) {
			return res
		}
	}
}

func (r *Reconciler) sayWord(ctx context.Context, sp speaker, req *board.Request) board.Result {
	// A word that was given up is on its way by the outbox: the same one said
	// again has its outcome, another waits for it.
	var before *word
	r.ask(func() {
		before, sp.n.unheard = cmp.Or(sp.n.word, sp.n.unheard), nil
	})
	if before != nil {
		select {
		case <-before.done:
			r.ask(func() { sp.n.unheard = nil })
			if before.req.Verb == req.Verb && bytes.Equal(before.req.Args, req.Args) {
				return before.res
			}
		case <-ctx.Done():
			return board.Result{Err: notYet(sp.n.id, "an earlier word of it has no outcome yet")}
		case <-r.stop:
			return board.Result{Err: notYet(sp.n.id, "its node is stopping")}
		}
	}
	if err := appendLine(sp.dir, wordLine{ID: req.ID, Req: req}, true); err != nil {
		return board.Result{Err: board.Errorf(board.Internal, "run %s: its word cannot be written down: %v", sp.n.id, err)}
	}
	at(atWord)
	w := &word{req: req, st: lease.WordAsking, done: make(chan struct{})}
	if !r.ask(func() { sp.n.word = w }) {
		return board.Result{Err: kept(sp.n.id)}
	}
	r.saveBefore(ctx, sp.n)
	res := r.forward(ctx, copyRequest(req))
	if !isOutcome(res) {
		r.ask(func() { w.st = lease.WordOpen; r.Wake() })
		return board.Result{Err: kept(sp.n.id)}
	}
	if !r.ask(func() { sp.n.finishWord(res, r.log); r.Wake() }) {
		_ = appendLine(sp.dir, wordLine{ID: req.ID, Done: true}, false) // closing: the mark only saves asking again
	}
	return res
}

func kept(run string) *board.Error {
	return board.Errorf(board.UnknownOutcome, "run %s: the fleet could not be asked, or did not answer; the word is kept and delivered by this node as soon as there is a leader", run).
		WithHint("no need to say it again")
}

func copyRequest(req *board.Request) *board.Request {
	c := *req
	return &c
}

package launcher

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"muster/board"
	"muster/board/lease"
)

// A session that a person has can become a card's (SES-24, M-19). This node vouches for it: it looks at the process, and
// notes under a secret of its own what it saw. When the claim has come back as an order, a keeper watches that process,
// as it would one that it started: its end is told, and an order to stop ends it. Nothing else does: what its run's own
// word leaves open is the person's.

// Attached is a process that was there before its run, as it was when its node looked: pid, start time and boot.
type Attached struct {
	PID   int    `json:"pid"`
	Start int64  `json:"start"`
	Boot  string `json:"boot"`
}

// vouched is what a node remembers of a word it gave, until the run is there.
type vouched struct {
	Attached
	Session string `json:"session"`
	Secret  string `json:"secret"`
	Dir     string `json:"dir"`
}

// own is what a machine says of a process of the node's user.
type own struct {
	Attached
	cwd  string
	args []string
}

// harnessOf tells a harness by the program's name, "command" for any other.
var harnessOf = map[string]string{"claude": "claude-code", "codex": "codex", "opencode": "opencode", "gemini": "gemini", "hermes": "hermes"}

// Vouch looks at the process of a session of this machine, and speaks for what it saw: that it lives, whose it is, where
// it works, and what it is. Whoever asks may leave out the pid where the session's id stands in the process's arguments.
// What muster started itself, in a pane or without, has its card already.
func (r *Reconciler) Vouch(a board.Adopt) (*board.Vouch, *board.Error) {
	bad := func(format string, args ...any) *board.Error {
		return board.Errorf(board.Refused, "session "+a.Session+" on "+r.cfg.Name+": "+format, args...).WithCheck("vouch")
	}
	if a.Session == "" || len(a.Session) > 200 || strings.ContainsFunc(a.Session, func(c rune) bool { return unicode.IsControl(c) || c == ' ' }) {
		return nil, board.Errorf(board.Invalid, "which session? give its id, as its program calls it: --session ID").WithCheck("vouch")
	}
	p, err := r.find(a)
	if err != nil {
		return nil, bad("%v", err).WithHint("give the process: muster adopt %s --session %s --pid N", a.Card, a.Session)
	}
	if r.InKeeperTree(p.PID) || p.PID == os.Getpid() {
		return nil, bad("process %d is a part of muster, or of a session that it started", p.PID)
	}
	dir := p.cwd
	if a.Dir != "" {
		if dir, err = filepath.EvalSymlinks(strings.TrimPrefix(a.Dir, "dir:")); err != nil || !filepath.IsAbs(dir) || !within(dir, p.cwd) {
			return nil, bad("process %d works in %s, which is not in %s", p.PID, p.cwd, a.Dir)
		}
	}
	v := &vouched{Attached: p.Attached, Session: a.Session, Secret: randomHex(32), Dir: dir}
	if old := r.gave(a.Session); old != nil && old.Attached == v.Attached {
		v.Secret = old.Secret // asked again: the fleet may have taken the first
	}
	if err := errors.Join(os.MkdirAll(filepath.Join(r.cfg.Dir, "attach"), 0o700), writeJSON(filepath.Join(r.cfg.Dir, "attach"), wordFor(a.Session), v, true)); err != nil {
		return nil, board.Errorf(board.Internal, "session %s: %v", a.Session, err)
	}
	s := Secret{Secret: v.Secret}
	return &board.Vouch{Node: r.cfg.Node, Session: a.Session, Harness: harness(a.Harness, p.args), Surface: "headless", PID: int64(p.PID), Dir: dir, SecretHash: s.Hash()}, nil
}

// find is the process that is meant.
func (r *Reconciler) find(a board.Adopt) (own, error) {
	switch {
	case a.PID != 0 && a.Pane != "":
		return own{}, errors.New("a process and a pane were named: which?")
	case a.PID != 0:
		return ownProcess(int(a.PID))
	case a.Pane != "":
		pid, err := paneProcess(r.ctx, a.Pane)
		if err != nil {
			return own{}, err
		}
		return ownProcess(pid)
	}
	var found []own
	for _, p := range ownProcesses() {
		if p.PID != os.Getpid() && slices.ContainsFunc(p.args, func(s string) bool { return s == a.Session || strings.HasSuffix(s, "="+a.Session) }) && !isMuster(p.args) {
			found = append(found, p)
		}
	}
	if len(found) != 1 {
		return own{}, errors.New(manyOf(len(found)) + " of yours names it in its arguments")
	}
	return found[0], nil
}

// isMuster leaves out who asks: its own arguments name the session too.
func isMuster(args []string) bool { return len(args) > 1 && slices.Contains(args[1:], "adopt") }

func manyOf(n int) string {
	if n == 0 {
		return "no process"
	}
	return "more than one process"
}

// harness is what was said, else what the program's name says.
func harness(said string, args []string) string {
	if said != "" {
		return said
	}
	for _, word := range args[:min(len(args), 2)] { // a script's interpreter comes first
		if h := harnessOf[strings.TrimSuffix(filepath.Base(word), ".js")]; h != "" {
			return h
		}
	}
	return "command"
}

// within tells whether dir is path or a folder above it.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// wordFor is the file in which a word is remembered: a session's id comes from outside.
func wordFor(session string) string {
	h := sha256.Sum256([]byte(session))
	return hex.EncodeToString(h[:16]) + ".json"
}

func (r *Reconciler) gave(session string) *vouched {
	v := new(vouched)
	if readJSON(filepath.Join(r.cfg.Dir, "attach"), wordFor(session), v) != nil || v.Session != session {
		return nil
	}
	return v
}

// prepareAttached makes the folder of a run whose session is there. Done again after a crash, it finds what it made.
func (r *Reconciler) prepareAttached(j prepJob) (*Spec, error) {
	w := j.want
	if s, err := ReadSpec(j.dir); err == nil && s.Attach != nil {
		return s, nil
	}
	v := r.gave(w.SessionID)
	if v == nil || int64(v.PID) != w.Attach || v.Boot != BootID() {
		return nil, errors.New("its process is not the one that this machine vouched for")
	}
	if err := os.MkdirAll(j.dir, 0o700); err != nil {
		return nil, err
	}
	s := &Spec{
		V:   format,
		Run: w.Run, Node: r.cfg.Node, Key: w.LaunchKey, Nonce: randomHex(16), Dir: v.Dir, Kill: ms(w.Kill), Leave: ms(w.Leave), Boot: BootID(),
		Card: w.Card, Slot: w.Slot, Role: w.Role, Order: j.order.ID, Era: j.order.Era, Epoch: j.order.Seq, SessionID: w.SessionID, Attach: &v.Attached,
	}
	err := errors.Join(
		makeRoom(j.dir),
		writeJSON(j.dir, fileSecret, Secret{Run: w.Run, Role: w.Role, Slot: w.Slot, Secret: v.Secret}, true),
		writeAtomic(j.dir, fileBrief, []byte(w.Prompt), false),
		writeAtomic(j.dir, fileBody, []byte(w.Body), false),
		writeAtomic(j.dir, fileLog, nil, false), // its output is not ours
	)
	if err == nil {
		err = writeJSON(j.dir, fileSpec, s, true)
	}
	if err != nil {
		return nil, err
	}
	return s, os.Remove(filepath.Join(r.cfg.Dir, "attach", wordFor(w.SessionID)))
}

// attached tells that the run's session was there before it.
func (n *run) attached() bool {
	return n.want != nil && n.want.Attach != 0 || n.spec != nil && n.spec.Attach != nil
}

// again prepares an attached run that an earlier life of this node took and did not come to: nothing is started by that,
// so it can be done twice, and given up it would be called lost while it lives.
func (r *Reconciler) again(n *run, f lease.Facts) bool {
	if !n.attached() || n.order == nil || f.Stands != lease.StandsStart || f.Session != lease.SessionNone || n.stage != lease.StageNone ||
		r.orders.Entry(n.id).Mark != lease.MarkTaken {
		return false
	}
	r.prepare(n)
	return true
}

// watchAgain gives an attached session whose keeper was killed another one; false when its process is not there any more.
func (r *Reconciler) watchAgain(n *run) bool {
	if n.spec == nil || n.spec.Attach == nil || !n.spec.Attach.lives() {
		return false
	}
	n.busy = true
	r.log.Warn("the keeper of an attached session is dead; another one watches it", "run", n.id)
	r.wg.Go(func() {
		link, err := r.cfg.Runner.Start(n.dir)
		if !r.post(func() {
			n.busy = false
			if err != nil {
				r.trouble(n, "an attached session cannot be watched", err)
				n.backoff()
			} else {
				r.follow(n, link)
			}
			r.Wake()
		}) && link != nil {
			link.Close()
		}
	})
	return true
}

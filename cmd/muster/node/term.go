package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/tty"
	"muster/launcher"
	"muster/mesh"
)

const (
	termAsk  = 5 * time.Second // for who connects to say what they want, and for the first look at a pane
	termDial = 4 * time.Second // for the way to another machine
	termEnd  = 3 * time.Second // for the record of how a session ended
)

// Terminal opens what a person asks to look at, on the machine that has it: in one hop, never passed on.
// The connection ends with this node.
func (b backend) Terminal(ctx context.Context, q api.TermAsk) (tty.Opened, net.Conn, error) {
	n := b.n
	where, name := "", ""
	err := n.store.View(func(v board.View) (err error) {
		where, err = findTerm(v, &q)
		name = nodeName(v, where)
		return err
	})
	if err != nil {
		return tty.Opened{}, nil, err
	}
	c, err := n.dialTerm(ctx, where, name)
	if err != nil {
		return tty.Opened{}, nil, err
	}
	o, err := tty.Request(c, q.Ask, termAsk+termDial)
	if err != nil {
		_ = c.Close()
		return o, nil, saidBy(name, err)
	}
	return o, endsWith(n.ctx, c), nil
}

// abort closes a connection at once.
func abort(c net.Conn) {
	if m, ok := c.(*mesh.Conn); ok {
		m.Abort()
		return
	}
	_ = c.Close()
}

// saidBy is an answer that refuses, or why there was none.
func saidBy(machine string, err error) error {
	var e *tty.End
	if errors.As(err, &e) {
		return board.Errorf(board.Code(e.Code), "%s", e.Text).WithHint("%s", e.Hint)
	}
	return board.Errorf(board.Unavailable, "%s took the connection and did not answer: %v", machine, err).WithHint("see: muster status")
}

// dialTerm is a connection to a machine that waits to hear what is asked for.
func (n *Node) dialTerm(ctx context.Context, where, name string) (net.Conn, error) {
	if where == string(n.ident.ID) {
		near, far := net.Pipe()
		if !n.spawn(func() { n.hostTerm(mesh.NodeID(where), far) }) {
			return nil, board.Errorf(board.Unavailable, "%s is stopping", name)
		}
		return near, nil
	}
	dial, cancel := context.WithTimeout(ctx, termDial)
	defer cancel()
	c, err := n.mesh.Dial(dial, mesh.NodeID(where), mesh.ALPNTerm)
	if err == nil {
		return c, nil
	}
	since := ""
	if m, ok := n.mesh.(interface {
		Presence() map[mesh.NodeID]mesh.Seen
	}); ok {
		if p := m.Presence()[mesh.NodeID(where)]; p.State != "" && p.State != mesh.StateAlive {
			since = " since " + p.Since.Local().Format("15:04:05")
		}
	}
	n.log.Info("no terminal of another machine", "node", where, "err", err)
	return nil, board.Errorf(board.Unavailable, "%s does not answer%s; its sessions may go on", name, since).WithCheck("no_machine").WithHint("see: muster status")
}

// findTerm is the machine that has what is asked for; the ask is made definite.
func findTerm(v board.View, q *api.TermAsk) (where string, err error) {
	if q.Shell && q.Machine != "" {
		x, err := board.FindNode(v, q.Machine)
		if err != nil {
			return "", err
		}
		return x.ID, nil
	}
	c := board.GetCard(v, q.Card)
	if c == nil {
		return "", board.Errorf(board.NotFound, "no card %q", q.Card).WithHint("see: muster card list")
	}
	if q.Shell {
		r := board.WorkRun(v, c)
		if r == nil {
			return "", board.Errorf(board.NotFound, "card %s has no workspace yet: no session of it came up", c.ID).WithHint("see: muster why %s", c.ID)
		}
		return r.Node, nil
	}
	r, rerr := paneRun(v, c, q)
	if rerr != nil {
		return "", rerr
	}
	q.Run = r.ID
	return r.Node, nil
}

// paneRun is the run whose pane is meant: the newest open one of the card or slot, or the one that
// carries the session which was looked at before.
func paneRun(v board.View, c *board.Card, q *api.TermAsk) (found *board.Run, err *board.Error) {
	follow := q.Run
	var was *board.Run
	board.EachRun(v, c.ID, func(r *board.Run) bool { // oldest first
		switch {
		case q.Run == "":
			if r.Surface == "pane" && r.Gone == "" && r.Launched != 0 && (q.Slot == "" || r.Slot == q.Slot) {
				found = r
			}
		case r.ID == follow || r.Keeps == follow && was != nil && was.Gone == board.GonePassed:
			was, follow = r, r.ID
		}
		return true
	})
	switch {
	case found != nil:
		return found, nil
	case was != nil && was.Gone == "":
		return was, nil
	case was != nil:
		return nil, board.Errorf(board.Refused, "the session of run %s is over: %s", was.ID, endText(was)).WithCheck("ended").WithHint("what it printed: muster log %s", c.ID)
	case q.Run != "":
		return nil, board.Errorf(board.NotFound, "card %s has no run %s", c.ID, q.Run).WithHint("see: muster runs %s", c.ID)
	}
	of := ""
	if q.Slot != "" {
		of = " of slot " + q.Slot
	}
	return nil, board.Errorf(board.Refused, "card %s has no open pane%s", c.ID, of).WithHint("see: muster runs %s; what it printed: muster log %s", c.ID, c.ID)
}

// endText is how a run ended, for people.
func endText(r *board.Run) string {
	text := r.Outcome
	if text == "" {
		text = r.Verdict
	}
	if r.ExitCode != nil {
		text += fmt.Sprintf(" (exit code %d)", *r.ExitCode)
	}
	if r.Error != "" {
		text += ": " + r.Error
	}
	if text == "" {
		text = "gone"
	}
	return text
}

func nodeName(v board.View, id string) string {
	if x := board.GetNode(v, id); x != nil {
		return x.Name
	}
	return "node " + id
}

// terms takes the connections of peers that ask for a terminal.
func (n *Node) terms(ctx context.Context) error {
	l := n.mesh.TermListener()
	defer context.AfterFunc(ctx, func() { _ = l.Close() })()
	for {
		c, err := l.Accept()
		if err != nil {
			return nil // the mesh is closed
		}
		peer, ok := mesh.PeerOf(c)
		if !ok || !n.spawn(func() { n.hostTerm(peer, c) }) {
			_ = c.Close()
		}
	}
}

// hostTerm shows a terminal of this machine to a person at a node, until one of them goes.
func (n *Node) hostTerm(peer mesh.NodeID, c net.Conn) {
	defer c.Close()
	stop := context.AfterFunc(n.ctx, func() { _ = c.SetReadDeadline(time.Unix(1, 0)) })
	a, err := tty.Accept(c, termAsk)
	if err != nil {
		stop()
		return
	}
	o, p, err := n.openTerm(peer, &a)
	if p != nil {
		defer p.Close()
		defer n.termsOpen.Add(-1)
	}
	switch {
	case !stop(): // the node stops
		return
	case err != nil:
		n.deniedLook(peer, &a, o.Who, err)
		_ = tty.Refuse(c, *endOf(err))
		return
	case tty.Answer(c, o) != nil:
		return
	}
	n.showTerm(peer, &a, o, c, p)
}

// showTerm shows an open terminal as long as what let its asker in holds.
func (n *Node) showTerm(peer mesh.NodeID, a *tty.Ask, o tty.Opened, c net.Conn, p tty.Program) {
	ctx, cancel := context.WithCancelCause(n.ctx)
	var guard sync.WaitGroup
	guard.Go(func() {
		if e := n.guard(ctx, peer, a, &o); e != nil {
			cancel(e)
		}
	})
	look := n.looks.began(peer, a, o.Of, o)
	left := tty.Serve(ctx, c, p, tty.Hosting{ReadOnly: o.ReadOnly, Now: n.cfg.Boot, Ended: func() tty.End { return n.termEnded(o) },
		Wrote: func() { n.looks.typed(look) }})
	cancel(nil)
	guard.Wait()
	n.looks.ended(look, left)
	n.log.Info("a look at a terminal is over", "who", o.Who, "run", o.Of, "why", left.Why, "typed", left.Typed)
}

// termEnded tells what became of what was shown.
func (n *Node) termEnded(o tty.Opened) tty.End {
	if o.Run == "" {
		return tty.End{Code: "ended", Text: "the shell on " + o.Node + " has ended"}
	}
	ctx, cancel := context.WithTimeout(n.ctx, termEnd)
	defer cancel()
	if text, ok := n.launch.EndOf(ctx, o.Run); ok {
		return tty.End{Code: "ended", Text: "the session of run " + o.Run + " is over: " + text}
	}
	return tty.End{Code: "ended", Text: "the pane of run " + o.Run + " shows nothing any more", Again: true}
}

// screen is a terminal of this machine as tty shows it.
type screen struct{ *launcher.Screen }

func (s screen) Resize(x tty.Size) error { return s.Screen.Resize(x.Cols, x.Rows) }

// openTerm opens what is asked for, if who asks may see it here. A program counts in n.termsOpen.
func (n *Node) openTerm(peer mesh.NodeID, a *tty.Ask) (_ tty.Opened, p tty.Program, err error) {
	ctx, cancel := context.WithTimeout(n.ctx, termAsk)
	defer cancel()
	o := tty.Opened{Run: a.Run, Of: a.Run, Node: n.cfg.Name, ReadOnly: a.ReadOnly}
	dir := ""
	own, err := n.own()
	if err != nil {
		return o, nil, board.Errorf(board.Internal, "%v", err)
	}
	err = n.store.View(func(v board.View) error {
		if err := n.judge(v, &own, peer, a, &o, n.boardNow()); err != nil {
			return err
		}
		if !a.Shell {
			return here(v, string(n.ident.ID), a.Run)
		}
		dir, o.Of, err = shellDir(v, string(n.ident.ID), a.Card)
		return err
	})
	if err != nil {
		return o, nil, err
	}
	if n.termsOpen.Add(1) > termsAtOnce {
		n.termsOpen.Add(-1)
		return o, nil, n.tooMany()
	}
	defer func() {
		if err != nil {
			n.termsOpen.Add(-1)
		}
	}()
	view := launcher.View{ReadOnly: o.ReadOnly, Term: a.Term, Color: a.Color, Cols: a.Size.Cols, Rows: a.Size.Rows}
	var s *launcher.Screen
	if a.Shell {
		s, err = n.launch.Shell(dir, view)
		o.Path = dir
	} else {
		s, err = n.launch.Watch(ctx, a.Run, view)
	}
	if err != nil {
		return o, nil, err
	}
	return o, screen{s}, nil
}

// here refuses a run that is not this machine's.
func here(v board.View, self, run string) error {
	if r := board.GetRun(v, run); r == nil || r.Node != self {
		return board.Errorf(board.NotFound, "run %q is not on %s, as far as it knows", run, nodeName(v, self)).WithHint("see: muster runs CARD")
	}
	return nil
}

// shellDir is the folder that a card works in on this machine, and the run that does; "" is home.
func shellDir(v board.View, self, card string) (dir, run string, err error) {
	if card == "" {
		return "", "", nil
	}
	c := board.GetCard(v, card)
	if c == nil {
		return "", "", board.Errorf(board.NotFound, "no card %q", card)
	}
	r := board.WorkRun(v, c)
	if r == nil || r.Node != self || r.Workspace == "" {
		return "", "", board.Errorf(board.NotFound, "card %s has no workspace on %s", card, nodeName(v, self)).WithHint("see: muster card show %s", card)
	}
	return r.Workspace, r.ID, nil
}

package node

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"muster/board"
	"muster/cmd/muster/tty"
	"muster/mesh"
)

// termsAtOnce bounds the terminals that a machine shows at a time: each is a process and up to two windows of bytes.
const termsAtOnce = 64

// guardMost is after how many ms a look is held against the state anyway, rather than count that far.
const guardMost = 24 * 3600 * 1000

// tooMany refuses a terminal beyond [termsAtOnce].
func (n *Node) tooMany() error {
	return board.Errorf(board.Unavailable, "%s shows %d terminals already, and no more at a time", n.cfg.Name, termsAtOnce).
		WithHint("leave one (Ctrl-]), or read instead: muster log CARD")
}

// judge says who asks and what they may see and do, by this state and by this machine's own file: into o.
func (n *Node) judge(v board.View, own *own, peer mesh.NodeID, a *tty.Ask, o *tty.Opened, now int64) error {
	role, who, err := asker(v, string(peer), a, now)
	if err != nil {
		return err
	}
	o.Who = who
	return own.mayShow(n.cfg.Name, role, a, o)
}

// guard holds an open look against what let it in, as long as ctx lives: the token, the asking machine's
// `local`, this machine's own file. It looks again when one of them changes and when the token
// ends; the answer is why the look may not go on, nil when ctx has ended.
func (n *Node) guard(ctx context.Context, peer mesh.NodeID, a *tty.Ask, o *tty.Opened) *tty.End {
	token := ""
	if a.Secret != "" {
		token = board.HashSecret(a.Secret)
	}
	sub := n.store.Subscribe(func(t board.Table, key string) bool {
		return t == board.TToken && key == token || t == board.TNode && key == string(peer)
	})
	defer sub.Close()
	begun, base := n.cfg.Boot(), int64(0)
	for {
		moved := n.ownMoved() // before the look: what changes meanwhile is seen by the next
		own, err := n.own()
		ends := int64(0) // ms until the token ends
		is := tty.Opened{ReadOnly: a.ReadOnly}
		if err == nil {
			err = n.store.View(func(v board.View) error {
				if base == 0 {
					base = max(v.Time(), n.boardNow())
				}
				// Board time stands still where no leader is heard: a token ends there, too.
				now := max(v.Time(), n.boardNow(), base+(n.cfg.Boot()-begun).Milliseconds())
				if k := board.GetToken(v, token); k != nil && k.Expires != 0 {
					ends = min(max(k.Expires-now, 1), guardMost)
				}
				return n.judge(v, &own, peer, a, &is, now)
			})
		}
		switch {
		case err != nil:
			n.deniedLook(peer, a, o.Who, err)
			return endOf(err)
		case is.ReadOnly && !o.ReadOnly:
			return &tty.End{Code: "changed", Text: "you may look on only from now on: " + is.Why, Again: true}
		}
		var end <-chan time.Time
		if ends > 0 {
			end = time.After(time.Duration(ends) * time.Millisecond)
		}
		select {
		case <-ctx.Done():
			return nil
		case <-sub.C:
			sub.Take()
		case <-moved:
		case <-end:
		}
	}
}

// endOf tells who asked why they see nothing, or nothing more.
func endOf(err error) *tty.End {
	e := &tty.End{Code: string(board.CodeOf(err)), Text: err.Error()}
	if b := new(board.Error); errors.As(err, &b) {
		e.Text, e.Hint = b.Message, b.Hint
	}
	return e
}

// deniedLook counts somebody who was refused for who they are, at the machine that judged.
func (n *Node) deniedLook(peer mesh.NodeID, a *tty.Ask, who string, err error) {
	e := new(board.Error)
	if !errors.As(err, &e) {
		return
	}
	if kind := board.Denial(e); kind != "" {
		if who == "" {
			who = fmt.Sprintf("%.60s at node %.8s", a.Name, peer)
		}
		n.denied(kind, who, e.Message)
	}
}

// ownMoved is closed when this machine's own file is seen to say something else of its terminals.
func (n *Node) ownMoved() <-chan struct{} {
	n.termMu.Lock()
	defer n.termMu.Unlock()
	if n.attachMoved == nil {
		n.attachMoved = make(chan struct{})
	}
	return n.attachMoved
}

// sawOwn is told of every reading of that file: what it says of terminals, or that it cannot be read.
func (n *Node) sawOwn(attach string, err error) {
	if err != nil {
		attach = "?"
	}
	n.termMu.Lock()
	defer n.termMu.Unlock()
	if attach != n.attachSeen && n.attachMoved != nil {
		close(n.attachMoved)
		n.attachMoved = nil
	}
	n.attachSeen = attach
}

// readForTerms reads that file while terminals are shown: with each contact, as the other limits of this machine.
func (n *Node) readForTerms() {
	if n.termsOpen.Load() > 0 {
		_, _ = n.own() // it tells who waits
	}
}

// farTerm is a connection to a terminal; it ends with its node, which forgets it when it is closed.
type farTerm struct {
	net.Conn
	forget func() bool
}

// endsWith has a connection end when ctx does.
func endsWith(ctx context.Context, c net.Conn) farTerm {
	return farTerm{c, context.AfterFunc(ctx, func() { abort(c) })}
}

// Close implements net.Conn.
func (f farTerm) Close() error {
	f.forget()
	return f.Conn.Close()
}

// Abort closes at once.
func (f farTerm) Abort() {
	f.forget()
	abort(f.Conn)
}

package node

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"muster/board"
)

// tooNew says that the state is of a later format than this build knows
// (architecture.md §7): it neither leads nor starts anything.
func (n *Node) tooNew() *board.Error {
	if e := n.newer.Load(); e != nil {
		return e
	}
	return nil
}

// readFormat takes the format from the state; the first time that it is too new, people are told.
func (n *Node) readFormat(v board.View) {
	err := board.TooNew(v)
	if was := n.newer.Swap(err); err != nil && was == nil {
		n.cfg.Progress(err.Message + "; " + err.Hint)
		n.warn("%s: %s; %s", n.cfg.Name, err.Message, err.Hint)
	}
}

// handOver gives leadership to a voter that knows the state's format; this node
// leads without doing anything while there is none.
func (l *leading) handOver(ctx context.Context) bool {
	if l.n.tooNew() == nil {
		return false
	}
	changed := l.n.leaderChanged()
	to := ""
	_ = l.n.store.View(func(v board.View) error {
		f := board.GetFleet(v)
		board.EachNode(v, func(n *board.Node) bool {
			if n.Role == board.RoleVoter && n.Format >= f.Format && n.ID != string(l.n.ident.ID) && n.Store != "" {
				to = n.ID + "/" + n.Store
			}
			return to == ""
		})
		return nil
	})
	err := errors.New("no other voter knows the format")
	if to != "" {
		try, cancel := context.WithTimeout(ctx, callTimeout)
		err = l.n.store.TransferTo(try, to)
		cancel()
	}
	if err != nil {
		l.n.log.Warn("this node is too old to lead, and nobody takes over", "err", err)
		select {
		case <-ctx.Done():
		case <-changed:
		case <-time.After(lookAgain):
		}
	}
	return true
}

// raise raises the state's format when every voter, and every node seen within 30
// days, knows more.
func (l *leading) raise(ctx context.Context, nodes []board.Node, now int64) error {
	have := uint64(0)
	_ = l.n.store.View(func(v board.View) error {
		if f := board.GetFleet(v); f != nil {
			have = f.Format
		}
		return nil
	})
	if have == 0 || have >= board.Format {
		return nil
	}
	to := board.NextFormat(have, board.Format, nodes, now, func(id string) bool { return l.State(id).State == board.NodeOnline })
	if to <= have {
		return nil
	}
	b, err := json.Marshal(board.FormatRaise{Format: to})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, 15*time.Second)
	defer cancel()
	if res := l.n.lead(ctx, board.Request{Actor: board.Platform(), Verb: board.VFormat, Args: b}); res.Err != nil {
		return res.Err
	}
	l.n.log.Info("the state's format is raised", "format", to)
	return nil
}

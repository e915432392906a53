package node

import (
	"strings"

	"muster/board"
	"muster/cmd/muster/tty"
)

// What may be shown of this machine, by node.yaml's `attach` (default write).
const (
	attachWrite = "write" // as far as a person's role goes
	attachRead  = "read"  // looked at, not typed into; no shells
	attachNone  = "none"
)

// asker is who asks for a terminal and what they are, from this node's state only: a machine speaks
// for its own users, who are what its `local` says; a token is what it was made as (architecture.md §6).
func asker(v board.View, peer string, a *tty.Ask, now int64) (role, who string, _ error) {
	x := board.GetNode(v, peer)
	if x == nil {
		return "", "", board.Errorf(board.Refused, "the node you ask at is not in the fleet's list")
	}
	if a.Secret != "" {
		t, err := board.Usable(v, a.Secret, max(v.Time(), now))
		if err != nil {
			return "", "", err
		}
		if t.Board != "" {
			if a.Shell { // it would be this machine's user, for whom no board is a bound
				return "", "", board.Errorf(board.Refused, "a shell is not of one board, and this token is for board %s alone", t.Board).
					WithCheck(board.CheckRole).WithHint("ask a manager for one of the fleet: muster token create --role manager")
			}
			if c := board.GetCard(v, a.Card); c == nil || c.Board != t.Board || board.CardOfRun(a.Run) != c.ID {
				return "", "", board.Errorf(board.Refused, "this token is for board %s", t.Board).WithCheck(board.CheckRole)
			}
		}
		return t.Role, t.Who() + "@" + x.Name, nil
	}
	role = x.SocketRole()
	name, _, _ := strings.Cut(a.Name, "@") // a machine says who is at its door, never at another's
	return role, name + "@" + x.Name, nil
}

// mayShow says what a role may see and do here: managers write, members and viewers look on,
// and this machine's own file may allow less.
func (own *own) mayShow(machine, role string, a *tty.Ask, o *tty.Opened) error {
	manager := role == "manager"
	switch {
	case !manager && role != "member" && role != "viewer":
		return board.Errorf(board.Refused, "%s may see no session: the role is %q", a.Name, role).WithCheck(board.CheckRole).WithHint("ask a manager for: muster node set NODE local=viewer")
	case own.Attach == attachNone:
		return board.Errorf(board.Refused, "%s shows none of its terminals: its node.yaml says attach: none", machine)
	case a.Shell && (!manager || own.Attach == attachRead):
		if manager {
			return board.Errorf(board.Refused, "%s opens no shells: its node.yaml says attach: read", machine)
		}
		return board.Errorf(board.Refused, "a shell is for managers, and %s is a %s", a.Name, role).WithCheck(board.CheckRole)
	case o.ReadOnly:
	case !manager:
		o.ReadOnly, o.Why = true, "a "+role+" looks on"
	case own.Attach == attachRead:
		o.ReadOnly, o.Why = true, machine+"'s node.yaml says attach: read"
	}
	return nil
}

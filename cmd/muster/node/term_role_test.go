package node

import (
	"strings"
	"testing"

	"muster/board"
	"muster/cmd/muster/api/apitest"
	"muster/cmd/muster/tty"
)

// Managers write, members and viewers look on, and a machine's own file may allow less.
func TestMayShow(t *testing.T) {
	for _, c := range []struct {
		role, attach  string
		shell, asked  bool // asked: to look only
		only          bool
		refused, says string
	}{
		{role: "manager"},
		{role: "manager", asked: true, only: true},
		{role: "member", only: true, says: "a member looks on"},
		{role: "viewer", only: true, says: "a viewer looks on"},
		{role: "none", refused: "may see no session"},
		{role: "node", refused: "may see no session"},
		{role: "manager", shell: true},
		{role: "member", shell: true, refused: "for managers"},
		{role: "manager", attach: attachRead, only: true, says: "attach: read"},
		{role: "manager", attach: attachRead, shell: true, refused: "attach: read"},
		{role: "manager", attach: attachNone, refused: "attach: none"},
		{role: "viewer", attach: attachNone, refused: "attach: none"},
		{role: "manager", attach: attachWrite, shell: true},
	} {
		o := tty.Opened{ReadOnly: c.asked}
		err := (&own{Attach: c.attach}).mayShow("atlas", c.role, &tty.Ask{Name: "ann", Shell: c.shell}, &o)
		switch {
		case c.refused != "":
			if err == nil || !strings.Contains(err.Error(), c.refused) {
				t.Errorf("%+v: %v", c, err)
			}
		case err != nil || o.ReadOnly != c.only || !strings.Contains(o.Why, c.says):
			t.Errorf("%+v: %v, %+v", c, err, o)
		}
	}
}

// A token of one board shows what is on that board, and opens no shell: that would be the machine's user.
func TestAskerOfOneBoard(t *testing.T) {
	f := apitest.Story()
	f.Must(apitest.Manager(), board.VTokenCreate, board.TokenCreate{ID: board.HashSecret("bound"), Role: "manager", Board: "default"})
	f.Must(apitest.Manager(), board.VTokenCreate, board.TokenCreate{ID: board.HashSecret("fleet"), Role: "manager"})
	for _, c := range []struct {
		a       tty.Ask
		refused string
	}{
		{tty.Ask{Secret: "bound", Card: "d-2", Run: "d-2.1"}, ""},
		{tty.Ask{Secret: "bound", Card: "d-2", Shell: true}, "a shell is not of one board"},
		{tty.Ask{Secret: "bound", Shell: true}, "a shell is not of one board"},
		{tty.Ask{Secret: "bound", Card: "w-1", Run: "w-1.1"}, "for board default"},
		{tty.Ask{Secret: "bound", Card: "d-2", Run: "w-1.1"}, "for board default"},
		{tty.Ask{Secret: "fleet", Card: "d-2", Shell: true}, ""},
		{tty.Ask{Secret: "guess", Card: "d-2"}, "not known"},
	} {
		_, err := f.Read(t.Context(), false, func(v board.View) error {
			_, _, err := asker(v, apitest.Node, &c.a, v.Time())
			return err
		})
		switch {
		case c.refused == "" && err != nil, c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%+v: %v; want %q", c.a, err, c.refused)
		case c.refused != "" && board.Denial(err.(*board.Error)) == "":
			t.Errorf("%+v: it is not counted as a denial: %v", c.a, err)
		}
	}
}

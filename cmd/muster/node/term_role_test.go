package node

import (
	"strings"
	"testing"

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

package cli

import (
	"strings"
	"testing"

	"muster/board"
	"muster/cmd/muster/api/apitest"
)

// turn is what the node of a session tells of it.
func turn(f *apitest.Fleet, rep board.Report) {
	f.Must(board.Actor{Kind: board.ActorNode, Node: apitest.Node}, board.VReport, rep)
}

// cli.md: attention lists what needs a person, cards and sessions; so do card list --attention and status.
func TestAttention(t *testing.T) {
	w := newWorld(t, story())
	turn(w.f, board.Report{Run: "d-2.1", Kind: board.ReportIdle, For: board.TurnPermission, Text: "may I \x1b[31mrm -rf /?"})
	out := w.ok("attention")
	wants(t, out, "d-2 ", "asks for permission", `may I \x1b[31mrm`, "d-2.1 on atlas", "count to ten", "d-4 ", "needs_input", "which colour?", "!d-5")
	wants(t, w.ok("attention", "--board", "web"), "nothing needs a person")
	wants(t, w.ok("card", "list", "--attention"), "d-2 ", "d-4 ", " may I", "!d-3")
	wants(t, w.ok("status"), "attention: 2, see: muster attention", "asks for permission", "asks for permission for 0s")
	if ids := strings.Fields(w.ok("attention", "-q")); len(ids) != 2 || ids[0] != "d-2" || ids[1] != "d-4" {
		t.Errorf("ids %q", ids)
	}
	wants(t, w.ok("attention", "--json"), `"kind":"permission"`, `"session":"d-2.1"`, `"node":"atlas"`, `"tag":"`)
	turn(w.f, board.Report{Run: "d-2.1", Kind: board.ReportBusy})
	wants(t, w.ok("attention"), "!d-2 ", "d-4 ")
}

// cli.md: attention -f goes on, and tells each thing once, as soon as the state has it.
func TestAttentionFollows(t *testing.T) {
	w := newWorld(t, story())
	c := w.start("attention", "-f")
	c.out.await(t, "which colour?")
	subscribed(t, w.f, 1)
	turn(w.f, board.Report{Run: "d-2.1", Kind: board.ReportIdle, For: board.TurnQuestion, Text: "which one?"})
	c.out.await(t, "asks a question")
	turn(w.f, board.Report{Run: "d-2.1", Kind: board.ReportBusy})
	turn(w.f, board.Report{Run: "d-2.1", Kind: board.ReportDeaf, Error: "it shows no prompt"})
	c.out.await(t, "its pane takes no text")
	c.cancel()
	c.end(t)
	if out := c.out.String(); strings.Count(out, "which colour?") != 1 || strings.Count(out, "which one?") != 1 {
		t.Errorf("not each once:\n%s", out)
	}
}

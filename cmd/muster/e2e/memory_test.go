package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"muster/board"
)

// remembering writes a line into its agent's folder, and prints what it was told and what was there.
const remembering = `
cat "$MUSTER_BRIEF"
echo "found: $(cat "$MUSTER_AGENT_HOME/notes" 2>/dev/null | tr '\n' ' ')"
echo "$MUSTER_NODE" >> "$MUSTER_AGENT_HOME/notes"
while [ -e DIR/wait ]; do sleep 0.1; done
`

// M-29, AGT-24: a card moves over three machines, and its agent finds on each what it wrote on those before; also when
// its node was killed -9 after the session wrote, so that only the next life of the node takes the snapshot. A snapshot
// whose machine is away is said in the brief, and is there again for the session after.
func TestMemoryFollowsTheCard(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, 4, steady...)
	f.apply("null")
	f.allOnline(f.machines[0])
	dir := t.TempDir()
	a, b, c := f.machines[0], f.machines[1], f.machines[2]
	card := f.add(a, "remember", strings.ReplaceAll(remembering, "DIR", dir), on(a))
	f.await(a, "done", card)
	again := func(via, to *machine) {
		t.Helper()
		f.do(via, board.VMove, board.Move{Card: card, Machine: to.name})
		f.do(via, board.VEvent, board.FireEvent{Card: card, Event: "reopen", Payload: map[string]any{"why": "again"}})
	}
	last := func(via *machine) string {
		t.Helper()
		d, err := via.card(card)
		if err != nil {
			t.Fatal(err)
		}
		text, err := via.log(d.Runs[len(d.Runs)-1].ID)
		if err != nil {
			t.Fatal(err)
		}
		return text
	}
	found := func(via *machine, want ...string) {
		t.Helper()
		if text := last(via); !strings.Contains(text, "found: "+strings.Join(want, " ")+" \n") {
			t.Fatalf("want %v, its session said:\n%s", want, text)
		}
	}
	again(a, b)
	f.await(a, "done", card)
	found(a, a.name)
	if text := last(a); !strings.Contains(text, "Your earlier sessions:") || !strings.Contains(text, " on "+a.name+": ended ") {
		t.Errorf("the brief names no earlier session:\n%s", text)
	}

	if err := os.WriteFile(filepath.Join(dir, "wait"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	again(a, c)
	f.eventually(60*time.Second, "the session has written", func() (bool, string) {
		l, _ := filepath.Glob(filepath.Join(c.data, "agents", "*", "notes"))
		text := ""
		for _, p := range l {
			x, _ := os.ReadFile(p)
			text += string(x)
		}
		return strings.Contains(text, c.name), fmt.Sprint(l, text)
	})
	c.kill()
	if err := os.Remove(filepath.Join(dir, "wait")); err != nil {
		t.Fatal(err)
	}
	c.start()
	f.await(f.leader(), "done", card)
	found(a, a.name, b.name)

	again(a, a)
	f.await(a, "done", card)
	found(a, a.name, b.name, c.name)

	again(a, b)
	f.await(a, "done", card)
	b.kill()
	f.eventually(60*time.Second, b.name+" away", func() (bool, string) { return f.states(f.leader(), "offline", b.name) })
	again(f.leader(), c)
	f.await(f.leader(), "done", card)
	if text := last(c); !strings.Contains(text, "could not be brought to this machine") || !strings.Contains(text, "found: "+strings.Join([]string{a.name, b.name, c.name}, " ")+" \n") {
		t.Errorf("its snapshot is on %s, which is away, and the session was told:\n%s", b.name, text)
	}
	b.start()
	out := filepath.Join(dir, "out")
	if stdout, stderr, code := a.run("agent", "memory", card, "export", out); code != 0 {
		t.Errorf("export: %s%s", stdout, stderr)
	}
	if text, err := os.ReadFile(filepath.Join(out, "notes")); err != nil || !strings.HasPrefix(string(text), strings.Join([]string{a.name, b.name, c.name}, "\n")+"\n") {
		t.Errorf("exported: %q, %v", text, err)
	}
	if _, _, code := a.run("agent", "memory", card, "export", out); code != 2 {
		t.Errorf("export into a folder that is not empty: exit %d", code)
	}
	if stdout, stderr, code := a.run("agent", "memory", card, "diff"); code != 0 || !strings.Contains(stdout, "changed  notes (") {
		t.Errorf("diff: %s%s", stdout, stderr)
	}
	d, err := f.leader().card(card)
	if err != nil || len(d.Agents) != 1 {
		t.Fatalf("agents of the card: %+v, %v", d.Agents, err)
	}
	f.sameState()
}

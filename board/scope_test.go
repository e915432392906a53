package board

import (
	"testing"

	"muster/board/rule"
)

// compiled is an expression of the documented scope.
func compiled(t testing.TB, src string) *rule.Expr {
	t.Helper()
	e, err := rule.Compile(src, rule.Any)
	if err != nil {
		t.Fatalf("%s: %v", src, err)
	}
	return e
}

// Every member that expressions may name is filled by the scope: a new one cannot be forgotten.
func TestEveryMemberIsFilled(t *testing.T) {
	w := newWorld(t, commands)
	arc := w.add("arc", nil)
	w.edit("atlas", func(n *Node) { n.Tools, n.Labels = []string{"git"}, map[string]string{"os": "linux"} })
	id := w.addBy("web", manager, "x", func(c *Card) {
		*c = Card{ID: c.ID, Board: c.Board, Title: "t", Creator: manager, Created: w.now - 9000, Assignee: "sh", Machine: "atlas", Priority: 1, Skills: []string{"s"},
			Model: "m", Provider: "p", Effort: "high", MaxRuntime: opt(1), MaxRetries: opt(2), GoalMaxTurns: opt(3), Goal: true, Tenant: "t", Branch: "b",
			Workspace: "scratch", SubtaskOf: arc, Labels: map[string]string{"k": "v"}, StartAfter: w.now - 5000, Kind: "doc", LastError: "e", LastOutcome: "o",
			Failures: 1, BlockKind: "transient", BlockReason: "r", Blocks: map[string]int64{"transient": 1}}
	}, nil)
	w.write(func(x *tx) *Error {
		b := GetBoard(x, "web")
		b.Label, b.Home, b.Zone = "Web", "atlas", "Europe/Berlin"
		x.putBoard(b)
		x.putBody(id, "body")
		return nil
	})
	if _, err := w.firing(id, firing{Event: "start", Actor: manager, Start: &startCtx{Node: "n-atlas"}}); err != nil {
		t.Fatal(err)
	}
	w.after(2)
	w.exit(id, 75)
	w.set(id, func(c *Card) { c.Run = c.ID + ".1" }) // as while it ran: both current and with an outcome
	s, err := NewScope(w.v, w.ws, GetBoard(w.v, "web"), w.card(id), w.now, w.env().Nodes)
	if err != nil {
		t.Fatal(err)
	}
	n := GetNode(w.v, "n-atlas")
	r := w.nodes["n-atlas"]
	r.Load, r.FreeMB = 0.5, 100
	s.From(manager, map[string]any{"a": 1.0}).At(n, r, 2)
	for _, variable := range []string{"card", "run", "machine", "host", "tick", "actor", "board"} {
		for _, m := range rule.Members(variable) {
			v, err := s.Eval(compiled(t, variable+"."+m))
			if err != nil || v == nil {
				t.Errorf("%s.%s is %v %v", variable, m, v, err)
			}
		}
	}
	for _, variable := range []string{"params.grace", "payload.a", "profile.name", "now", "context", "arc_context", "doors", "where"} {
		if v, err := s.Eval(compiled(t, variable)); err != nil || v == nil || v == "" {
			t.Errorf("%s is %v %v", variable, v, err)
		}
	}
}

// EXP-02, EXP-04, EXP-05, EXP-07, EXP-08, EXP-10, BRD-19, M-02, M-15: what expressions see, in
// seconds; without a placed start there is no host and no tick, and nothing fails.
func TestScopeValues(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("x", func(c *Card) { c.Assignee, c.Created, c.StartAfter = "sh", t0-1500, t0+2500 })
	b := GetBoard(w.v, "web")
	scope := func() *Scope {
		s, err := NewScope(w.v, w.ws, b, w.card(id), w.now, w.env().Nodes)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	n := GetNode(w.v, "n-atlas")
	online := Reading{State: NodeOnline, Slots: 4, Pressure: "elevated"}
	stale := Reading{State: NodeOnline, AgeMS: 61_000, Slots: 4, Pressure: "critical"}
	p := w.flow("web").wf.Profile("agent")
	for _, c := range []struct {
		src  string
		s    *Scope
		want any
	}{
		{"now - card.created_at", scope(), 1.5},
		{"card.start_after - now", scope(), 2.5},
		{"card.due", scope(), false},
		{"card.parents_done", scope(), true},
		{"card.run", scope(), nil},
		{"card.creator", scope(), "person"},
		{"card.session_live", scope(), false},
		{"host.memory_pressure", scope(), nil},
		{"host.slots > 0", scope(), false},
		{"tick.local_started < 1", scope(), false},
		{"run.surface", scope(), nil},
		{"profile.surface", scope(), nil},
		{"machine.always_on", scope(), nil},
		{"payload.deep.er", scope().From(manager, map[string]any{"deep": map[string]any{"er": "x"}}), "x"},
		{"actor.role", scope(), "platform"},
		{"host.memory_pressure", scope().At(n, online, 3), "elevated"},
		{"host.memory_pressure", scope().At(n, stale, 3), "unknown"},
		{"host.slots", scope().At(n, Reading{State: NodeUnknown}, 0), 4.0},
		{"tick.local_started", scope().At(n, online, 3), 3.0},
		{"machine.name", scope().At(n, online, 3), "atlas"},
		{"machine.online", scope().At(n, online, 3), true},
		{"run.surface", scope().At(n, online, 0).Playing(p), "headless"},
		{"run.machine", scope().At(n, online, 0).Playing(p), "atlas"},
		{"profile.name", scope().At(n, online, 0).Playing(p), "agent"},
		{"profile.verdict", scope().Playing(p), "explicit"},
	} {
		got, err := c.s.Eval(compiled(t, c.src))
		if err != nil || got != c.want {
			t.Errorf("%s = %v %v, want %v", c.src, got, err, c.want)
		}
	}
}

// EXP-02: session_live is true only for a session on a node that was heard.
func TestSessionLive(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("x", func(c *Card) { c.Assignee = "sh" })
	w.started(id)
	live := compiled(t, "card.session_live")
	for _, c := range []struct {
		state string
		want  bool
	}{{NodeOnline, true}, {NodeOffline, false}, {NodeUnknown, false}} {
		w.nodes["n-atlas"] = Reading{State: c.state}
		s, _ := NewScope(w.v, w.ws, GetBoard(w.v, "web"), w.card(id), w.now, w.env().Nodes)
		if got, err := s.Holds(live); err != nil || got != c.want {
			t.Errorf("%s: %v %v", c.state, got, err)
		}
	}
}

// counting is a view that counts what is read.
type counting struct {
	View
	gets, scans int
}

func (c *counting) Get(t Table, key string) []byte { c.gets++; return c.View.Get(t, key) }

func (c *counting) Scan(t Table, prefix, from string, fn func(string, []byte) bool) {
	c.scans++
	c.View.Scan(t, prefix, from, fn)
}

// An expression costs what it reads (architecture.md §8): a plain field reads no table.
func TestScopeIsFilledAsItIsRead(t *testing.T) {
	w := newWorld(t, commands)
	id := w.add("x", nil)
	v := &counting{View: w.v}
	s, err := NewScope(v, w.ws, GetBoard(w.v, "web"), w.card(id), w.now, nil)
	if err != nil {
		t.Fatal(err)
	}
	v.gets, v.scans = 0, 0
	if _, err := s.Eval(compiled(t, "card.priority + len(card.title) + (now - card.created_at)")); err != nil {
		t.Fatal(err)
	}
	if v.gets+v.scans != 0 {
		t.Fatalf("%d gets, %d scans for plain fields", v.gets, v.scans)
	}
	if _, err := s.Eval(compiled(t, "card.parents_done")); err != nil || v.scans != 1 {
		t.Fatalf("%d scans for parents_done", v.scans)
	}
}

// M-22, WFL-14: a board's workflow is that of its version, with its own parameters; what it extends is
// followed, and a memory filled from another state is not believed.
func TestWorkflowsAreRemembered(t *testing.T) {
	w := newWorld(t, commands)
	w.ws = NewWorkflows()
	w.board("sub", "version: 1\nname: sub\nextends: board:web\nparams: {failure_limit: 7}\n")
	b := GetBoard(w.v, "sub")
	first, err := w.ws.Of(w.v, b)
	if err != nil || first.Profile("sh") == nil {
		t.Fatalf("%v", err)
	}
	if again, _ := w.ws.Of(w.v, b); again != first {
		t.Fatal("compiled twice")
	}
	b.Params = []byte(`{"failure_limit":9,"unheard":1}`)
	if p, err := w.ws.Params(w.v, b); err != nil || p["failure_limit"] != 9.0 || p["stale"] == nil || p["unheard"] != nil {
		t.Fatalf("%v %v", p, err)
	}
	store := func(slug string, version uint64, src string) {
		w.write(func(x *tx) *Error {
			x.put(TWorkflow, WorkflowKey(slug, version), &WorkflowDoc{Board: slug, Version: version, Source: []byte(src)})
			b := GetBoard(x, slug)
			b.Workflow = version
			x.putBoard(b)
			return nil
		})
	}
	store("web", 2, "version: 1\nname: web\nextends: default\nprofiles: {py: {harness: command, args: [python3]}}\n")
	if wf, err := w.ws.Of(w.v, GetBoard(w.v, "sub")); err != nil || wf.Profile("py") == nil || wf.Profile("sh") != nil {
		t.Fatalf("the base changed and %v", err)
	}
	// A transaction that was given up showed another text under the same number.
	lost := newTx(w.v, &Request{}, w.env())
	lost.put(TWorkflow, WorkflowKey("web", 3), &WorkflowDoc{Board: "web", Version: 3, Source: []byte("version: 1\nname: lost\nextends: default\n")})
	web := GetBoard(w.v, "web")
	web.Workflow = 3
	if wf, err := w.ws.Of(lost, web); err != nil || wf.Name != "lost" {
		t.Fatalf("%v", err)
	}
	store("web", 3, "version: 1\nname: kept\nextends: default\n")
	if wf, err := w.ws.Of(w.v, web); err != nil || wf.Name != "kept" {
		t.Fatalf("the memory gave %v %v", wf, err)
	}
	if old, err := w.ws.OfVersion(w.v, web, 1); err != nil || old.Profile("sh") == nil {
		t.Fatalf("the version a run was started with: %v", err)
	}
	store("web", 4, "version: 1\nname: [broken\n")
	if _, err := w.ws.Of(w.v, GetBoard(w.v, "web")); err == nil {
		t.Fatal("a broken workflow compiled")
	}
	for i := range 3 * maxWorkflows {
		b.Params = []byte(`{"failure_limit":` + jsonNumber(uint64(i)) + `}`)
		_, _ = w.ws.Params(w.v, &Board{Slug: "none", Params: b.Params})
	}
	if n := len(w.ws.kept); n > maxWorkflows {
		t.Fatalf("%d kept", n)
	}
}

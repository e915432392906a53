package foreign

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"muster/board"
)

// HermesExport is what gives the tables of a Hermes board as JSON.
const HermesExport = `for t in tasks task_links task_comments task_events task_runs; do sqlite3 -json kanban.db "select '$t' as \"table\", * from $t"; done > kanban.json`

// stripped are columns that belong to the fleet a card ran in: claims, processes, places.
var stripped = []string{"claim_lock", "claim_expires", "current_run_id", "worker_pid", "last_heartbeat_at", "idempotency_key", "session_id", "step_key"}

// hermes reads Hermes's tables as JSON: one list of rows a table, one after the
// other, each row with the name of its table; or one object of lists by table.
func (b *Board) hermes(src []byte) error {
	if bytes.HasPrefix(src, []byte("SQLite format 3\x00")) {
		return bad("this is the database itself; give its tables as JSON").WithHint("%s", HermesExport)
	}
	tables := map[string][]*row{}
	add := func(table string, x any) error {
		n := len(tables[table]) + 1
		m, ok := x.(map[string]any)
		if !ok {
			return bad("row %d of %s is no JSON object", n, table)
		}
		tables[table] = append(tables[table], b.row(fmt.Sprintf("row %d of %s", n, table), m))
		return nil
	}
	err := eachValue(src, func(v any) error {
		if m, ok := v.(map[string]any); ok && m["table"] == nil {
			for name, list := range m {
				for _, x := range asList(list) {
					if err := add(name, x); err != nil {
						return err
					}
				}
			}
			return nil
		}
		for _, x := range asList(v) {
			m, _ := x.(map[string]any)
			name, _ := m["table"].(string)
			if name == "" {
				return bad("a row does not say of which table it is").WithHint("%s", HermesExport)
			}
			delete(m, "table")
			if err := add(name, x); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	return b.tables(tables)
}

func (b *Board) tables(t map[string][]*row) error {
	for _, r := range t["tasks"] {
		if err := b.task(r); err != nil {
			return err
		}
	}
	for _, x := range []struct {
		table string
		take  func(c *card, r *row)
	}{{"supercode_cards", b.placed}, {"task_comments", b.said}, {"task_runs", b.attempt}, {"task_events", b.happened}} {
		rows := t[x.table]
		slices.SortStableFunc(rows, func(p, q *row) int { return int(min(max(order(p)-order(q), -1), 1)) })
		for _, r := range rows {
			key := r.text("task_id")
			c := b.byKey[key]
			if c == nil {
				b.leave("a row of "+x.table+" whose task is not there", key)
				continue
			}
			x.take(c, r)
			r.take("id")
			r.strip()
			r.rest(x.table)
		}
	}
	for _, r := range t["task_links"] {
		parent, child := r.text("parent_id"), r.text("child_id")
		if c := b.byKey[child]; c != nil {
			c.after = append(c.after, parent)
		} else {
			b.leave("a row of task_links whose task is not there", child)
		}
	}
	for name, rows := range t {
		if !slices.Contains([]string{"tasks", "task_links", "task_comments", "task_events", "task_runs", "supercode_cards"}, name) {
			for range rows {
				b.leave("a row of table "+name, "")
			}
		}
	}
	return nil
}

func order(r *row) int64 {
	if n, ok := r.vals["id"].(json.Number); ok {
		i, _ := n.Int64() // rows without a number keep their order
		return i
	}
	return 0
}

// strip takes away what belongs to the fleet that it ran in, and counts it.
func (r *row) strip() {
	for _, name := range stripped {
		if v := r.take(name); v != nil && name != "step_key" {
			r.b.leave("claims and processes", name)
		}
	}
}

// task is a card: behaviour of the columns as in docs/import.md.
func (b *Board) task(r *row) error {
	c := &card{where: r.where, status: strings.ToLower(r.text("status")), numbers: map[string]uint64{}}
	c.out = board.ExportCard{Title: r.text("title"), Body: r.text("body"), Assignee: r.text("assignee"), Priority: r.count("priority"), Created: r.at("created_at"),
		Started: r.at("started_at"), Failures: zeroOr(r.positive("consecutive_failures")), LastError: cut(r.text("last_failure_error"), 400), MaxRetries: r.positive("max_retries"),
		MaxRuntime: r.seconds("max_runtime_seconds"), Model: r.text("model_override"), Provider: r.text("provider_override"), Effort: r.text("reasoning_effort"),
		Skills: r.list("skills"), Goal: r.flag("goal_mode"), GoalMaxTurns: r.positive("goal_max_turns"), Tenant: r.text("tenant"), Branch: r.text("branch_name"),
		StartAfter: r.at("scheduled_at")}
	kind, path := r.text("workspace_kind"), r.text("workspace_path")
	switch {
	case kind == "scratch" || kind == "" && path == "":
	default:
		b.leave("a workspace: it is a folder of another machine", kind+" "+path)
	}
	if c.out.Branch != "" { // a branch is that of a worktree, and there is none
		b.leave("a branch: it is that of a worktree on another machine", c.out.Branch)
		c.out.Branch = ""
	}
	key := r.text("id")
	if ended := r.at("completed_at", "updated_at"); ended > 0 {
		c.out.Updated = ended
	}
	r.strip()
	r.rest("tasks")
	return b.add(key, c)
}

func zeroOr(n *int64) int64 {
	if n == nil {
		return 0
	}
	return *n
}

// placed is the table beside the tasks: machine, arc, archive flag.
func (b *Board) placed(c *card, r *row) {
	c.out.Machine, c.of = r.text("machine"), r.text("subtask_of")
	b.machine(c.out.Machine)
	if r.flag("archived") && c.status != "archived" {
		c.out.Previous = statuses[c.status]
		c.status = "archived"
	}
}

// attempt is a run that is over.
func (b *Board) attempt(c *card, r *row) {
	role, slot := "implementer", "worker"
	step := r.text("step_key", "status")
	if strings.HasPrefix(step, "review") {
		role, slot = "reviewer", "reviewer"
	}
	x := board.ExportRun{Role: role, Slot: slot, Profile: r.text("profile"), Status: cut(step, 60), Outcome: cut(r.text("outcome"), 60), Error: cut(r.text("error"), 400),
		Claimed: r.at("started_at"), Ended: r.at("ended_at")}
	if x.Ended == 0 && x.Outcome == "" {
		b.leave("a run that was going on", c.key)
		return
	}
	c.runs = append(c.runs, x)
	c.numbers[r.text("id")] = uint64(len(c.runs))
}

// happened is an event of the history; its comments come from their own table.
func (b *Board) happened(c *card, r *row) {
	x := board.ExportEvent{Kind: cut(r.text("kind"), 100), At: r.at("created_at"), Actor: board.Actor{Kind: board.ActorPlatform, Role: "platform", Name: "hermes"}}
	x.Run = c.numbers[r.text("run_id")]
	if v := r.take("payload"); v != nil {
		x.Payload = b.payload(v)
	}
	if x.Kind == "" {
		b.leave("an event without a kind", c.key)
		return
	}
	c.events = append(c.events, x)
}

// payload is a JSON object; anything else is put into one.
func (b *Board) payload(v any) json.RawMessage {
	if s, ok := v.(string); ok {
		var in any
		if json.Unmarshal([]byte(s), &in) == nil {
			v = in
		}
	}
	if _, ok := v.(map[string]any); !ok {
		v = map[string]any{"value": v}
	}
	raw, err := json.Marshal(v)
	if err != nil || len(raw) > maxText {
		b.leave("the payload of an event, which is too long", "")
		return nil
	}
	return raw
}

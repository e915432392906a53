package foreign

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"muster/board"
)

// csv reads a table: the first line names the columns, each other is a card.
func (b *Board) csv(src []byte) error {
	r := csv.NewReader(bytes.NewReader(bytes.TrimPrefix(src, []byte("\ufeff"))))
	r.FieldsPerRecord, r.LazyQuotes = -1, true
	head, err := r.Read()
	if err != nil {
		return bad("the table has no first line that names its columns")
	}
	for {
		rec, err := r.Read()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return bad("%v", err)
		}
		line, _ := r.FieldPos(0)
		vals := map[string]any{}
		for i, v := range rec {
			if i < len(head) {
				vals[head[i]] = v
			} else if strings.TrimSpace(v) != "" {
				b.leave("a field beyond the last column", v)
			}
		}
		row := b.row(fmt.Sprint("line ", line), vals)
		if len(row.vals) == 0 {
			continue
		}
		if err := b.record(row); err != nil {
			return err
		}
	}
}

// json reads a list of objects, {"cards": [...]}, or one object a line.
func (b *Board) json(src []byte) error {
	n := 0
	return eachValue(src, func(v any) error {
		if m, ok := v.(map[string]any); ok {
			if list, ok := m["cards"].([]any); ok {
				for k, x := range m {
					if k != "cards" && !empty(x) {
						b.leave("key "+k+" beside cards", show(x))
					}
				}
				v = list
			}
		}
		list, ok := v.([]any)
		if !ok {
			list = []any{v}
		}
		for _, x := range list {
			n++
			m, ok := x.(map[string]any)
			if !ok {
				return bad("card %d is no JSON object", n)
			}
			if err := b.record(b.row(fmt.Sprint("card ", n), m)); err != nil {
				return err
			}
		}
		return nil
	})
}

// eachValue reads JSON values one after the other.
func eachValue(src []byte, fn func(any) error) error {
	d := json.NewDecoder(bytes.NewReader(bytes.TrimPrefix(src, []byte("\ufeff"))))
	d.UseNumber()
	for {
		var v any
		err := d.Decode(&v)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return bad("at byte %d: %v", d.InputOffset(), err)
		}
		if err := fn(v); err != nil {
			return err
		}
	}
}

// record takes a card of a table or of JSON, by the names that docs/import.md lists.
func (b *Board) record(r *row) error {
	c := &card{where: r.where, status: strings.ToLower(r.text("status", "state"))}
	if r.flag("triage") {
		c.status = "triage"
	}
	c.of, c.after = r.text("subtask_of"), r.list("after", "depends_on")
	created := r.at("created_at", "created")
	c.out = board.ExportCard{Title: r.text("title", "name", "summary"), Body: r.text("body", "description"), Assignee: r.text("assignee", "profile"), Machine: r.text("machine"),
		Priority: r.count("priority"), Created: created, Updated: r.at("updated_at", "updated"), MaxRetries: r.positive("max_retries"), MaxRuntime: r.seconds("max_runtime"),
		Model: r.text("model"), Skills: r.list("skills"), Goal: r.flag("goal"), GoalMaxTurns: r.positive("goal_max_turns"), Labels: r.dict("labels"),
		StartAfter: r.at("start_after"), Kind: r.text("kind"), Tenant: r.text("tenant")}
	b.machine(c.out.Machine)
	for _, x := range asList(r.take("comments")) {
		b.comment(c, x)
	}
	key := r.text("id", "key")
	r.rest("column")
	return b.add(key, c)
}

func asList(v any) []any {
	if list, ok := v.([]any); ok {
		return list
	}
	if v == nil {
		return nil
	}
	return []any{v}
}

// comment is text, or an object with author, body and created_at.
func (b *Board) comment(c *card, x any) {
	m, ok := x.(map[string]any)
	if !ok {
		m = map[string]any{"body": show(x)}
	}
	r := b.row(c.where, m)
	b.said(c, r)
	r.rest("a comment's")
}

func (b *Board) said(c *card, r *row) {
	text := b.cutTold(r.text("body", "text"), maxText, "the end of a long comment")
	author := r.text("author", "by")
	if author == "" {
		author = "import"
	}
	if text != "" {
		c.events = append(c.events, board.ExportEvent{Kind: "comment", At: r.at("created_at", "at"), Said: true, Text: text,
			Actor: board.Actor{Kind: board.ActorPerson, Role: "member", Name: cut(author, 100)}})
	}
}

// machine notes the names of machines: a card is bound to one only where this fleet has it.
func (b *Board) machine(name string) {
	if name != "" {
		b.leave("machine "+cut(name, 60)+", unless this fleet has one of that name", "")
	}
}

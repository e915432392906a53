package foreign

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"muster/board"
)

// File writes the board as a file to import, under a slug, with the default
// workflow. now is the moment for cards whose own is not known, in ms.
func (b *Board) File(slug string, now int64) ([]byte, error) {
	prefix := strings.ReplaceAll(slug, "-", "")
	prefix = prefix[:min(len(prefix), 12)]
	ids := map[string]string{}
	for i, c := range b.cards {
		ids[c.key] = fmt.Sprintf("%s-%d", prefix, i+1)
	}
	var out bytes.Buffer
	lines := 0
	write := func(x any) error {
		raw, err := json.Marshal(x)
		if err != nil {
			return err
		}
		out.Write(append(raw, '\n'))
		lines++
		return nil
	}
	err := write(board.ExportHead{Version: board.ExportVersion, At: now, Slug: slug, Prefix: prefix, Label: slug, Keep: 90, NextCard: uint64(len(b.cards)),
		Workflow: "version: 1\nname: " + slug + "\nextends: default\n"})
	for _, c := range b.cards {
		if err == nil {
			err = c.write(ids, now, write)
		}
	}
	for _, c := range b.cards {
		for _, key := range c.after {
			if err == nil {
				err = write(board.ExportLine{Link: &board.ExportLink{Card: ids[c.key], After: ids[key]}})
			}
		}
	}
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256(out.Bytes())
	fmt.Fprintf(&out, "{\"end\":{\"lines\":%d,\"sha256\":%q}}\n", lines, hex.EncodeToString(sum[:]))
	return out.Bytes(), nil
}

func (c *card) write(ids map[string]string, now int64, write func(any) error) error {
	x := c.out
	x.ID, x.SubtaskOf, x.Runs = ids[c.key], ids[c.of], uint64(len(c.runs))
	if x.Created == 0 {
		x.Created = now
	}
	x.Updated = max(x.Updated, x.Created)
	if x.Creator.Kind == "" {
		x.Creator = board.Actor{Kind: board.ActorPerson, Role: "member", Name: "import"}
	}
	if err := write(board.ExportLine{Card: &x}); err != nil {
		return err
	}
	c.sortEvents()
	for i := range c.events {
		e := c.events[i]
		if e.Card = x.ID; e.At == 0 {
			e.At = x.Created
		}
		if err := write(board.ExportLine{Event: &e}); err != nil {
			return err
		}
	}
	for i := range c.runs {
		r := c.runs[i]
		r.Card, r.N = x.ID, uint64(i+1)
		if err := write(board.ExportLine{Run: &r}); err != nil {
			return err
		}
	}
	return nil
}

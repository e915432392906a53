package document

import (
	"errors"
	"io"
	"maps"
	"strings"

	"muster/board"
)

// passing are fields that come and go with runs: a document that is kept in git has them not, since nobody knows
// afterwards what they were at an event.
var passing = []string{"run", "failures", "last_error", "block_kind", "block_reason", "attention"}

// Collect reads what an export emits.
func Collect(export func(emit func([]byte) error) error) (*Board, error) {
	var all [][]byte
	if err := export(func(line []byte) error { all = append(all, line); return nil }); err != nil {
		return nil, err
	}
	i := 0
	b, err := FromExport(func() ([]byte, error) {
		if i == len(all) {
			return nil, io.EOF
		}
		i++
		return all[i-1], nil
	}, func(err error) bool { return errors.Is(err, io.EOF) })
	return b, err
}

// Status is the card's status in the workflow.
func (c *Card) Status() string { return c.Values.text(fieldStatus) }

// Assignee is the profile that works it.
func (c *Card) Assignee() string { return c.Values.text("assignee") }

// AsOf is the card's file as it was after an event, by its key: in a status, with an assignee, with what was said by then.
func (c *Card) AsOf(status, assignee, event string) (name string, raw []byte) {
	x := &Card{Values: maps.Clone(c.Values), File: c.File, Older: c.Older}
	for _, f := range passing {
		delete(x.Values, f)
	}
	delete(x.Values, "assignee")
	x.Values.set("assignee", assignee)
	x.Values.set(fieldStatus, status)
	for _, s := range c.Said {
		if key, err := board.ParseEventID(s.ID); err == nil && key <= event {
			x.Said = append(x.Said, s)
		}
	}
	return c.File, x.render()
}

// Settings are the files of the board itself; one that it has not is there without content.
func (b *Board) Settings() map[string][]byte {
	files := map[string][]byte{}
	for name, raw := range b.Render() {
		if !strings.HasPrefix(name, CardsFolder+"/") && name != BaseFile {
			files[name] = raw
		}
	}
	if files[ProfilesFile] == nil {
		files[ProfilesFile] = nil
	}
	return files
}

// Mirrored are the files that a mirror has: without a base, since nobody takes them back from there.
func (b *Board) Mirrored() map[string][]byte {
	files := b.Settings()
	for _, c := range b.Cards {
		name, raw := c.AsOf(c.Status(), c.Assignee(), "g") // behind any key
		files[name] = raw
	}
	return files
}

package board

import (
	"encoding/json"
)

// An import makes a new board in slices (M-01). Its cards lie where they belong
// from the first slice on, but the board and its prefix are not there before the
// last: no reader finds them. One that is not brought to its end is taken away
// again, in slices too.

// Verbs of an import, with the type of their args.
const (
	VImportBegin = "import.begin" // ImportBegin
	VImportSlice = "import.slice" // ImportSlice
	VImportEnd   = "import.end"   // ImportEnd
)

// Bounds of an import.
const (
	MaxImportLines = 250 // of a slice
	MaxImportBytes = 384 << 10
	MaxImportLine  = 2 << 20 // bytes of one line
	MaxImportLinks = 50      // of a slice: each looks for a circle
	importIdle     = 10 * 60_000
	dropPerStep    = 300
)

// DueImport is the time at which an import counts as given up.
const DueImport = "import"

// ImportBegin opens an import: the file's header, under another slug if given.
type ImportBegin struct {
	Token string     `json:"token"` // tells this attempt from others
	As    string     `json:"as,omitempty"`
	Head  ExportHead `json:"head"`
}

// ImportSlice brings the next lines. The same slice twice is one.
type ImportSlice struct {
	Slug  string            `json:"slug"`
	Token string            `json:"token"`
	N     int64             `json:"n"`     // of the slice, from 0
	First int               `json:"first"` // number of its first line in the file
	Lines []json.RawMessage `json:"lines"`
}

// ImportEnd makes the board visible, paused unless it is to start, or gives the import up.
type ImportEnd struct {
	Slug  string `json:"slug"`
	Token string `json:"token"`
	N     int64  `json:"n"` // slices there were
	Start bool   `json:"start,omitempty"`
	Drop  bool   `json:"drop,omitempty"`
}

// Import is a board that is being imported.
type Import struct {
	Board                      Board
	From                       string // prefix of its cards in the file
	Token                      string
	Next, At                   int64 // next slice; board time of the last one
	By                         Actor
	Dropped                    bool
	Cards, Events, Runs, Links int64
	unknown
}

func (i *Import) fields(w *wire) {
	w.nest(1, &i.Board)
	str(w, 2, &i.From)
	str(w, 3, &i.Token)
	w.int(4, &i.Next)
	w.int(5, &i.At)
	w.nest(6, &i.By)
	w.bool(7, &i.Dropped)
	w.int(8, &i.Cards)
	w.int(9, &i.Events)
	w.int(10, &i.Runs)
	w.int(11, &i.Links)
}

// GetImport reads an import under way by its slug.
func GetImport(v View, slug string) *Import { return read[Import](v, TImport, slug) }

// importing tells whether an import under way has a slug or a prefix.
func importing(v View, slug, prefix string) (found bool) {
	scan(v, TImport, "", "", func(_ string, i *Import) bool {
		found = i.Board.Slug == slug || i.Board.Prefix == prefix
		return !found
	})
	return found
}

func importBegin(t *tx) (any, *Error) {
	a, err := args[ImportBegin](t)
	if err != nil {
		return nil, err
	}
	h := &a.Head
	slug := orElse(a.As, h.Slug)
	switch {
	case h.Version != ExportVersion:
		return nil, badLine(1, "the file has format %d; this version reads %d", h.Version, ExportVersion)
	case !slugRE.MatchString(slug):
		return nil, badLine(1, "%q is no slug: a lower-case letter, then letters, digits and dashes, at most 32", clip(slug, 40))
	case !prefixRE.MatchString(h.Prefix):
		return nil, badLine(1, "%q is no prefix of cards", clip(h.Prefix, 40))
	case len(a.Token) < 8 || len(a.Token) > 64:
		return nil, Errorf(Invalid, "an import has a token of its own")
	case h.NextCard > 1<<40:
		return nil, badLine(1, "next_card is out of range")
	}
	if t.Has(TBoard, slug) {
		return nil, Errorf(Conflict, "board %q exists; an import is a new board", slug).WithHint("give it another name: muster board import FILE --as SLUG")
	}
	if old := GetImport(t, slug); old != nil {
		if old.Token == a.Token && old.Next == 0 && !old.Dropped {
			return map[string]any{"slug": slug, "prefix": old.Board.Prefix}, nil
		}
		return nil, Errorf(Conflict, "an import of board %q is under way, by %s", slug, old.By.Name).WithHint("give it another name (--as SLUG); one that was given up is taken away within minutes")
	}
	prefix := h.Prefix // ids are kept when they are free
	if t.Has(TPrefix, prefix) || importing(t, "", prefix) {
		prefix = t.freePrefix(slug)
	}
	b := Board{Slug: slug, Prefix: prefix, Label: clip(orElse(h.Label, slug), 100), Keep: h.Keep, Zone: h.Zone, Params: h.Params, NextCard: h.NextCard, Created: t.env.Now}
	if b.Keep < 1 || b.Keep > 36500 {
		b.Keep = 90
	}
	if err := t.saveWorkflow(&b, h.Workflow); err != nil {
		err.Message = "line 1: its workflow: " + err.Message
		return nil, err
	}
	i := &Import{Board: b, From: h.Prefix, Token: a.Token, At: t.env.Now, By: t.req.Actor}
	t.put(TImport, slug, i)
	t.putDue(t.env.Now+importIdle, DueImport, slug)
	return map[string]any{"slug": slug, "prefix": prefix}, nil
}

// importOf finds the import that a slice belongs to; done says that it was taken before.
func (t *tx) importOf(slug, token string, n int64) (i *Import, done bool, err *Error) {
	i = GetImport(t, slug)
	switch {
	case i == nil || i.Token != token || i.Dropped:
		return nil, false, Errorf(Refused, "the import of board %q is over", clip(slug, 40)).WithCheck("import").WithHint("begin again: muster board import FILE")
	case n < i.Next:
		return i, true, nil
	case n > i.Next:
		return nil, false, Errorf(Conflict, "slice %d of the import of board %q comes before slice %d", n, slug, i.Next).WithCheck("import")
	}
	return i, false, nil
}

func importSlice(t *tx) (any, *Error) {
	a, err := args[ImportSlice](t)
	if err != nil {
		return nil, err
	}
	i, done, err := t.importOf(a.Slug, a.Token, a.N)
	if err != nil || done {
		return nil, err
	}
	if len(a.Lines) > MaxImportLines {
		return nil, Errorf(Exhausted, "a slice of %d lines; the bound is %d", len(a.Lines), MaxImportLines)
	}
	x := &importer{t: t, i: i, cards: map[string]*Card{}}
	if x.fl, err = t.flow(&i.Board); err != nil {
		return nil, err
	}
	for n, line := range a.Lines {
		if x.n = a.First + n; x.links > MaxImportLinks {
			return nil, Errorf(Exhausted, "a slice with more than %d links", MaxImportLinks)
		}
		if err := x.line(line); err != nil {
			return nil, err
		}
	}
	for _, id := range sortedKeys(x.cards) {
		t.put(TCard, id, x.cards[id])
	}
	t.delDue(i.At+importIdle, DueImport, a.Slug)
	i.Next++
	i.At = t.env.Now
	t.putDue(i.At+importIdle, DueImport, a.Slug)
	t.put(TImport, a.Slug, i)
	return nil, nil
}

func importEnd(t *tx) (any, *Error) {
	a, err := args[ImportEnd](t)
	if err != nil {
		return nil, err
	}
	if b := GetBoard(t, a.Slug); b != nil && b.Imported == a.Token {
		return map[string]any{"slug": b.Slug, "prefix": b.Prefix, "paused": b.PausedAt != 0}, nil // a copy of what was done
	}
	i, done, err := t.importOf(a.Slug, a.Token, a.N)
	switch {
	case err != nil:
		return nil, err
	case a.Drop:
		t.delDue(i.At+importIdle, DueImport, a.Slug)
		i.Dropped = true
		t.put(TImport, a.Slug, i)
		t.putDue(t.env.Now, DueImport, a.Slug)
		return nil, nil
	case done:
		return nil, Errorf(Conflict, "the import of board %q has more slices than %d", a.Slug, a.N).WithCheck("import")
	}
	b := i.Board
	b.Imported = a.Token
	t.keepAll(&b)
	why := "imported: look, then " + resumeBoard(&b)
	if !a.Start { // its cards were started elsewhere, or never: nobody has looked at them here
		b.PausedBy, b.PausedWhy, b.PausedAt = orElse(t.req.Actor.Name, "somebody"), why, t.env.Now
	}
	t.putBoard(&b)
	t.write(Op{Table: TPrefix, Key: b.Prefix, Val: []byte(b.Slug)})
	t.del(TImport, a.Slug)
	t.delDue(i.At+importIdle, DueImport, a.Slug)
	t.event(nil, Event{Kind: "board_imported", Board: b.Slug, Payload: object("cards", i.Cards, "events", i.Events, "runs", i.Runs, "links", i.Links)})
	if !a.Start {
		t.event(nil, Event{Kind: "paused", Board: b.Slug, Payload: object("why", why)})
	}
	return map[string]any{"slug": b.Slug, "prefix": b.Prefix, "paused": !a.Start, "cards": i.Cards, "events": i.Events, "runs": i.Runs, "links": i.Links}, nil
}

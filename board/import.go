package board

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
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

// ImportEnd makes the board visible, or gives the import up.
type ImportEnd struct {
	Slug  string `json:"slug"`
	Token string `json:"token"`
	N     int64  `json:"n"` // slices there were
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
		return map[string]any{"slug": b.Slug, "prefix": b.Prefix}, nil // a copy of what was done
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
	t.putBoard(&b)
	t.write(Op{Table: TPrefix, Key: b.Prefix, Val: []byte(b.Slug)})
	t.del(TImport, a.Slug)
	t.delDue(i.At+importIdle, DueImport, a.Slug)
	t.event(nil, Event{Kind: "board_imported", Board: b.Slug, Payload: object("cards", i.Cards, "events", i.Events, "runs", i.Runs, "links", i.Links)})
	return map[string]any{"slug": b.Slug, "prefix": b.Prefix, "cards": i.Cards, "events": i.Events, "runs": i.Runs, "links": i.Links}, nil
}

// importer takes over the lines of one slice.
type importer struct {
	t     *tx
	i     *Import
	fl    *flow
	n     int // number of the line
	links int
	cards map[string]*Card // of this slice, as they are now
}

func (x *importer) line(raw []byte) *Error {
	var l ExportLine
	if err := strict(raw, &l); err != nil {
		return badLine(x.n, "%v", err)
	}
	switch {
	case l.Card != nil && l.Event == nil && l.Run == nil && l.Link == nil:
		return x.card(l.Card)
	case l.Event != nil && l.Card == nil && l.Run == nil && l.Link == nil:
		return x.event(l.Event)
	case l.Run != nil && l.Card == nil && l.Event == nil && l.Link == nil:
		return x.run(l.Run)
	case l.Link != nil && l.Card == nil && l.Event == nil && l.Run == nil:
		return x.link(l.Link)
	}
	return badLine(x.n, "neither a card nor an event, a run or a link")
}

// strict decodes one JSON value without unknown keys.
func strict(raw []byte, into any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if err := d.Decode(into); err != nil {
		return err
	}
	if _, err := d.Token(); err != io.EOF {
		return Errorf(Invalid, "more than one JSON value")
	}
	return nil
}

// id is what a card's id of the file is here; "" when it is none of the file's board.
func (x *importer) id(old string) string {
	num, ok := strings.CutPrefix(old, x.i.From+"-")
	n, err := strconv.ParseUint(num, 10, 64)
	if !ok || err != nil || n == 0 || n > 1<<40 || strconv.FormatUint(n, 10) != num {
		return ""
	}
	x.i.Board.NextCard = max(x.i.Board.NextCard, n)
	return x.i.Board.Prefix + "-" + num
}

// actor is who said something, as this fleet may have it: nobody of this fleet, and no run's rights.
func (x *importer) actor(a Actor) Actor {
	name := clip(a.Name, 200)
	if card, n, ok := cutLast(a.Run, "."); ok {
		if id := x.id(card); id != "" {
			name = id + "." + n
		}
	}
	switch a.Kind {
	case ActorPerson, ActorRun, ActorPlatform, ActorNode:
		return Actor{Kind: a.Kind, Role: clip(a.Role, 60), Name: name}
	}
	return Actor{Kind: ActorPlatform, Role: "platform", Name: name}
}

func (x *importer) find(old string) (*Card, *Error) {
	id := x.id(old)
	if c := x.cards[id]; c != nil {
		return c, nil
	}
	c := GetCard(x.t, id)
	if id == "" || c == nil || c.Board != x.i.Board.Slug {
		return nil, badLine(x.n, "there is no card %q before it", clip(old, 60))
	}
	x.cards[id] = c
	return c, nil
}

func (x *importer) card(e *ExportCard) *Error {
	id := x.id(e.ID)
	st := x.fl.wf.Statuses[e.Status]
	switch {
	case id == "":
		return badLine(x.n, "card %q is not one of the prefix %q", clip(e.ID, 60), x.i.From)
	case x.cards[id] != nil || x.t.Has(TCard, id):
		return badLine(x.n, "card %s is there twice", e.ID)
	case strings.TrimSpace(e.Title) == "" || len(e.Title) > maxTitle || strings.ContainsAny(e.Title, "\n\r"):
		return badLine(x.n, "card %s: a title is one line of at most %d bytes", e.ID, maxTitle)
	case len(e.Body) > maxBody:
		return badLine(x.n, "card %s: a body of %d bytes; the bound is %d", e.ID, len(e.Body), maxBody)
	case st == nil:
		return badLine(x.n, "card %s: the file's workflow has no status %q", e.ID, clip(e.Status, 60))
	case st.Run != nil:
		return badLine(x.n, "card %s: status %q has a run, and runs are not imported", e.ID, e.Status)
	case len(e.Skills) > 64 || len(e.Labels) > 64 || len(e.Blocks) > 64 || e.Runs > 1<<32:
		return badLine(x.n, "card %s: too many skills, labels, blocks or runs", e.ID)
	}
	c := &Card{ID: id, Board: x.i.Board.Slug, Title: e.Title, Status: e.Status, Stored: st.StoredAs, Previous: clip(e.Previous, 100), Assignee: clip(e.Assignee, 200),
		Priority: e.Priority, Created: x.past(e.Created), Updated: x.past(e.Updated), Started: x.past(e.Started), Creator: x.actor(e.Creator), Runs: e.Runs,
		Failures: max(e.Failures, 0), LastError: clip(e.LastError, 500), LastOutcome: clip(e.LastOutcome, 100), MaxRetries: e.MaxRetries, MaxRuntime: e.MaxRuntime,
		Model: clip(e.Model, 200), Provider: clip(e.Provider, 200), Effort: clip(e.Effort, 200), Skills: e.Skills, Goal: e.Goal, GoalMaxTurns: e.GoalMaxTurns,
		Tenant: clip(e.Tenant, 200), Branch: clip(e.Branch, 1000), SubtaskOf: x.id(e.SubtaskOf), Labels: e.Labels, StartAfter: max(e.StartAfter, 0), Blocks: e.Blocks,
		BlockKind: clip(e.BlockKind, 60), BlockReason: clip(e.BlockReason, 4<<10), LastFree: x.past(e.LastFree), Kind: clip(e.Kind, 200)}
	if e.Needs != "" {
		c.Attention = Reason{Check: clip(e.Needs, 60), Text: clip(e.NeedsText, 500), Since: x.past(e.NeedsSince)}
	}
	if n, err := FindNode(x.t, e.Machine); e.Machine != "" && err == nil {
		c.Machine = n.Name
	}
	if e.Workspace == "scratch" || strings.HasPrefix(e.Workspace, "worktree:") { // a path of another machine is none of ours
		c.Workspace = clip(e.Workspace, 1000)
	}
	if err := x.t.setRest(c, &CardFields{Labels: e.Labels}); err != nil {
		return badLine(x.n, "%s", err.Message)
	}
	x.t.putBody(id, e.Body)
	if c.StartAfter > 0 {
		x.t.putDue(c.StartAfter, DueCard, id)
	}
	x.cards[id] = c
	x.i.Cards++
	return nil
}

// past keeps times of another fleet from lying in the future.
func (x *importer) past(ms int64) int64 { return min(max(ms, 0), x.t.env.Now) }

func (x *importer) event(e *ExportEvent) *Error {
	c, err := x.find(e.Card)
	if err != nil {
		return err
	}
	var p map[string]any
	switch {
	case e.Kind == "" || len(e.Kind) > 100:
		return badLine(x.n, "an event without a kind")
	case len(e.Payload) > maxPayload || len(e.Text) > maxComment || !utf8.ValidString(e.Text):
		return badLine(x.n, "an event of more than %d bytes", maxPayload)
	case len(e.Payload) > 0 && json.Unmarshal(e.Payload, &p) != nil:
		return badLine(x.n, "the payload of an event is no JSON object")
	}
	ev := x.t.event(c, Event{Kind: e.Kind, Actor: x.actor(e.Actor), Payload: e.Payload, From: clip(e.From, 100), To: clip(e.To, 100), Origin: clip(e.ID, 60)})
	if ev.At = x.past(e.At); e.Run > 0 && e.Run <= c.Runs {
		ev.Run = RunID(c.ID, e.Run)
	}
	if e.Said {
		ev.Said, ev.Text, ev.SaidBefore = true, e.Text, c.LastSaid
		c.LastSaid = ev.ID
	}
	x.t.put(TEvent, ev.ID, ev)
	x.i.Events++
	return nil
}

func (x *importer) run(e *ExportRun) *Error {
	c, err := x.find(e.Card)
	if err != nil {
		return err
	}
	if e.N == 0 || e.N > c.Runs || GetRun(x.t, RunID(c.ID, e.N)) != nil {
		return badLine(x.n, "run %d of card %s: the card has %d, each once", e.N, e.Card, c.Runs)
	}
	x.t.putRun(&Run{ID: RunID(c.ID, e.N), Card: c.ID, Board: c.Board, N: e.N, Role: clip(e.Role, 100), Slot: clip(e.Slot, 64), Profile: clip(e.Profile, 200),
		Harness: clip(e.Harness, 200), Surface: clip(e.Surface, 60), Model: clip(e.Model, 200), Source: clip(e.Source, 100), Status: clip(e.Status, 100),
		State: RunEnded, Outcome: clip(orElse(e.Outcome, "ended"), 100), Error: clip(e.Error, 500), Verdict: ByExit, Gone: GoneReport, Mode: "imported",
		Claimed: x.past(e.Claimed), Launched: x.past(e.Launched), Ended: x.past(e.Ended), GoneAt: x.past(e.Ended), ExitCode: e.ExitCode, Signal: clip(e.Signal, 60)})
	x.i.Runs++
	return nil
}

func (x *importer) link(e *ExportLink) *Error {
	child, err := x.find(e.Card)
	if err != nil {
		return err
	}
	parent, err := x.find(e.After)
	if err != nil {
		return err
	}
	for _, c := range []*Card{child, parent} { // the link looks for them
		x.t.put(TCard, c.ID, c)
	}
	if err := x.t.addLink(child.ID, parent.ID); err != nil {
		return badLine(x.n, "%s", err.Message)
	}
	x.links++
	x.i.Links++
	return nil
}

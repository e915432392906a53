package board

import (
	"bytes"
	"encoding/json"
	"io"
	"strconv"
	"strings"
	"unicode/utf8"
)

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

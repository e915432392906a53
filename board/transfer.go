package board

import (
	"encoding/json"
	"fmt"
	"slices"
)

// A board as one file (M-01): lines of JSON. The first is the header, the last
// holds the number of lines before it and their hash; between them each card is
// followed by what happened to it, oldest first, and its attempts, and behind
// all cards come the links. What belongs to one fleet is not in it: claims,
// sessions, processes, machines' ids, subscriptions, webhooks.

// ExportVersion is the version of the file's format.
const ExportVersion = 1

// maxExportEvents bounds what is brought along of one card: its newest events.
const maxExportEvents = 5000

// ExportHead is the first line of a board's file.
type ExportHead struct {
	Version  int             `json:"muster_board"`
	Fleet    string          `json:"fleet"`
	Seq      uint64          `json:"seq"`
	At       int64           `json:"exported_at"` // ms
	Slug     string          `json:"slug"`
	Prefix   string          `json:"prefix"`
	Label    string          `json:"label"`
	Zone     string          `json:"zone,omitempty"`
	Keep     int64           `json:"keep"`
	Params   json.RawMessage `json:"params,omitempty"`
	NextCard uint64          `json:"next_card"`
	Workflow string          `json:"workflow"` // the YAML in force

	Home            string `json:"home,omitempty"`             // name of a machine; of [ExportLive] only
	WorkflowVersion uint64 `json:"workflow_version,omitempty"` // of ExportLive only
}

// ExportLine is any other line but the last: one of its members is there.
type ExportLine struct {
	Card  *ExportCard  `json:"card,omitempty"`
	Event *ExportEvent `json:"event,omitempty"`
	Run   *ExportRun   `json:"run,omitempty"`
	Link  *ExportLink  `json:"link,omitempty"`
}

// ExportEnd is the last line: {"end": ...}.
type ExportEnd struct {
	End *struct {
		Lines  int    `json:"lines"`
		SHA256 string `json:"sha256"`
	} `json:"end"`
}

// ExportCard is a card without its claim. Times are ms of board time, durations seconds.
type ExportCard struct {
	ID           string            `json:"id"`
	Title        string            `json:"title"`
	Body         string            `json:"body,omitempty"`
	Status       string            `json:"status"`
	Previous     string            `json:"previous,omitempty"`
	Assignee     string            `json:"assignee,omitempty"`
	Machine      string            `json:"machine,omitempty"`
	Priority     int64             `json:"priority,omitempty"`
	Created      int64             `json:"created"`
	Updated      int64             `json:"updated"`
	Started      int64             `json:"started,omitempty"`
	Creator      Actor             `json:"creator"`
	Runs         uint64            `json:"runs,omitempty"`
	Failures     int64             `json:"failures,omitempty"`
	LastError    string            `json:"last_error,omitempty"`
	LastOutcome  string            `json:"last_outcome,omitempty"`
	MaxRetries   *int64            `json:"max_retries,omitempty"`
	MaxRuntime   *int64            `json:"max_runtime,omitempty"`
	Model        string            `json:"model,omitempty"`
	Provider     string            `json:"provider,omitempty"`
	Effort       string            `json:"effort,omitempty"`
	Skills       []string          `json:"skills,omitempty"`
	Goal         bool              `json:"goal,omitempty"`
	GoalMaxTurns *int64            `json:"goal_max_turns,omitempty"`
	Tenant       string            `json:"tenant,omitempty"`
	Branch       string            `json:"branch,omitempty"`
	Workspace    string            `json:"workspace,omitempty"`
	SubtaskOf    string            `json:"subtask_of,omitempty"`
	Labels       map[string]string `json:"labels,omitempty"`
	StartAfter   int64             `json:"start_after,omitempty"`
	Blocks       map[string]int64  `json:"blocks,omitempty"`
	BlockKind    string            `json:"block_kind,omitempty"`
	BlockReason  string            `json:"block_reason,omitempty"`
	Needs        string            `json:"needs,omitempty"` // why a person is needed: kind and text
	NeedsText    string            `json:"needs_text,omitempty"`
	NeedsSince   int64             `json:"needs_since,omitempty"`
	LastFree     int64             `json:"last_free,omitempty"`
	Kind         string            `json:"kind,omitempty"`
	Now          string            `json:"status_now,omitempty"` // the status in which its run works; of [ExportLive] only
	Run          string            `json:"run_now,omitempty"`    // that run; of ExportLive only
}

// ExportEvent is something that happened to a card; Said makes it a comment.
type ExportEvent struct {
	Card    string          `json:"card"`
	ID      string          `json:"id"` // in the fleet it happened in
	Kind    string          `json:"kind"`
	At      int64           `json:"at"`
	Actor   Actor           `json:"actor"`
	Run     uint64          `json:"run,omitempty"` // number
	Payload json.RawMessage `json:"payload,omitempty"`
	From    string          `json:"from,omitempty"`
	To      string          `json:"to,omitempty"`
	Said    bool            `json:"said,omitempty"`
	Text    string          `json:"text,omitempty"`
}

// ExportRun is an attempt that is over.
type ExportRun struct {
	Card     string `json:"card"`
	N        uint64 `json:"n"`
	Role     string `json:"role"`
	Slot     string `json:"slot"`
	Profile  string `json:"profile"`
	Harness  string `json:"harness,omitempty"`
	Surface  string `json:"surface,omitempty"`
	Model    string `json:"model,omitempty"`
	Source   string `json:"source,omitempty"`
	Status   string `json:"status,omitempty"`
	Outcome  string `json:"outcome,omitempty"`
	Error    string `json:"error,omitempty"`
	ExitCode *int64 `json:"exit_code,omitempty"`
	Signal   string `json:"signal,omitempty"`
	Claimed  int64  `json:"claimed"`
	Launched int64  `json:"launched,omitempty"`
	Ended    int64  `json:"ended,omitempty"`
}

// ExportLink is a card that waits for another of the same board.
type ExportLink struct {
	Card  string `json:"card"`
	After string `json:"after"`
}

// Export gives the lines of a board's file but the last, without line ends; it
// stops at the first error of emit.
func Export(v View, b *Board, emit func(line []byte) error) error {
	return (&exporting{v: v, emit: emit}).board(b)
}

// ExportLive is an [Export] that shows the board as it is, with what stays in its
// fleet: where its runs work, its home, links to other boards, and events by their ids here.
func ExportLive(v View, b *Board, emit func(line []byte) error) error {
	return (&exporting{v: v, emit: emit, live: true}).board(b)
}

// ExportLiveCards is an [ExportLive] of some of the board's cards.
func ExportLiveCards(v View, b *Board, cards []string, emit func(line []byte) error) error {
	return (&exporting{v: v, emit: emit, live: true, some: true, cards: cards}).board(b)
}

type exporting struct {
	v     View
	emit  func(line []byte) error
	live  bool
	some  bool // only these cards
	cards []string
}

// each walks the cards that are exported.
func (x *exporting) each(b *Board, fn func(*Card) bool) {
	if !x.some {
		EachCard(x.v, b, fn)
		return
	}
	for _, id := range x.cards {
		if c := GetCard(x.v, id); c != nil && c.Board == b.Slug && !fn(c) {
			return
		}
	}
}

func (x *exporting) board(b *Board) error {
	v, emit := x.v, x.emit
	if b.Carry != "" {
		return Errorf(Unavailable, "board %s: its cards are being carried over to another version of its workflow", b.Slug).WithHint("try again in a moment")
	}
	head := ExportHead{Version: ExportVersion, Seq: v.Seq(), At: v.Time(), Slug: b.Slug, Prefix: b.Prefix, Label: b.Label, Zone: b.Zone, Keep: b.Keep,
		Params: b.Params, NextCard: b.NextCard}
	if f := GetFleet(v); f != nil {
		head.Fleet = f.ID
	}
	if d := GetWorkflowDoc(v, b.Slug, b.Workflow); d != nil {
		head.Workflow = string(d.Source)
	}
	if x.live {
		head.WorkflowVersion = b.Workflow
		if n := GetNode(v, b.Home); n != nil {
			head.Home = n.Name
		}
	}
	if err := emitJSON(emit, head); err != nil {
		return err
	}
	var err error
	x.each(b, func(c *Card) bool {
		err = x.card(c)
		return err == nil
	})
	if err != nil {
		return err
	}
	x.each(b, func(c *Card) bool {
		for _, p := range Parents(v, c.ID) {
			if (x.live || PrefixOfCard(p) == b.Prefix) && err == nil {
				err = emitJSON(emit, ExportLine{Link: &ExportLink{c.ID, p}})
			}
		}
		return err == nil
	})
	return err
}

func emitJSON(emit func([]byte) error, x any) error {
	line, err := json.Marshal(x)
	if err != nil {
		return err
	}
	return emit(line)
}

func (x *exporting) card(c *Card) error {
	v, emit := x.v, x.emit
	out := ExportCard{ID: c.ID, Title: c.Title, Body: GetBody(v, c.ID), Status: c.Status, Previous: c.Previous, Assignee: c.Assignee, Machine: c.Machine,
		Priority: c.Priority, Created: c.Created, Updated: c.Updated, Started: c.Started, Creator: exportActor(c.Creator), Runs: lastN(v, c), Failures: c.Failures,
		LastError: c.LastError, LastOutcome: c.LastOutcome, MaxRetries: c.MaxRetries, MaxRuntime: c.MaxRuntime, Model: c.Model, Provider: c.Provider,
		Effort: c.Effort, Skills: c.Skills, Goal: c.Goal, GoalMaxTurns: c.GoalMaxTurns, Tenant: c.Tenant, Branch: c.Branch, Workspace: c.Workspace,
		SubtaskOf: c.SubtaskOf, Labels: c.Labels, StartAfter: c.StartAfter, Blocks: c.Blocks, BlockKind: c.BlockKind, BlockReason: c.BlockReason,
		Needs: c.Attention.Check, NeedsText: c.Attention.Text, NeedsSince: c.Attention.Since, LastFree: c.LastFree, Kind: c.Kind}
	if r := GetRun(v, c.Run); r != nil { // its claim stays here: it is where it was started from
		out.Status = orElse(r.Source, c.Previous)
		if x.live {
			out.Now, out.Run = c.Status, r.ID
		}
	}
	if err := emitJSON(emit, ExportLine{Card: &out}); err != nil {
		return err
	}
	if err := x.events(c); err != nil {
		return err
	}
	var err error
	EachRun(v, c.ID, func(r *Run) bool {
		if r.State == RunEnded {
			err = emitJSON(emit, ExportLine{Run: &ExportRun{Card: c.ID, N: r.N, Role: r.Role, Slot: r.Slot, Profile: r.Profile, Harness: r.Harness,
				Surface: r.Surface, Model: r.Model, Source: r.Source, Status: r.Status, Outcome: r.Outcome, Error: r.Error, ExitCode: r.ExitCode, Signal: r.Signal,
				Claimed: r.Claimed, Launched: r.Launched, Ended: r.Ended}})
		}
		return err == nil
	})
	return err
}

// events writes a card's events oldest first: they are chained the other way
// round, so that their keys are gathered first.
func (x *exporting) events(c *Card) error {
	v, emit := x.v, x.emit
	var keys []string
	CardEvents(v, c, func(e *Event) bool {
		keys = append(keys, e.ID)
		return len(keys) < maxExportEvents
	})
	for _, key := range slices.Backward(keys) {
		e := GetEvent(v, key)
		if e == nil {
			continue
		}
		out := ExportEvent{Card: c.ID, ID: orElse(e.Origin, EventID(e.ID)), Kind: e.Kind, At: e.At, Actor: exportActor(e.Actor), Payload: e.Payload,
			From: e.From, To: e.To, Said: e.Said, Text: e.Text}
		if r := GetRun(v, e.Run); r != nil && r.Card == c.ID && r.State == RunEnded {
			out.Run = r.N
		}
		if x.live {
			out.ID = EventID(e.ID)
		}
		if err := emitJSON(emit, ExportLine{Event: &out}); err != nil {
			return err
		}
	}
	return nil
}

// exportActor is who said something, without the node's id, which means nothing elsewhere.
func exportActor(a Actor) Actor { return Actor{Kind: a.Kind, Role: a.Role, Name: a.Name, Run: a.Run} }

// ParseExportHead reads the first line of a board's file.
func ParseExportHead(line []byte) (*ExportHead, *Error) {
	var probe struct {
		Version *int `json:"muster_board"`
	}
	if json.Unmarshal(line, &probe) != nil || probe.Version == nil {
		return nil, Errorf(Invalid, "line 1: this is no board's file").WithCheck("import").WithHint("make one with: muster board export BOARD FILE")
	}
	if *probe.Version != ExportVersion {
		return nil, Errorf(Invalid, "line 1: the file has format %d; this version reads %d", *probe.Version, ExportVersion).WithCheck("import")
	}
	h := new(ExportHead)
	if err := strict(line, h); err != nil {
		return nil, badLine(1, "%v", err)
	}
	return h, nil
}

func badLine(n int, format string, a ...any) *Error {
	return Errorf(Invalid, "line %d: %s", n, fmt.Sprintf(format, a...)).WithCheck("import").WithHint("nothing of it was imported")
}

package mcp

import (
	"context"
	"net/url"
	"strconv"
	"strings"

	"muster/board"
	"muster/cmd/muster/api"
)

type none struct{}

type oneBoard struct {
	Board string `json:"board,omitempty" jsonschema:"the board's name; left out: the usual one"`
}

type logArgs struct {
	Card string `json:"card" jsonschema:"the card's id, as d-12"`
	Run  int    `json:"run,omitempty" jsonschema:"its N-th run; left out: the newest"`
	Tail int    `json:"tail,omitempty" jsonschema:"so many bytes of its end, up to 60000; left out: 8000"`
}

type diffArgs struct {
	Card string `json:"card" jsonschema:"the card's id, as d-12"`
	Stat bool   `json:"stat,omitempty" jsonschema:"true: only which files, and how much"`
}

type eventsArgs struct {
	Card  string `json:"card,omitempty" jsonschema:"only of this card"`
	Board string `json:"board,omitempty" jsonschema:"only of this board"`
	Kind  string `json:"kind,omitempty" jsonschema:"only of this kind"`
	Last  int    `json:"last,omitempty" jsonschema:"the newest so many, up to 100; left out: 20"`
}

type pauseArgs struct {
	Board string `json:"board,omitempty" jsonschema:"this board; left out: the whole fleet"`
	Why   string `json:"why" jsonschema:"why, for people"`
}

type resumeArgs struct {
	Board string `json:"board,omitempty" jsonschema:"this board; left out: the whole fleet"`
}

// boardTools are what a manager's assistant sees besides cards.
func (s *server) boardTools() {
	tool(s, "status", "The fleet at a glance: machines, boards, sessions, pauses, alarms, and some of what needs a person.", reads, func(ctx context.Context, _ none) (any, error) {
		return get[api.Status](ctx, s, "/v1/status", nil)
	})
	tool(s, "attention", "All that needs a person: blocked cards, reviews, sessions that ask or are at a limit.", reads, func(ctx context.Context, in oneBoard) (any, error) {
		q := url.Values{}
		if in.Board != "" {
			q.Set("board", in.Board)
		}
		return get[api.Needs](ctx, s, "/v1/attention", q)
	})
	tool(s, "boards", "The boards, each with how many cards are in which status, and its profiles.", reads, func(ctx context.Context, _ none) (any, error) {
		list, err := get[[]api.Board](ctx, s, "/v1/boards", nil)
		return map[string]any{"boards": list}, err
	})
	tool(s, "workflow", "A board's workflow as YAML: its statuses, who may say which event when, and its profiles.", reads, func(ctx context.Context, in oneBoard) (any, error) {
		w, err := get[api.Workflow](ctx, s, "/v1/boards/"+url.PathEscape(s.boardOf(in.Board))+"/workflow", nil)
		return w.YAML, err
	})
	tool(s, "runs", "The attempts at a card, the newest 20: on which machine, how each ended, and why.", reads, func(ctx context.Context, in oneCard) (any, error) {
		list, err := get[[]api.Run](ctx, s, "/v1/cards/"+url.PathEscape(in.Card)+"/runs", nil)
		return map[string]any{"runs": attemptsOf(list)}, err
	})
	tool(s, "log", "The end of what a card's session printed.", reads, s.log)
	tool(s, "diff", "What a card has changed in its worktree, against what its branch began at.", reads, func(ctx context.Context, in diffArgs) (any, error) {
		d, err := get[api.Diff](ctx, s, "/v1/cards/"+url.PathEscape(in.Card)+"/diff", url.Values{"stat": {strconv.FormatBool(in.Stat)}})
		return "branch " + d.Branch + " on " + d.Machine + "\n" + d.Text, err
	})
	tool(s, "events", "What happened, newest last.", reads, func(ctx context.Context, in eventsArgs) (any, error) {
		if in.Last <= 0 {
			in.Last = 20
		}
		q := url.Values{"last": {strconv.Itoa(min(in.Last, maxRows))}}
		for k, v := range map[string]string{"card": in.Card, "board": in.Board, "kind": in.Kind} {
			if v != "" {
				q.Set(k, v)
			}
		}
		list, err := get[[]api.Event](ctx, s, "/v1/events", q)
		return map[string]any{"events": list}, err
	})
	tool(s, "dispatch", "What would start now on a board, and what would not, and why. Nothing is started.", reads, func(ctx context.Context, in oneBoard) (any, error) {
		return get[any](ctx, s, "/v1/dryrun", url.Values{"board": {s.boardOf(in.Board)}})
	})
	tool(s, "pause", "Lets a board, or the whole fleet, start nothing new. Sessions that run go on.", ends, func(ctx context.Context, in pauseArgs) (any, error) {
		return s.do(ctx, board.VPause, board.Pause{Board: in.Board, Why: in.Why})
	})
	tool(s, "resume", "Lets a paused board, or the fleet, start again.", writes, func(ctx context.Context, in resumeArgs) (any, error) {
		return s.do(ctx, board.VResume, board.Pause{Board: in.Board})
	})
}

// log reads the end of a run's log: it is asked for from a byte on, and only who has it knows how long it is.
func (s *server) log(ctx context.Context, in logArgs) (any, error) {
	list, err := get[[]api.Run](ctx, s, "/v1/cards/"+url.PathEscape(in.Card)+"/runs", nil)
	if err != nil {
		return nil, err
	}
	if in.Run <= 0 {
		in.Run = len(list)
	}
	if in.Run > len(list) || len(list) == 0 {
		return nil, board.Errorf(board.NotFound, "card %s has %d runs", in.Card, len(list))
	}
	if in.Tail <= 0 {
		in.Tail = 8000
	}
	in.Tail = min(in.Tail, maxText)
	run := list[in.Run-1]
	var end []byte
	for from := int64(0); ; {
		x, err := get[api.LogChunk](ctx, s, "/v1/runs/"+url.PathEscape(run.ID)+"/log", url.Values{"from": {strconv.FormatInt(from, 10)}})
		if err != nil {
			return nil, err
		}
		end = append(end, x.Chunk...)
		if end = end[max(0, len(end)-in.Tail):]; x.EOF || len(x.Chunk) == 0 || x.Next <= from {
			break
		}
		from = x.Next
	}
	return "run " + run.ID + " on " + run.Node + ", " + run.State + " " + run.Outcome + "\n" + strings.ToValidUTF8(string(end), "?"), nil
}

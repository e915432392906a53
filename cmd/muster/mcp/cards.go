package mcp

import (
	"context"
	"errors"
	"net/url"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

// row is a card in a list: what one needs to choose.
type row struct {
	ID        string   `json:"id"`
	Title     string   `json:"title"`
	Status    string   `json:"status"`
	Board     string   `json:"board,omitempty"`
	Assignee  string   `json:"assignee,omitempty"`
	Priority  int64    `json:"priority,omitempty"`
	Run       string   `json:"run,omitempty"`
	WaitsFor  []string `json:"waits_for,omitempty"`
	SubtaskOf string   `json:"subtask_of,omitempty"`
	Reason    string   `json:"reason,omitempty"`    // why it waits
	Attention string   `json:"attention,omitempty"` // why it needs a person
}

func rowOf(c api.Card) row {
	r := row{ID: c.ID, Title: c.Title, Status: c.Status, Board: c.Board, Assignee: c.Assignee, Priority: c.Priority, WaitsFor: c.WaitsFor, SubtaskOf: c.SubtaskOf}
	if c.Run != nil {
		r.Run = *c.Run
	}
	if c.Reason != nil {
		r.Reason = c.Reason.Text
	}
	if c.Attention != nil {
		r.Attention = c.Attention.Text
	}
	return r
}

// rows is a list that says when it is not whole.
type rows struct {
	Cards []row  `json:"cards"`
	More  int    `json:"more,omitempty"`
	Note  string `json:"note,omitempty"`
}

func rowsOf(list []api.Card, most int) rows {
	if most <= 0 || most > maxRows {
		most = maxRows
	}
	x := rows{Cards: []row{}}
	for _, c := range list[:min(most, len(list))] {
		x.Cards = append(x.Cards, rowOf(c))
	}
	if x.More = len(list) - len(x.Cards); x.More > 0 {
		x.Note = "oldest first; narrow it with status, assignee or label to see the others"
	}
	return x
}

// shown is a card with its text and thread.
type shown struct {
	row
	Machine   string            `json:"machine,omitempty"`
	Labels    map[string]string `json:"labels,omitempty"`
	WaitedBy  []string          `json:"waited_by,omitempty"`
	Failures  int64             `json:"failures,omitempty"`
	LastError string            `json:"last_error,omitempty"`
	Workspace string            `json:"workspace,omitempty"`
	Branch    string            `json:"branch,omitempty"`
	Creator   string            `json:"creator"`
	CreatedAt time.Time         `json:"created_at"`
	Body      string            `json:"body"`
	Comments  []api.Comment     `json:"comments"`
	Older     int               `json:"older_comments,omitempty"` // left out
	Runs      []attempt         `json:"runs"`
}

// attempt is a run of a card.
type attempt struct {
	ID      string    `json:"id"`
	Role    string    `json:"role"`
	Profile string    `json:"profile"`
	Machine string    `json:"machine"`
	State   string    `json:"state"`
	Outcome string    `json:"outcome,omitempty"`
	Started time.Time `json:"started_at"`
	Error   string    `json:"error,omitempty"`
}

const (
	maxThread = 50
	maxRuns   = 20
)

func attemptsOf(list []api.Run) []attempt {
	out := []attempt{}
	for _, r := range list[max(0, len(list)-maxRuns):] {
		out = append(out, attempt{r.ID, r.Role, r.Profile, r.Node, r.State, r.Outcome, r.StartedAt, r.Error})
	}
	return out
}

func shownOf(d api.CardDetail) shown {
	older := max(0, len(d.Comments)-maxThread)
	return shown{row: rowOf(d.Card), Machine: d.Machine, Labels: d.Labels, WaitedBy: d.WaitedBy, Failures: d.Failures, LastError: d.LastError, Workspace: d.Workspace,
		Branch: d.Branch, Creator: d.Creator, CreatedAt: d.CreatedAt, Body: d.Body, Comments: d.Comments[older:], Older: older, Runs: attemptsOf(d.Runs)}
}

type oneCard struct {
	Card string `json:"card,omitempty" jsonschema:"a card's id, as d-12; left out: your own"`
}

type listArgs struct {
	Board     string   `json:"board,omitempty" jsonschema:"the board's name; left out: the usual one"`
	Status    []string `json:"status,omitempty" jsonschema:"only cards in one of these statuses, as ready, running, blocked, review, done"`
	Assignee  string   `json:"assignee,omitempty" jsonschema:"only cards of this profile"`
	Label     []string `json:"label,omitempty" jsonschema:"only cards with all of these labels: key, or key=value"`
	Attention bool     `json:"attention,omitempty" jsonschema:"only cards that need a person"`
	Limit     int      `json:"limit,omitempty" jsonschema:"at most so many, up to 100"`
}

type createArgs struct {
	Title     string            `json:"title" jsonschema:"one line that says what is to be done"`
	Body      string            `json:"body,omitempty" jsonschema:"Markdown: what, why, and how one can tell that it is done. Who works on it knows nothing but this"`
	Board     string            `json:"board,omitempty" jsonschema:"the board's name; left out: the usual one"`
	Assignee  string            `json:"assignee,omitempty" jsonschema:"the profile that works on it, as claude or codex; left out: the board's usual one"`
	After     []string          `json:"after,omitempty" jsonschema:"ids of cards that must be done first"`
	SubtaskOf string            `json:"subtask_of,omitempty" jsonschema:"id of the card that it is a part of"`
	Priority  int64             `json:"priority,omitempty" jsonschema:"higher starts first; 0 is usual"`
	Labels    map[string]string `json:"labels,omitempty" jsonschema:"labels, key to value"`
	Triage    bool              `json:"triage,omitempty" jsonschema:"true: only an idea yet, that somebody has to specify before it starts"`
}

// cardTools are those that read and file cards.
func (s *server) cardTools() {
	tool(s, "show", "A card: its body, status, links, comments (the newest 50) and runs. Read it before you work on it.", reads, func(ctx context.Context, in oneCard) (any, error) {
		id, err := s.card(in.Card)
		if err != nil {
			return nil, err
		}
		d, err := get[api.CardDetail](ctx, s, "/v1/cards/"+url.PathEscape(id), nil)
		if err != nil {
			return nil, err
		}
		return shownOf(d), nil
	})
	tool(s, "list", "Cards of a board, oldest first, with why each waits. Archived cards are left out.", reads, func(ctx context.Context, in listArgs) (any, error) {
		q := url.Values{"status": in.Status, "label": in.Label}
		if !s.cfg.Session || in.Board != "" {
			q.Set("board", s.boardOf(in.Board))
		}
		if in.Assignee != "" {
			q.Set("assignee", in.Assignee)
		}
		if in.Attention {
			q.Set("attention", "true")
		}
		list, err := get[[]api.Card](ctx, s, "/v1/cards", q)
		if err != nil {
			return nil, err
		}
		return rowsOf(list, in.Limit), nil
	})
	tool(s, "why", "Why a card stands where it does: what it waits for, since when, and what would let it go on.", reads, func(ctx context.Context, in oneCard) (any, error) {
		id, err := s.card(in.Card)
		if err != nil {
			return nil, err
		}
		return get[api.Why](ctx, s, "/v1/cards/"+url.PathEscape(id)+"/why", nil)
	})
	tool(s, "create", "Files a new card; answers its id. Use it for work that is not this card's: a fault you found, a step that can be done by itself. To split a card into parts that it waits for, use decompose.",
		writes, func(ctx context.Context, in createArgs) (any, error) {
			if in.Title == "" {
				return nil, errors.New("a card needs a title")
			}
			add := board.CardAdd{Board: in.Board, After: in.After, SubtaskOf: in.SubtaskOf, Triage: in.Triage, CardFields: board.CardFields{Title: &in.Title, Labels: in.Labels}}
			if !s.cfg.Session {
				add.Board = s.boardOf(in.Board)
			}
			for at, v := range map[**string]*string{&add.Body: &in.Body, &add.Assignee: &in.Assignee} {
				if *v != "" {
					*at = v
				}
			}
			if in.Priority != 0 {
				add.Priority = &in.Priority
			}
			return s.do(ctx, board.VCardAdd, add)
		})
}

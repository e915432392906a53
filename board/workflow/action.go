package workflow

import "muster/board/rule"

// Action is one step of a transition (workflow.md "Actions"): one of the types below. All actions of a
// transition happen in one transaction, in order.
type Action interface {
	Verb() string // its name in the file
	At() Pos
}

type action struct {
	verb string
	pos  Pos
}

func (a action) Verb() string { return a.verb }

func (a action) At() Pos { return a.pos }

// Claim gives the card a run (WFL-19).
type Claim struct {
	action
	Role string
	TTL  *rule.Expr // seconds; nil: DefaultClaim
}

// EndRun ends the card's run; without a run it is nothing.
type EndRun struct {
	action
	Outcome string
	Keep    bool // the session is not stopped, whoever says it
}

// RecordFailure counts a failure; at the breaker's limit the breaker's target replaces the transition's.
type RecordFailure struct {
	action
	Trip bool // first sets the count to limit - 1
}

// Plain is an action without an argument: reset_failures, unblock, promote_children, stop_run,
// cleanup_workspace, declare_agent, end_agents.
type Plain struct{ action }

// Block notes that and why a card needs something.
type Block struct {
	action
	Kind, Reason *rule.Text
}

// Comment adds a comment by the sender; an empty text adds none.
type Comment struct {
	action
	Text *rule.Text
}

// Set changes fields of the card (settableFields).
type Set struct {
	action
	Fields []Field // in the order of the file
}

// Field is a card's field and the expression of its value.
type Field struct {
	Name string
	Expr *rule.Expr
}

// Ask types a text into an idle session and counts it.
type Ask struct {
	action
	Text  *rule.Text
	As    string     // the event that is recorded
	Reset *rule.Expr // truth: the count is set to 0 first
}

// Send is send_to_actor: a text for the session of the card's run.
type Send struct {
	action
	Text *rule.Text
}

// Notify tells people: subscribers, creator, dependants, managers.
type Notify struct {
	action
	Whom []string
}

// Create files a card, or one for each item of a list.
type Create struct {
	action
	Each   *rule.Expr // nil: one card
	Fields []Field    // of the new card; "item" is in scope when Each is given
	Link   string     // before, after, or empty
}

// Link makes the card wait for others (After), or others for it (Before): card ids.
type Link struct {
	action
	After, Before *rule.Expr
}

// Session is close_session or forget_session.
type Session struct {
	action
	Slot *rule.Text
}

// RunHook is hook: NAME.
type RunHook struct {
	action
	Hook string
}

// Verbs of plain actions.
const (
	ResetFailures    = "reset_failures"
	Unblock          = "unblock"
	PromoteChildren  = "promote_children"
	StopRun          = "stop_run"
	CleanupWorkspace = "cleanup_workspace"
	DeclareAgent     = "declare_agent"
	EndAgents        = "end_agents"
	CloseSession     = "close_session"
	ForgetSession    = "forget_session"
)

// settableFields are the fields of a card that set and create may write, with the kind of value each takes.
var settableFields = map[string]rule.Kind{
	"title": rule.String, "body": rule.String, "assignee": rule.String, "machine": rule.String, "priority": rule.Number,
	"labels": rule.Map, "skills": rule.List, "model": rule.String, "max_runtime": rule.Number, "max_retries": rule.Number,
	"goal_mode": rule.Truth, "goal_max_turns": rule.Number, "workspace": rule.Any, "branch": rule.String, "start_after": rule.Time,
	"kind": rule.String, "tenant": rule.String,
}

// createFields are those that only a new card takes.
var createFields = map[string]rule.Kind{"subtask_of": rule.String, "triage": rule.Truth}

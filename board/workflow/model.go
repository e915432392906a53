package workflow

import (
	"fmt"

	"muster/board/rule"
)

// Pos is a place in a workflow file. File is empty for the file that was loaded, else what it extends:
// "default" or "board:SLUG".
type Pos struct {
	File         string
	Line, Column int // from 1; 0: not known
}

func (p Pos) String() string {
	s := fmt.Sprintf("%d:%d", p.Line, p.Column)
	if p.File != "" {
		s = p.File + ":" + s
	}
	return s
}

// Workflow says how a board works (WFL-01). Every expression and template in it is compiled.
type Workflow struct {
	Name                       string
	Defaults                   map[string]any        // params as the file gives them; Params adds a board's own values (WFL-14)
	Roles                      map[string]*rule.Expr // role to the profile that plays it; not listed: the card's assignee (WFL-12)
	Initial                    *rule.Text            // status of a new card
	Breaker                    *Breaker              // nil: failures are counted and trip nothing
	Migrate                    map[string]string     // where cards of a status go that this version no longer has (M-22)
	MigrateRoles, MigrateSlots map[string]string     // the same of roles and slots that live runs have
	Statuses                   map[string]*Status
	Order                      []string                 // names of the statuses in the order of the file
	On                         map[string][]*Transition // in any status, after the status's own (WFL-03)
	Dispatch                   Dispatch
	Hooks                      map[string]*Hook
	Profiles                   map[string]*Profile
	Harnesses                  map[string]*Harness // presets and own ones

	canonical []byte
	version   string
	keys      []Finding // literals that look like keys: told by Lint
	unread    []Finding // parameters that nothing reads: the same
	paramAt   map[string]Pos
}

// Stored names: what a status counts as for everything that knows no workflow (WFL-04).
var storedNames = []string{"triage", "todo", "ready", "running", "blocked", "review", "done", "cancelled", "archived"}

// Status is where a card can be.
type Status struct {
	Pos
	Name     string
	StoredAs string
	Enter    []Action // of every transition into it, after the transition's own
	Run      *RunSpec // what is executed while a card is here; nil: nothing
	On       map[string][]*Transition
}

// Transition is one way an event can be taken (WFL-05).
type Transition struct {
	Pos
	Path       string // where it stands: statuses.ready.on.start[0], or on.exited[2]
	Event      string
	By         []string   // roles that may send it; empty: anyone
	Guard      *rule.Expr // does not hold: the next transition is tried (WFL-08)
	Validators []Validator
	Target     *rule.Text // nil: the card stays where it is
	Do         []Action
}

// Admits says whether a sender with these roles may take the transition.
func (t *Transition) Admits(roles ...string) bool {
	if len(t.By) == 0 {
		return true
	}
	for _, by := range t.By {
		for _, r := range roles {
			if by == r {
				return true
			}
		}
	}
	return false
}

// Validator refuses a chosen transition with a reason for people (WFL-08): a named check, or When and Refuse.
type Validator struct {
	Pos
	Check  string // "respawn_guard", or empty
	When   *rule.Expr
	Refuse *rule.Text
}

// RunSpec says what is executed in a status (WFL-15).
type RunSpec struct {
	Pos
	Role    string
	Session *rule.Text // slot
	Skills  []string
	Prompt  *rule.Text
	Resume  *rule.Text // instead of Prompt for a session that goes on in the status it was in; nil: Prompt
	Limits  Limits
}

// Limits of a run, expressions in seconds. Values evaluates them.
type Limits struct {
	Runtime, Working, Age, Stale, Grace, Lease, Kill, Leave *rule.Expr
}

// Breaker is where record_failure sends a card at its limit.
type Breaker struct {
	Pos
	Limit  *rule.Expr
	Target string
	Kind   string // of the block; empty: none
}

// Dispatch is what the fleet starts by itself (WFL-17).
type Dispatch struct {
	Start    string // the event
	Eligible *rule.Expr
	Order    []OrderKey
	Capacity []Cap
}

// OrderKey is one key of the queue; compare values with rule.Compare (EXP-12).
type OrderKey struct {
	Expr *rule.Expr
	Desc bool
}

// Cap is a limit on how much runs at once (CAP-02).
type Cap struct {
	Pos
	Description string
	Counts      string     // runs, cards, sessions, turns, starts
	Scope       string     // fleet, board, machine, assignee, harness, model, card
	Where       Filter     // empty: everything
	Unless      Filter     // empty: nothing
	Max         *rule.Expr // nil value: no limit; 0 is one
	Reserve     *Reserve
}

// Reserve keeps places for others (CAP-15).
type Reserve struct {
	For   Filter     // candidates it is for; a candidate's status is the one it would enter
	Slots *rule.Expr // nil counts as 0 (CAP-17)
}

// Hook is a command on the node that has the card's workspace.
type Hook struct {
	Pos
	Name    string
	Run     []*rule.Text
	Env     map[string]Env
	Timeout *rule.Expr // seconds; nil: DefaultHookTimeout
}

// Env is one value of an environment: a template, or the name of a variable of the executing node.
type Env struct {
	Text *rule.Text
	From string
}

// Profile is who or what works: a harness with its settings. Parents are resolved.
type Profile struct {
	Pos
	Name        string
	Parent      string // as written; what it gives is already here
	Harness     string
	Surface     string // headless or pane
	Model       string
	Capacity    *int64 // nil: none of its own
	Placement   string // any or named
	Requires    *rule.Expr
	Prefer      *rule.Expr
	Fallback    []string
	Workspace   Workspace
	Account     string
	Permissions string // ask, edit, full
	Memory      int64  // bytes; 0: not counted
	Who         []string
	Args        []*rule.Text
	Env         map[string]Env
	Verdict     string // exit or explicit
}

// Workspace is where a profile works.
type Workspace struct {
	Kind string // scratch, dir, worktree
	Repo string // a git URL, a path, or a name each machine maps
	Path string // of kind dir

	// Of kind worktree.
	Base   string     // what a new branch starts from; "": the repository's own default
	Branch *rule.Text // nil: muster/ID
	Push   string     // where the branch goes when a run has ended by its own word; "": nowhere
	Bring  []string   // files that git ignores, brought along from a repository that is a folder of the machine

	Setup, Teardown string // shell commands; "": none
	Timeout         int64  // seconds each may take; 0: DefaultHookTimeout
}

// Numbers that hold where a file says nothing (M-35), in seconds.
const (
	DefaultGrace       = 60
	DefaultKill        = 5
	DefaultLeave       = 120
	DefaultClaim       = 900
	DefaultHookTimeout = 600
	DefaultSlot        = "worker"
)

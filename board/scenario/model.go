package scenario

import "muster/board/workflow"

// Scenario is one story: a board, its machines and cards, and what happens.
type Scenario struct {
	workflow.Pos
	Name     string
	Params   map[string]any // a board's own values
	Profiles map[string]any // more profiles, or others: over those of the workflow
	Zone     string         // IANA name; UTC without
	At       int64          // ms at which it begins
	Machines []Machine
	Cards    []Card
	Steps    []Step
}

// Machine is a node of the story; without any there is one, always on, with four slots.
type Machine struct {
	workflow.Pos
	Name           string
	AlwaysOn       bool
	Offline        bool
	Slots          int64
	Pressure       string
	Labels         map[string]string
	Tools          []string
	Harnesses      []string // nil: all that the workflow names
	HarnessesGiven bool
}

// Card is where a card is when the story begins.
type Card struct {
	workflow.Pos
	ID, Status, Previous, Title, Body string
	Assignee, Machine, Kind           string
	Creator                           string // person, run or platform
	LastError, SubtaskOf              string
	Priority, Failures                int64
	MaxRetries, MaxRuntime, GoalTurns *int64
	Goal                              bool
	Labels                            map[string]string
	Blocks                            map[string]int64
	After                             []string
	StartAfter                        *int64 // seconds after the beginning
	Run                               *Run
}

// Run is a card's run at the beginning.
type Run struct {
	Role, Source, Profile, Machine string
}

// Step is one thing that happens, and what must be so afterwards.
type Step struct {
	workflow.Pos
	After   float64 // seconds that pass before it
	Event   string  // "": only time passes
	Add     bool    // the event is a new card: payload has its fields
	Card    string
	By      string // platform, manager, member, or the role of the card's run
	Payload map[string]any
	Machine string // of a start; "" is the first
	Profile string // of a start by a manager
	Force   bool
	Why     string
	Then    []Check
}

// Check is one expectation: a key of `then` with its value.
type Check struct {
	workflow.Pos
	Key  string
	Want any // as the YAML gives it
}

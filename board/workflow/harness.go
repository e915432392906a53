package workflow

import "muster/board/rule"

// Harness says how a program is started and resumed: data, not code (architecture.md §4).
type Harness struct {
	Pos
	Name       string
	Preset     bool // comes with muster
	Unverified bool // its flags were gathered from documents and not yet tried against the program
	Headless   *Launch
	Pane       *Launch
	Prompt     string         // how the prompt reaches it: argument (in argv), stdin, typed (into the pane), file (MUSTER_BRIEF only)
	Session    SessionID      // how its session id is known
	Exit       map[int]string // meaning of an exit code: one of Meanings
	Signs      []Sign         // meaning of a line of its output
	Env        map[string]Env
	Scrub      []string   // variables of the node that must not reach it
	Ready      *rule.Text // a pane shows this constant text when it takes a prompt
	Verdict    string     // exit: the exit code is its word; explicit: only its commands count
}

// Launch is the argv of a surface.
type Launch struct {
	Fresh  []Arg
	Resume []Arg // nil: a session cannot be continued
}

// Arg is one element of an argv, or a group that stands only when When holds, once for every item of Each.
type Arg struct {
	Text *rule.Text // nil for a group
	When *rule.Expr
	Each *rule.Expr
	Args []*rule.Text
}

// SessionID says where a session's id comes from.
type SessionID struct {
	From string // minted: a UUID made before the launch; reported: read from its output; none
	JSON string // reported: the member of a JSON line of output that holds it ("thread_id")
}

// Sign is a pattern in a line of output and what it means.
type Sign struct {
	Matches string // constant pattern (RE2)
	Means   string // one of Meanings
}

// Meanings an exit or a line of output can have (payload.means of `exited`).
var meanings = []string{"completed", "crash", "rate_limit", "auth", "context", "stopped", "input", "turn_limit", "denied", "unavailable", "no_session"}

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
	Final      []Line         // the last lines of its work: after one of them it has `leave` to end
	Env        map[string]Env
	Scrub      []string   // variables of the node that must not reach it
	Seed       []Seed     // answers to what it asks first in a pane
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
	// A program that shows a person its screen tells nothing on its output: the file
	// in which it keeps its session does.
	Files *SessionFiles
}

// SessionFiles says where a program keeps its sessions: files whose first line is a
// JSON object with the session's id and the folder it works in.
type SessionFiles struct {
	Paths []string // patterns, from a variable of the session's environment: "$HOME/.x/*.jsonl"
	ID    string   // member of the first line, dots go inwards
	Dir   string
}

// Seed are settings of a program that answer what it would ask a person first. They are set before its pane is opened,
// where nothing stands yet. A member `$MUSTER_FOLDERS` stands for each folder that a node makes workspaces in.
type Seed struct {
	Permissions string   // only for a profile with these; "": for all
	Files       []string // the first whose variable is set: "$HOME/.x.json"
	JSON        string   // an object
}

// Line names a line of output that is a JSON object: members (dots go inwards) and the text each must have.
type Line map[string]string

// Sign is what to look for in the newest output, and what it means when it is there.
type Sign struct {
	Line    Line   // looked for in the newest such line; nil: in every line that is no JSON object, and not after exit code 0
	Where   Line   // what that line must have besides; if it has not, the sign is not there
	In      string // the member of that line that is looked at and shown; "": the whole line
	Matches string // constant pattern (RE2); "": the line alone is the sign
	Failed  bool   // only after an exit other than 0
	Means   string // one of meanings
}

// Meanings an exit or a line of output can have (payload.means of `exited`). Of a rate_limit the pattern may tell the
// end, by a group of the name reset_at (seconds or ms since the epoch, RFC 3339), reset_in (30, 5m, 2 days 3 hours)
// or reset_clock (3am, 15:04, Jan 2 3:04 PM), the last one with reset_zone.
var meanings = []string{"completed", "crash", "rate_limit", "auth", "context", "stopped", "input", "turn_limit", "denied", "unavailable", "no_session"}

// resetGroups are the groups of a sign's pattern that tell when a limit ends.
var resetGroups = []string{"reset_at", "reset_in", "reset_clock", "reset_zone"}

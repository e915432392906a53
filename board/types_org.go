package board

// FormatDirectory is the format of the state from which on agents are handed on to
// the directory of their organisation, and leave the state after their end.
const FormatDirectory = 3

// Org is an organisation whose directory is told of the fleet's agents (AGT-18..22):
// how far that came, and who does it. Where the directory is, and what lets a machine
// in there, stands on the machines alone (M-28).
type Org struct {
	Name            string
	Node            string // id of the machine that delivers; "": none is lent to
	Lease           uint64 // rises with each lending: what was done under an earlier one is not taken
	Lent            int64  // board time, ms
	Failures        int64  // passes of this lending that failed in a row
	Failing         int64  // since; 0: the last pass did not fail
	Error           string // of the last pass that failed
	Declared, Ended int64  // words that were taken, ever
	unknown
}

func (o *Org) fields(w *wire) {
	str(w, 1, &o.Name)
	str(w, 2, &o.Node)
	w.uint(3, &o.Lease)
	w.int(4, &o.Lent)
	w.int(5, &o.Failures)
	w.int(6, &o.Failing)
	str(w, 7, &o.Error)
	w.int(8, &o.Declared)
	w.int(9, &o.Ended)
}

// Kinds of words for a directory, in the order in which they are said.
const (
	HandDeclare = "declare"
	HandEnd     = "end"
)

// Hand is a word about an agent that its organisation's directory was not told yet.
type Hand struct {
	Org, Agent, Kind string
	At               int64 // it waits since
	Failures         int64 // of this word
	Next             int64 // not before, board time in ms; 0: at once
	Error            string
	unknown
}

func (h *Hand) fields(w *wire) {
	str(w, 1, &h.Org)
	str(w, 2, &h.Agent)
	str(w, 3, &h.Kind)
	w.int(4, &h.At)
	w.int(5, &h.Failures)
	w.int(6, &h.Next)
	str(w, 7, &h.Error)
}

// Verbs of directories.
const (
	VOrgSet  = "org.set"  // OrgSet: a manager says whose the fleet's agents are
	VOrgHold = "org.hold" // OrgHold: a machine tells for which organisations it holds credentials
	VOrgLend = "org.lend" // OrgLend: the leader says who delivers
	VOrgWord = "org.word" // OrgWord: who delivers tells what became of a word
)

// OrgSet says of which organisation the fleet's agents are; those of [LocalOrg] become its own.
type OrgSet struct {
	Org string `json:"org"`
}

// OrgHold are the names of the organisations that a machine can deliver for.
type OrgHold struct {
	Orgs []string `json:"orgs"`
}

// OrgLend gives a machine the lease of an organisation; "" nobody. Was is the lease that it saw.
type OrgLend struct {
	Org  string `json:"org"`
	Node string `json:"node,omitempty"`
	Was  uint64 `json:"was"`
}

// What became of a word.
const (
	HandBegin  = "begin"  // it is about to be said: answered whether it may be. From then on an end is not taken back
	HandDone   = "done"   // the directory took it
	HandFailed = "failed" // it did not, or did not answer
	HandForgot = "forgot" // it does not know the agent Forgot, which it was told of: that one is declared again first
)

// OrgWord is what the machine that delivers tells of one word.
type OrgWord struct {
	Org    string `json:"org"`
	Lease  uint64 `json:"lease"`
	Agent  string `json:"agent"`
	Kind   string `json:"kind"`
	What   string `json:"what"`
	Forgot string `json:"forgot,omitempty"`
	Error  string `json:"error,omitempty"`
	Wait   int64  `json:"wait,omitempty"` // ms until this word is tried again; 0: it holds up those behind it
}

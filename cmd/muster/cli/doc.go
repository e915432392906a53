// Package cli is the command line: what people and sessions type, one file per noun.
//
// It is a client of the API and knows no state of its own: what a verb needs is
// asked from the node, what it prints is made by pure functions of the answer.
//
// Guarantees. Exit codes are 0 done, 1 refused or failed, 2 usage, 3 no node or
// no leader in time, 4 outcome unknown. With --json stdout holds one envelope a
// line and nothing else. Text that came from a card, a session or a machine is
// never given raw to a terminal: control characters are made visible.
//
// Concurrency. [Main] runs one command; it is called once in a process, and by
// tests as often as they like.
package cli

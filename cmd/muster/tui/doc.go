// Package tui shows a board and its fleet in a terminal, and takes a person's words by key.
//
// Guarantees. It is a client of the API like any other: what it shows came from the node, and what may be said is
// decided there. What stands in cards, names and logs cannot steer the terminal. It tells when what it shows is old, and
// why, and comes back by itself. A request is made once, under its id, also over a leader that dies. Work is proportional to
// what changed and to the rows of the terminal, not to the cards of the board.
//
// Concurrency. The [model] is values in, values out, and one goroutine's; what reaches the node runs beside it
// and answers with messages.
package tui

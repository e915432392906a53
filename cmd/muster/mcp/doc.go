// Package mcp lets an agent use a board by the Model Context Protocol, over
// stdin and stdout.
//
// Guarantees. It is a client of the API like any other, with the rights of who
// starts it: in a session those of its run's secret, read anew for each call (a
// session that is kept goes on with another run); elsewhere those of the user of
// the node's socket, or of a token. A call whose outcome is not known is asked
// again under its id when the agent calls it again with the same words, so that
// nothing happens twice. A failure is a tool's error with what is wrong and what
// to do next, never the end of the server.
//
// Concurrency. Calls of one client may come at the same time.
package mcp

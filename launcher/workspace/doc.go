// Package workspace makes, checks, saves and clears the folders that sessions
// of one machine work in (WSP-01, M-26).
//
// Guarantees. A card has at most one folder of a kind on a machine, and a
// folder has one card. What is in it and nowhere else is never deleted: a
// folder goes only when git says that everything in it is committed and on a
// remote, and that is looked at again after the folder has been moved out of
// reach. A node killed at any line leaves a record from which the next start
// goes on: what was never handed to a session is made anew, everything else is
// kept as it is.
//
// Concurrency. A [Store] is safe for concurrent use; what is done to one card's
// folder is done one after the other, and so is what changes one clone.
package workspace

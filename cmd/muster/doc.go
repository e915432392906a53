// Muster is a board of work for a fleet of machines in which every machine is equal.
//
// This package only assembles: which room stands behind which verb of the
// command line, and what a process does with its signals and its log.
//
// Guarantees. A keeper (`muster keep`) is answered before anything else is
// set up: it stands on the path of every start.
//
// Concurrency. One process, one command.
package main

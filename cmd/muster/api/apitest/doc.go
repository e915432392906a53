// Package apitest is a fleet in memory behind the API: the twin of a node.
//
// Guarantees. Requests are decided by the real executor ([board.Exec]) on a
// state in memory, so what a face shows of it is what a node would show. What
// only a leader or a launcher knows (readings, rounds, logs) is what the test
// sets. Time stands still until the test moves it.
//
// Concurrency. A [Fleet] may be used from many goroutines.
package apitest

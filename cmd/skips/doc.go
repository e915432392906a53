// Command skips runs go test and says honestly what was not tested.
//
//	go run ./cmd/skips [-ci] [-v] -- -shuffle=on ./...
//
// What stands behind -- is given to "go test -json". The closing line of each
// package is shown as it comes, a failed test with all it said, and the end is
// the list of skipped tests with their reasons and one plain line:
//
//	N passed, N failed, N skipped
//
// A test skips with t.Skip("needs X: why"). With -ci a skip is a failure when
// this machine has X, when X is not in the table of needs (needs.go), or when
// the reason has another form: a skip nobody can judge is a test nobody runs.
//
// The exit code is 0 when nothing failed, 1 when something did, 2 for a
// mistake in the call. Everything runs in one goroutine.
package main

// Package directorytest is a directory of organisations for tests: small, in memory, and
// able to fail in the ways that directories do.
//
// Concurrency. All of it may be used from many goroutines.
package directorytest

// Package raftstoretest has a log in memory, and makes the state of a stopped store wrong in ways that
// only a comparison with other nodes can find, for tests.
package raftstoretest

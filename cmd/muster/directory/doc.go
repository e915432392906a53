// Package directory tells an organisation's directory of a fleet's agents: that there is
// one, and that it has ended (docs/directory.md).
//
// Guarantees. A word is said in one call, which ends after [Timeout] whatever the other
// side does. The same word has the same key whoever says it and however often, so that a
// directory takes it once. Nothing of an answer but its status and the ids in it is
// believed, and no error holds the address' secrets or the credentials.
//
// Concurrency. A [Service] may be used from many goroutines.
package directory

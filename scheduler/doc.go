// Package scheduler decides, on the leader: which cards start where, and which
// observed facts become events.
//
// [Plan] and [Place] are pure: the same view, readings and time give the same
// plan. [Loop] is the thin part around them: it runs for one term, wakes on the
// change feed, on due times and on changes of contact, and asks the executor,
// which checks everything again (M-03). It keeps no fact that the state does not
// have; what it remembers is an index, rebuilt when a term begins.
//
// Concurrency. A Loop's exported methods may be called from any goroutine; Run
// is called once.
package scheduler

// Package demo shows a fleet at work: three nodes as processes of their own on
// loopback, a board of cards that wait for each other, the leader killed -9 in
// the middle, everything finished.
//
// Guarantees. Nothing outside its own folder is touched, and only processes that
// it started are ended, each by its own id or keeper. It ends with a check of
// invariants 1, 2, 4 and 7 against what the machines and the sessions left
// behind ([Check]), which is an error when one does not hold.
//
// Concurrency. [Run] is one show; two at once do not disturb each other.
package demo

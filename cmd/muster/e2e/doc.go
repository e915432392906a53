// Package e2e proves the product from outside: real processes of the real
// binary, killed, stopped and cut off, spoken to as people do. It has no code of
// its own but tests.
//
// Each test ends by checking the invariants that apply: nothing acknowledged is
// lost or there twice, every session ran once, the states of all nodes have the
// same hash at the same Seq.
//
// TestChaos does all of it at once, by a seed: short in every run of the tests, for
// as long as wanted on five nodes by `make chaos`.
package e2e

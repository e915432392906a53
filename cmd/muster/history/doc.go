// Package history judges what users of a fleet saw: whether their operations have
// an order in which each saw what was before it.
//
// It is one judge for the simulated fleets (sim) and for real ones (e2e). What
// cannot be decided in time counts as wrong.
//
// Concurrency: values in, values out.
package history

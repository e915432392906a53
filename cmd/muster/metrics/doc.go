// Package metrics shows a node's figures to Prometheus.
//
// Guarantees. Every name stands in one table with its unit, its labels and what
// it means; a label never holds a text that people wrote, but for names of
// boards, statuses, profiles, machines and caps. What the figures of a node are
// (see [Facts]) is the node's affair; how the state is counted is a pure
// function of a reading ([Count]).
//
// Two kinds of figures. Those of a node (raft, times, refusals, outbox) differ
// from node to node and add up. Those of the fleet (cards, waits, sessions,
// caps, machines) are the same on every node, since any one of them answers for
// the fleet: take max by (...), never sum, of them over nodes.
//
// Concurrency. A [Source] is asked by one scrape at a time.
package metrics

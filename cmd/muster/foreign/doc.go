// Package foreign reads the cards of other systems (Hermes's kanban tables, a
// CSV table, JSON) and writes them as a board's file, which is imported like any
// other. It is values in, values out: no clock, no network, no disk.
//
// Nothing is dropped silently: what has no place here is counted in [Board.Left],
// by what it is, with an example. What cannot be meant is an error that names the
// row.
package foreign

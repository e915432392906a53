// Package scenario plays stories of cards through [board.Exec]: what a workflow does, told and checked
// in a file of steps, without a fleet (workflow.md, "Tests of a workflow").
//
// Guarantees. What is played is what a fleet would decide: the board, its cards and every step are requests to
// Exec on a state in memory. The machines of a scenario obey at once: a start that a step orders is taken and
// launched before the next step, a stop ends its session, a headless session whose own word ended its run leaves,
// and due times come when the clock passes them. The same file gives the same answer. Unknown keys are errors
// with line and column; sizes are bounded.
//
// Concurrency: pure values; a Player is used by one goroutine.
package scenario

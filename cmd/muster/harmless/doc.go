// Package harmless makes foreign text fit for a terminal: no card, comment, name or log can steer it.
//
// Guarantees. What these functions answer is valid UTF-8 and holds no control character, C1 included, none that
// reorders text or hides it, but the line ends and tabs that were asked for. Memory is bounded by the input, and for
// [Pane] by one line.
//
// Concurrency. The functions are pure. A [Pane] is one reader's.
package harmless

// Package tty carries a terminal from the machine that has it to the person who looks at it, over
// one connection of bytes, whatever lies between.
//
// Guarantees. What is typed reaches the program as it was typed and in order, or it does not reach it:
// never after the person was told that the link stopped, and never another program. A viewer that
// takes nothing costs the machine at most one window of bytes: the program's terminal is read no
// further, so that what shows it (tmux) drops what nobody saw and shows the newest. Who is silent
// for [Silence] is given up, on both sides.
//
// Concurrency. [Serve] and [Link.Run] start goroutines and return when all of them have ended. A
// [Link]'s other methods may be used from any goroutine.
package tty

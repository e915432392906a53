// Package tmux drives a tmux server of muster's own: terminals for sessions that
// people can watch.
//
// Guarantees. The server is never a user's: it has its own socket in a folder
// 0700, reads no configuration file and has no key but the one that detaches.
// Every command names its target exactly, by an id or by `=name:`. What a person
// or an agent wrote is never part of a command: it goes through a file into a
// buffer, and from there into the pane as it is, so it becomes no key, no
// format and no command. Programs are started from words, without a shell.
//
// Concurrency. A [Server] is safe for concurrent use. It keeps one control-mode
// client, which watches no pane: what programs print costs this process nothing.
package tmux

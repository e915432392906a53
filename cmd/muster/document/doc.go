// Package document turns a board into a folder of readable files and back: its
// settings and parameters, workflow, profiles, and one Markdown file a card with
// front matter and thread. It is values in, values out: no clock, no network, no disk.
//
// What a folder's files are is decided by the board alone: the same board gives
// the same bytes. [Render] and [Parse] are each other's inverse, whatever text a
// card holds. [Compare] holds three sides against each other: the files, the
// board as it is now, and the base, which are the hashes that an export left in the
// folder; so what changed on both sides is found field by field, and nothing is
// overwritten in silence.
package document

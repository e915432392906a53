// Package mirror keeps a board's documents in a git repository: one commit for each
// event of the board, by who caused it. How far it came stands in the repository
// itself, in the trailers of its newest commit, so that nothing is mirrored twice,
// whoever died where; and a commit is made of the event and the board alone, so that
// two machines, or one that was away, make the same.
//
// A branch only ever moves forward (no push is forced): who finds that another has
// pushed before takes that up, and goes on behind it.
package mirror

package cli

import (
	"muster/board"
	"muster/cmd/muster/api"
)

// follow is recover --follow: this stopped node gives its state up.
func (a *app) follow(home, why string, yes, more bool) error {
	switch {
	case more:
		return usagef("recover --follow takes --yes and --why, and no other flag or folder: it makes the node of --data fetch all it has from its fleet")
	case !yes:
		return board.Errorf(board.Refused, "nothing was changed: with --follow this node sets aside what it has in %s, and takes what the other nodes of its fleet have", home).
			WithHint("only when the others are right and this one is not: muster recover --follow --yes --why TEXT")
	}
	if err := a.deps.Follow(home, who(), orElse(why, "no reason given")); err != nil {
		return err
	}
	switch {
	case a.json:
		a.printJSON(map[string]any{"v": api.Version, "data": map[string]any{"data": home, "follows": true}})
	case !a.quiet:
		a.printf("%s gives up its state at its next start, and keeps it in raft.asideN\n\nnext:\n  muster --data %s up      # it fetches what its fleet has\n", oneLine(home), shellWord(home))
	}
	return nil
}

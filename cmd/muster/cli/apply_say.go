package cli

import (
	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/document"
)

// sayPlan shows what an apply did, would do, or is held up by. Then it fails.
func (a *app) sayPlan(out *applyAnswer) error {
	if out.DryRun {
		out.Steps = len(out.Plan.Steps)
	}
	if out.Problems == nil {
		out.Problems = []document.Problem{}
	}
	held := len(out.Problems) + len(out.Conflicts)
	var err *board.Error
	if held > 0 {
		err = board.Errorf(board.Refused, "%s: %d thing(s) stand in the way, and nothing was changed", out.Dir, held).WithCheck("conflict").
			WithHint("settle them in the files; or for all of them: --prefer dir, or --prefer board")
	}
	switch {
	case a.json:
		x := map[string]any{"v": api.Version, "data": out}
		if err != nil {
			x["error"] = err
		}
		a.printJSON(x)
		if err != nil {
			return codeError(ExitFailed)
		}
	case a.quiet:
		for _, c := range out.Changes {
			a.printf("%s\n", oneLine(c.File))
		}
	default:
		a.printPlan(out)
	}
	if err != nil {
		return err
	}
	return nil
}

func (a *app) printPlan(out *applyAnswer) {
	for _, p := range out.Problems {
		a.printf("%s %s%s\n", a.color(red, "cannot be:"), oneLine(p.String()), oneLine(mark(p.Hint != "", " ("+p.Hint+")")))
	}
	for _, c := range out.Conflicts {
		a.printf("%s %s %s: %s%s\n", a.color(red, "conflict: "), oneLine(c.File), oneLine(c.Field), oneLine(c.Why), oneLine(mark(c.Hint != "", " ("+c.Hint+")")))
		if c.Dir != nil || c.Board != nil {
			a.printf("             in the folder %s; on the board %s\n", oneLine(document.Show(c.Dir)), oneLine(document.Show(c.Board)))
		}
	}
	for _, c := range out.Changes {
		switch {
		case c.Field == "":
			a.printf("new card:  %s  %s\n", oneLine(c.File), oneLine(document.Show(c.To)))
		case c.Field == "comment":
			a.printf("comment:   %s  %s\n", oneLine(c.File), oneLine(document.Show(c.To)))
		default:
			a.printf("change:    %s  %s: %s, now %s\n", oneLine(c.File), oneLine(c.Field), oneLine(document.Show(c.From)), oneLine(document.Show(c.To)))
		}
	}
	for _, c := range out.Incoming {
		a.printf("%s %s  %s\n", a.color(dim, "from board:"), oneLine(c.File), oneLine(orElse(c.Field, "new card")))
	}
	for _, name := range out.Kept {
		a.printf("changed again meanwhile, and left as it is: %s\n", oneLine(name))
	}
	switch {
	case len(out.Problems)+len(out.Conflicts) > 0:
	case out.DryRun:
		a.printf("board %s would take %d change(s)\n", oneLine(out.Board), len(out.Changes))
	case out.Steps == 0 && len(out.Incoming) == 0:
		a.printf("board %s and %s say the same\n", oneLine(out.Board), oneLine(out.Dir))
	default:
		a.printf("board %s has taken %d change(s); %s is up to date\n", oneLine(out.Board), len(out.Changes), oneLine(out.Dir))
	}
}

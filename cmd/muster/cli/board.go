package cli

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/document"
)

func (a *app) boardCmd() *cobra.Command {
	return group("board", "boards of cards", a.boardCreate(), a.boardApply(), a.boardSet(), a.boardList(), a.boardShow(), a.boardExport(), a.boardImport(), a.boardMirror(), a.boardArchive())
}

func (a *app) boardCreate() *cobra.Command {
	var file string
	c := verb("create B [prefix=P] [label=L]", "make a board", 1, -1, func(c *cobra.Command, args []string) error {
		req := board.BoardCreate{Slug: args[0]}
		for _, s := range args[1:] {
			k, v, err := pair(s)
			if err != nil {
				return err
			}
			switch k {
			case "prefix":
				req.Prefix = v
			case "label":
				req.Label = v
			default:
				return usagef("board create takes prefix= and label=; the rest with: muster board set %s %s", args[0], s)
			}
		}
		if file != "" {
			src, err := a.lintFile(file)
			if err != nil {
				return err
			}
			req.YAML = string(src)
		}
		ans, err := a.do(c.Context(), board.VBoardCreate, req)
		return show(a, ans, err, func(r doneAnswer) []string { return []string{r.Slug} }, func(r doneAnswer) {
			a.printf("board %s is made; its cards are %s-1, %s-2, ...\n", r.Slug, r.Prefix, r.Prefix)
			a.hint("muster card add TITLE --board %s", r.Slug)
		})
	})
	c.Flags().StringVarP(&file, "file", "f", "", "its workflow (default: the default workflow)")
	return c
}

// source is a file's content; "-" is stdin.
// lintFile reads a workflow, prints what is wrong in it, and refuses errors
// before anything is sent. What extends a board is looked at by the fleet.
func (a *app) lintFile(file string) ([]byte, error) {
	src, err := a.source(file)
	if err != nil {
		return nil, fmt.Errorf("workflow: %w", err)
	}
	if strings.Contains(string(src), "extends: board:") {
		return src, nil
	}
	list, _, failed := lint(src)
	for _, f := range list {
		if failed || f.Check != "later" { // what a later version does is told by workflow lint
			fmt.Fprintf(a.io.Err, "%s:%s\n", visible(file), visible(f.text))
		}
	}
	if failed {
		return nil, board.Errorf(board.Invalid, "%s has mistakes; nothing was changed", file).WithCheck("workflow").WithHint("see: muster workflow show, and: muster workflow lint %s", file)
	}
	return src, nil
}

func (a *app) boardApply() *cobra.Command {
	var file, dir string
	var dry bool
	var o document.Options
	c := verb("apply [B] -f FILE", "save a board's workflow, or take a board's folder back", 0, 1, func(c *cobra.Command, args []string) error {
		switch {
		case file != "" && dir != "":
			return usagef("give -f FILE or --dir DIR, not both")
		case dir != "" && o.Prefer != "" && o.Prefer != "dir" && o.Prefer != "board":
			return usagef("--prefer %s: use dir or board", o.Prefer)
		case dir != "":
			return a.applyDir(c.Context(), a.folderBoard(args), dir, o, dry)
		case file == "":
			return usagef("which workflow? give -f FILE; or a board's folder: --dir DIR")
		}
		src, err := a.lintFile(file)
		if err != nil {
			return err
		}
		ans, err := a.do(c.Context(), board.VBoardApply, board.BoardApply{Board: a.boardArg(args), YAML: string(src), DryRun: dry})
		return show(a, ans, err, func(r doneAnswer) []string { return []string{r.Board} }, func(r doneAnswer) {
			moved := ""
			if r.Moved > 0 {
				moved = fmt.Sprintf("; %d card(s) moved by `migrate`%s", r.Moved, mark(r.InSteps, ", in steps"))
			}
			text := "board %s has workflow version %d%s\n"
			if r.DryRun {
				text = "board %s would take it as version %d%s\n"
			}
			a.printf(text, r.Board, r.Version, moved)
			for _, n := range r.Notes {
				a.printf("note: %s\n", visible(n))
			}
		})
	})
	c.Flags().StringVarP(&file, "file", "f", "", "the workflow (- is stdin)")
	c.Flags().BoolVar(&dry, "dry-run", false, "only look whether it would be taken; with --dir: show what would change")
	c.Flags().StringVar(&dir, "dir", "", "a folder of board export --dir: what was changed in it goes to the board")
	c.Flags().StringVar(&o.Prefer, "prefer", "", "with --dir: whose word counts where both sides changed: dir or board")
	c.Flags().BoolVar(&o.Put, "put", false, "with --dir: put cards to the status that their files say, past the workflow")
	c.Long = `save a board's workflow, or take a board's folder back

With --dir the folder is held against the board, field by field, by what board export --dir noted in it. What only the folder
has changed goes to the board, what only the board has changed comes to the folder. What both have changed, and what is the
board's own word (runs, who said what), is shown, and nothing is done before it is settled: in the files, or for all of it with
--prefer. A file without an id files a card; text below the last line of a card's file is a comment. The form: docs/folder.md.`
	return c
}

// folderBoard is the board that was named, if one was: a folder knows its own.
func (a *app) folderBoard(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return a.board
}

func (a *app) boardArg(args []string) string {
	if len(args) > 0 {
		return args[0]
	}
	return a.boardName()
}

func (a *app) boardSet() *cobra.Command {
	return verb("set [B] KEY=VALUE...", "change label, home, keep, zone or params.NAME (null removes)", 1, -1, func(c *cobra.Command, args []string) error {
		name := a.boardName()
		if !strings.Contains(args[0], "=") {
			name, args = args[0], args[1:]
		}
		if len(args) == 0 {
			return usagef("use: muster board set [B] KEY=VALUE...")
		}
		req := board.BoardSet{Board: name, Set: map[string]json.RawMessage{}}
		for _, s := range args {
			k, v, err := pair(s)
			if err != nil {
				return err
			}
			req.Set[k] = value(v)
		}
		ans, err := a.do(c.Context(), board.VBoardSet, req)
		return show(a, ans, err, func(r doneAnswer) []string { return []string{r.Board} }, func(r doneAnswer) { a.printf("board %s is set\n", r.Board) })
	})
}

func (a *app) boardList() *cobra.Command {
	var all bool
	c := verb("list", "the boards", 0, 0, func(c *cobra.Command, _ []string) error {
		q := url.Values{}
		if all {
			q.Set("all", "true")
		}
		ans, err := a.get(c.Context(), "/v1/boards", q)
		return show(a, ans, err, func(l []api.Board) (ids []string) {
			for _, b := range l {
				ids = append(ids, b.Slug)
			}
			return ids
		}, a.printBoards)
	})
	c.Flags().BoolVar(&all, "all", false, "archived ones as well")
	return c
}

func (a *app) boardArchive() *cobra.Command {
	var undo bool
	c := verb("archive B", "put a board aside: its cards stay to be read, nothing of it changes or starts", 1, 1, func(c *cobra.Command, args []string) error {
		ans, err := a.do(c.Context(), board.VBoardArchive, board.BoardArchive{Board: args[0], Undo: undo})
		return show(a, ans, err, func(r doneAnswer) []string { return []string{r.Board} }, func(r doneAnswer) {
			if undo {
				a.printf("board %s is back\n", r.Board)
				return
			}
			a.printf("board %s is archived\n", r.Board)
			a.hint("muster board list --all; back again: muster board archive %s --undo", r.Board)
		})
	})
	c.Flags().BoolVar(&undo, "undo", false, "take it back")
	return c
}

func (a *app) boardShow() *cobra.Command {
	var watch, yaml bool
	c := verb("show [B]", "a board with its cards", 0, 1, func(c *cobra.Command, args []string) error {
		name := a.boardArg(args)
		switch {
		case yaml:
			return a.showWorkflow(c.Context(), name)
		case watch:
			return a.watch(c.Context(), name)
		}
		ans, err := a.get(c.Context(), "/v1/boards/"+url.PathEscape(name), nil)
		return show(a, ans, err, func(b api.BoardDetail) []string { return cardIDs(b.List) }, func(b api.BoardDetail) { a.printBoard(&b) })
	})
	c.Flags().BoolVar(&watch, "watch", false, "show it again whenever it changes")
	c.Flags().BoolVar(&yaml, "yaml", false, "its workflow as written")
	return c
}

// printBoard prints the cards by status, in the workflow's order.
func (a *app) printBoard(b *api.BoardDetail) {
	a.printf("%s  %s  workflow %d\n", a.color(bold, oneLine(b.Slug)), oneLine(b.Label), b.Workflow)
	if b.Paused != "" {
		since := ""
		if b.PausedAt != nil {
			since = " (" + a.since(*b.PausedAt) + " ago)"
		}
		a.printf("%s %s%s\n", a.color(yellow, "paused by"), oneLine(b.Paused), since)
	}
	by := map[string][]api.Card{}
	var order []string
	order = append(order, b.Statuses...)
	for _, c := range b.List {
		if by[c.Status] == nil && !contains(order, c.Status) {
			order = append(order, c.Status)
		}
		by[c.Status] = append(by[c.Status], c)
	}
	if len(b.List) == 0 {
		a.printf("\nno cards; file one: muster card add TITLE\n")
	}
	for _, s := range order {
		list := by[s]
		if len(list) == 0 {
			continue
		}
		a.printf("\n%s (%d)\n", a.color(statusColor(list[0].Stored), oneLine(s)), len(list))
		skip := 0
		if board.Finished(list[0].Stored) && len(list) > 10 {
			skip = len(list) - 10
			a.printf("  ... %d older ones: muster card list --status %s\n", skip, oneLine(s))
		}
		for _, c := range list[skip:] {
			a.printf("  %-8s  %s%s\n", oneLine(c.ID), oneLine(clip(c.Title, 60)), a.color(dim, oneLine(aside(c))))
		}
	}
}

// aside is what a card's line says besides its title.
func aside(c api.Card) string {
	s := ""
	if c.Run != nil {
		s += "  run " + *c.Run
	}
	switch {
	case c.Attention != nil:
		s += "  ! " + clip(c.Attention.Text, 60)
	case c.Reason != nil:
		s += "  " + clip(c.Reason.Text, 60)
	}
	return s
}

func contains(l []string, s string) bool {
	for _, x := range l {
		if x == s {
			return true
		}
	}
	return false
}

package cli

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"muster/board"
)

func (a *app) boardExport() *cobra.Command {
	var force bool
	var dir, format string
	c := verb("export BOARD [FILE]", "a board as one file, or as a folder of readable files", 1, 2, func(c *cobra.Command, args []string) error {
		switch err := noFormat(dir, format, args); {
		case err != nil:
			return err
		case dir != "":
			return a.exportDir(c.Context(), args[0], dir, force)
		case format != "":
			return a.exportAs(c.Context(), args[0], format, strings.Join(args[1:], ""), force)
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		if len(args) == 1 || args[1] == "-" {
			if a.io.Terminal {
				return usagef("where to? give FILE, or let it flow: muster board export %s > FILE", args[0])
			}
			_, err := cl.Export(c.Context(), args[0], a.io.Out)
			return err
		}
		lines, err := a.exportTo(args[1], force, func(w io.Writer) (int, error) { return cl.Export(c.Context(), args[0], w) })
		if err != nil {
			return err
		}
		if !a.json && !a.quiet {
			a.printf("board %s is in %s (%d lines)\n", oneLine(args[0]), oneLine(args[1]), lines)
			a.hint("muster board import %s --as SLUG", args[1])
		}
		return nil
	})
	c.Flags().BoolVar(&force, "force", false, "replace FILE when it exists; with --dir: give up what was changed in the folder")
	c.Flags().StringVar(&dir, "dir", "", "write a folder of readable files, or bring that folder up to the board")
	c.Flags().StringVar(&format, "format", "", "json or markdown: to be read by programs or people, to FILE or the output")
	c.Long = `a board as one file, or as a folder of readable files

What belongs to this fleet stays: claims, sessions, machines' folders, subscriptions, webhooks. The file is lines of JSON;
its last line holds their number and hash.

With --format json it is one object, whose cards muster board import --from json reads as well; with --format markdown one text,
cards by status.

With --dir it is a folder: board.yaml (settings, parameters), workflow.yaml, profiles.yaml, and cards/ID.md for each card with
front matter, text and thread. Edit them, and take them back: muster board apply --dir DIR. What was changed in the folder and not
taken back is never replaced without --force. The form: docs/folder.md.`
	return c
}

// exportTo writes a file that is there whole or not at all.
func (a *app) exportTo(name string, force bool, write func(io.Writer) (int, error)) (lines int, err error) {
	if name, err = placeFor(name, force); err != nil {
		return 0, err
	}
	f, err := os.CreateTemp(filepath.Dir(name), "."+filepath.Base(name)+"-*")
	if err != nil {
		return 0, err
	}
	defer os.Remove(f.Name()) // no longer there when all went well
	if lines, err = write(f); err != nil {
		f.Close()
		return 0, err
	}
	if err := f.Sync(); err != nil {
		f.Close()
		return 0, err
	}
	if err := f.Close(); err != nil {
		return 0, err
	}
	return lines, os.Rename(f.Name(), name)
}

// placeFor is where a file of that name is written: behind links, and never in the place of what is no file. A file
// that is there may be the only backup: it is replaced only when that was said.
func placeFor(name string, force bool) (string, error) {
	if st, err := os.Lstat(name); err == nil && st.Mode()&os.ModeSymlink != 0 {
		real, err := filepath.EvalSymlinks(name)
		if err != nil {
			return "", board.Errorf(board.Invalid, "%s is a link that leads to nothing: %v", name, err).WithHint("give the file's own name")
		}
		name = real
	}
	st, err := os.Stat(name)
	switch {
	case errors.Is(err, os.ErrNotExist):
		return name, nil
	case err != nil:
		return "", err
	case st.IsDir():
		return "", board.Errorf(board.Invalid, "%s is a folder", name).WithHint("give the name of a file in it")
	case !st.Mode().IsRegular():
		return "", board.Errorf(board.Invalid, "%s is no file, and a file is not put in its place", name).WithHint("to let it flow there give - for the file: ... - > %s", name)
	case !force:
		return "", board.Errorf(board.Refused, "%s exists", name).WithCheck("exists").WithHint("give another name, or --force to replace it")
	}
	return name, nil
}

func (a *app) boardImport() *cobra.Command {
	var as, from string
	var dry, start bool
	c := verb("import FILE [--as SLUG]", "make a new board of an exported file, or of another system's cards", 1, 1, func(c *cobra.Command, args []string) error {
		if from != "" {
			return a.importFrom(c.Context(), from, args[0], as, dry, start)
		}
		if dry {
			return usagef("--dry-run goes with --from: a file of muster's own is checked as it is read, and counts only when it is whole")
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		in := a.io.In
		if args[0] != "-" {
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			if st, err := f.Stat(); err == nil && st.IsDir() {
				return board.Errorf(board.Invalid, "%s is a folder", args[0])
			}
			in = f
		}
		ans, err := cl.Import(c.Context(), as, start, in)
		return show(a, ans, err, func(r importAnswer) []string { return []string{r.Slug} }, func(r importAnswer) {
			a.printf("board %s is made: %d card(s) %s-..., %d event(s), %d attempt(s), %d link(s)\n", oneLine(r.Slug), r.Cards, oneLine(r.Prefix), r.Events, r.Runs, r.Links)
			a.afterImport(r.Slug, r.Paused)
		})
	})
	c.Flags().StringVar(&as, "as", "", "its name here (default: the one it had)")
	c.Flags().StringVar(&from, "from", "", "FILE is another system's: hermes, csv or json")
	c.Flags().BoolVar(&dry, "dry-run", false, "with --from: only say what would become of it")
	c.Flags().BoolVar(&start, "start", false, "its cards may start at once (default: the board comes paused)")
	c.Long = `make a new board of an exported file, or of another system's cards

Cards keep their ids where the board's prefix is free here; else they get the new board's. Nothing is seen of it before all
of it is there. A card that was running waits where it was started from.

The board comes paused, so that you can look before its cards start: muster resume --board B. With --start nothing holds them.

With --from the cards come from Hermes's tables, a CSV table or JSON; what has no place here is listed. Which column
becomes what, and how Hermes gives its tables: docs/import.md.`
	return c
}

// afterImport says what comes next: nothing starts on a board that came paused.
func (a *app) afterImport(slug string, paused bool) {
	if paused {
		a.printf("it is paused: nothing of it starts before muster resume --board %s\n", oneLine(slug))
	}
	a.hint("muster board show %s", slug)
}

type importAnswer struct {
	Slug   string `json:"slug"`
	Prefix string `json:"prefix"`
	Paused bool   `json:"paused"`
	Cards  int64  `json:"cards"`
	Events int64  `json:"events"`
	Runs   int64  `json:"runs"`
	Links  int64  `json:"links"`
}

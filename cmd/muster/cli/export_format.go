package cli

import (
	"context"
	"io"
	"net/url"
	"strings"

	"muster/board"
	"muster/cmd/muster/api"
)

// exportAs writes a board as one JSON object or one Markdown text, to a file or to where the output goes.
func (a *app) exportAs(ctx context.Context, slug, format, file string, force bool) error {
	if format != "json" && format != "markdown" {
		return usagef("--format %s: use json or markdown (without it: the file that muster board import reads)", format)
	}
	b, err := a.liveBoard(ctx, slug)
	if err != nil {
		return err
	}
	var raw []byte
	if format == "json" {
		raw, err = b.JSON()
	} else {
		var d api.BoardDetail
		if d, err = api.Decode[api.BoardDetail](a.get(ctx, "/v1/boards/"+url.PathEscape(b.Slug()), nil)); err == nil {
			raw = b.Markdown(d.Statuses)
		}
	}
	if err != nil {
		return err
	}
	if file == "" || file == "-" {
		if a.io.Terminal {
			raw = []byte(visible(string(raw)))
		}
		_, err := a.io.Out.Write(raw)
		return err
	}
	lines, err := a.exportTo(file, force, func(w io.Writer) (int, error) {
		_, err := w.Write(raw)
		return strings.Count(string(raw), "\n"), err
	})
	if err != nil {
		return err
	}
	if a.json {
		a.printJSON(map[string]any{"v": api.Version, "data": map[string]any{"board": b.Slug(), "file": file, "lines": lines, "cards": len(b.Cards)}})
	} else if !a.quiet {
		a.printf("board %s is in %s (%d lines)\n", oneLine(slug), oneLine(file), lines)
	}
	return nil
}

// noFormat refuses flags that mean different things together.
func noFormat(dir, format string, args []string) error {
	switch {
	case dir != "" && (len(args) > 1 || format != ""):
		return usagef("give one of FILE, --format and --dir: with --dir it is a folder, not one file")
	case dir != "" && strings.TrimSpace(dir) == "":
		return board.Errorf(board.Invalid, "--dir has no name")
	}
	return nil
}

package cli

import (
	"bytes"
	"context"
	"errors"
	"io"
	"path/filepath"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/document"
)

// dirAnswer is what an export to a folder says.
type dirAnswer struct {
	Board   string   `json:"board"`
	Dir     string   `json:"dir"`
	Cards   int      `json:"cards"`
	Written []string `json:"written"`
	Removed []string `json:"removed"`
	Kept    []string `json:"kept"` // changed in the folder, and left as they are
}

// liveBoard is a board as it is now.
func (a *app) liveBoard(ctx context.Context, slug string) (*document.Board, error) {
	cl, err := a.client()
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	if _, err := cl.ExportLive(ctx, slug, &buf); err != nil {
		return nil, err
	}
	return document.FromExport(api.NewBoardFile(&buf).Next, func(err error) bool { return errors.Is(err, io.EOF) })
}

// exportDir writes a board as a folder, or brings a folder up to the board.
func (a *app) exportDir(ctx context.Context, slug, dir string, force bool) error {
	b, err := a.liveBoard(ctx, slug)
	if err != nil {
		return err
	}
	out := dirAnswer{Board: b.Slug(), Dir: dir, Cards: len(b.Cards), Written: []string{}, Removed: []string{}, Kept: []string{}}
	files := b.Render()
	made, err := freshFolder(dir, files)
	if err != nil {
		return err
	}
	if made {
		for name := range files {
			out.Written = append(out.Written, name)
		}
	} else if err := a.exportInto(b, dir, force, &out); err != nil {
		return err
	}
	switch {
	case a.json:
		a.printJSON(map[string]any{"v": api.Version, "data": out})
	case a.quiet:
		a.printf("%s\n", oneLine(filepath.Clean(dir)))
	default:
		a.printf("board %s is in %s: %d card(s)%s\n", oneLine(slug), oneLine(dir), out.Cards, mark(!made && len(out.Written)+len(out.Removed) == 0, ", nothing new"))
		a.hint("edit the files, then: muster board apply --dir %s --dry-run", dir)
	}
	return nil
}

func (a *app) exportInto(b *document.Board, dir string, force bool, out *dirAnswer) error {
	f, err := openFolder(dir, true)
	if err != nil {
		return err
	}
	defer f.close()
	if f.base != nil && (f.base.Board != b.Slug() || f.base.Fleet != b.Fleet) {
		return board.Errorf(board.Refused, "%s is the folder of board %s%s", dir, f.base.Board, mark(f.base.Fleet != b.Fleet, " of another fleet")).WithCheck("folder").WithHint("give another folder")
	}
	if raw, err := f.content(applyFile, maxJournal); err == nil && len(raw) > 0 {
		return board.Errorf(board.Refused, "%s: an apply was broken off here", dir).WithCheck("folder").WithHint("end it first: muster board apply --dir %s", dir)
	}
	u := document.UpdateOf(b, f.files, f.base, func(name, hash string) bool { return force || f.known(name, hash) })
	if len(u.Kept) > 0 {
		return board.Errorf(board.Refused, "%d file(s) were changed in the folder and not taken back, %s among them", len(u.Kept), u.Kept[0]).WithCheck("changed").
			WithHint("take them back: muster board apply --dir %s; or --force gives what you changed up", dir)
	}
	if len(u.Write)+len(u.Remove) > 0 || f.base == nil || f.next != nil || string(f.base.Bytes()) != string(u.Files[document.BaseFile]) {
		if err := f.update(u); err != nil {
			return err
		}
	}
	out.Written, out.Removed = append(out.Written, u.Write...), append(out.Removed, u.Remove...)
	return nil
}

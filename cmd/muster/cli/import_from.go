package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"muster/cmd/muster/api"
	"muster/cmd/muster/foreign"
)

// foreignAnswer is what an import of another system's cards says.
type foreignAnswer struct {
	Slug   string `json:"slug"`
	Prefix string `json:"prefix,omitempty"`
	DryRun bool   `json:"dry_run"`
	Paused bool   `json:"paused"`
	foreign.Counts
	Left []foreign.Left `json:"left"` // what has no place here
}

// importFrom makes a board of another system's cards, or only says what would become of them.
func (a *app) importFrom(ctx context.Context, from, file, as string, dry, start bool) error {
	slug := as
	if slug == "" {
		if slug = slugOf(file); slug == "" {
			return usagef("what is the board's name? give --as SLUG")
		}
	}
	src, err := a.source(file)
	if err != nil {
		if magic := head(file, 16); from == "hermes" && len(magic) == 16 { // a database is no text: what it is says more
			if _, is := foreign.Read(from, magic); is != nil && strings.Contains(is.Error(), "database") {
				return is
			}
		}
		return err
	}
	b, err := foreign.Read(from, src)
	if err != nil {
		return err
	}
	out := foreignAnswer{Slug: slug, DryRun: dry, Paused: !start, Counts: b.Counts(), Left: b.Left()}
	index := uint64(0)
	if !dry {
		lines, err := b.File(slug, a.io.Now().UnixMilli())
		if err != nil {
			return err
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		ans, err := cl.Import(ctx, slug, start, bytes.NewReader(lines))
		made, err := api.Decode[importAnswer](ans, err)
		if err != nil {
			return err
		}
		out.Prefix, out.Paused, index = made.Prefix, made.Paused, ans.Index
	}
	a.sayForeign(&out, index)
	return nil
}

func (a *app) sayForeign(out *foreignAnswer, index uint64) {
	switch {
	case a.json:
		a.printJSON(map[string]any{"v": api.Version, "index": index, "data": out})
		return
	case a.quiet:
		a.printf("%s\n", out.Slug)
		return
	}
	verb := "is made"
	if out.DryRun {
		verb = "would be made"
	}
	a.printf("board %s %s: %d card(s), %d event(s), %d attempt(s), %d link(s)\n", oneLine(out.Slug), verb, out.Cards, out.Events, out.Runs, out.Links)
	if len(out.Left) > 0 {
		a.printf("what has no place here:\n")
		for _, l := range out.Left {
			a.printf("  %4d  %s%s\n", l.Count, oneLine(l.What), mark(l.Example != "", fmt.Sprintf(" (e.g. %s)", oneLine(l.Example))))
		}
	}
	if !out.DryRun {
		a.afterImport(out.Slug, out.Paused)
	}
}

// head is a file's first bytes, as far as it has them.
func head(file string, n int) []byte {
	f, err := os.Open(file)
	if err != nil {
		return nil
	}
	defer f.Close()
	b := make([]byte, n)
	n, _ = io.ReadFull(f, b) // a shorter one is not what is looked for
	return b[:n]
}

// slugOf makes a board's name of a file's; "" when there is none in it.
func slugOf(file string) string {
	name, _, _ := strings.Cut(filepath.Base(file), ".")
	name = strings.Trim(strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '-':
			return r
		case r == '_', r == ' ':
			return '-'
		}
		return -1
	}, strings.ToLower(name)), "-0123456789")
	return name[:min(len(name), 32)]
}

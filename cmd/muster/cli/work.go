package cli

import (
	"fmt"
	"net/url"
	"time"

	"github.com/dustin/go-humanize"
	"github.com/spf13/cobra"

	"muster/cmd/muster/api"
)

// diffCmd shows what a card has changed, from any machine.
func (a *app) diffCmd() *cobra.Command {
	var stat bool
	c := verb("diff [CARD]", "what a card has changed in its worktree, committed or not", 0, 1, func(c *cobra.Command, args []string) error {
		id, err := a.cardArg(args)
		if err != nil {
			return err
		}
		q := url.Values{}
		if stat {
			q.Set("stat", "true")
		}
		ans, err := a.get(c.Context(), "/v1/cards/"+url.PathEscape(id)+"/diff", q)
		return show(a, ans, err, func(d api.Diff) []string { return []string{d.Card} }, func(d api.Diff) {
			out := &logWriter{a: a, raw: !a.io.Terminal}
			out.write([]byte(d.Text))
			out.end()
			switch {
			case d.Cut:
				fmt.Fprintf(a.io.Err, "muster: the diff is longer than %d bytes; see the rest on %s in %s\n", len(d.Text), oneLine(d.Machine), oneLine(d.Path))
			case d.Text == "":
				fmt.Fprintf(a.io.Err, "muster: %s has changed nothing on branch %s (%s: %s)\n", oneLine(d.Card), oneLine(d.Branch), oneLine(d.Machine), oneLine(d.Path))
			}
		})
	})
	c.Flags().BoolVar(&stat, "stat", false, "files and numbers of lines only")
	return c
}

// gcTime is how long a gc may take unless --timeout says otherwise: it walks
// folders and asks remotes.
const gcTime = 10 * time.Minute

func (a *app) gcCmd() *cobra.Command {
	o := api.GcOptions{}
	c := verb("gc", "let the workspaces on this machine go that no card needs; what is nowhere else stays", 0, 0, func(c *cobra.Command, _ []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		if !a.timeoutSet {
			cl.Timeout = gcTime
		}
		ans, err := cl.Post(c.Context(), "/v1/gc", o)
		return show(a, ans, err, func(l []api.GcItem) (paths []string) {
			for _, x := range l {
				if x.Gone {
					paths = append(paths, x.Path)
				}
			}
			return paths
		}, func(l []api.GcItem) { a.printGc(l, o.DryRun) })
	})
	c.Flags().BoolVar(&o.DryRun, "dry-run", false, "only say what would go, and what stays")
	c.Flags().BoolVar(&o.Scratch, "scratch", false, "delete the files of scratch folders of finished cards, too")
	return c
}

func (a *app) printGc(l []api.GcItem, dry bool) {
	t := a.table("CARD", "KIND", "SIZE", "WHAT", "PATH", "WHY")
	var freed, kept int64
	for _, x := range l {
		what := cell{"stays", plain}
		switch {
		case x.Gone && dry:
			what = cell{"would go", green}
		case x.Gone:
			what = cell{"gone", green}
		}
		if x.Gone {
			freed += x.Size
		} else {
			kept += x.Size
		}
		t.row(orDash(x.Card), x.Kind, humanize.Bytes(uint64(x.Size)), what, x.Path, x.Why)
	}
	if len(l) == 0 {
		a.printf("no workspaces on this machine\n")
		return
	}
	t.print(a.io.Out)
	a.printf("%s %s, %s stay\n", humanize.Bytes(uint64(freed)), map[bool]string{true: "would go", false: "went"}[dry], humanize.Bytes(uint64(kept)))
}

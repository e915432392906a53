package cli

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

// CheckReport is what a look at a stopped node's store found.
type CheckReport struct {
	Path   string   `json:"path"`
	Facts  []Fact   `json:"facts"`
	Faults []string `json:"faults"`
}

// Fact is one line of a report.
type Fact struct {
	Name string `json:"name"`
	Text string `json:"text"`
}

func (a *app) checkCmd() *cobra.Command {
	return verb("check DATA", "look whether a stopped node's data, a copy of it, or a backup is whole", 0, 1, func(_ *cobra.Command, args []string) error {
		path, err := a.home()
		if len(args) > 0 {
			path, err = args[0], nil
		}
		if err != nil {
			return err
		}
		r, err := a.deps.Check(path)
		if err != nil {
			return err
		}
		if a.json {
			a.printJSON(map[string]any{"v": api.Version, "data": r})
		} else if !a.quiet {
			rows := make([][2]string, len(r.Facts))
			for i, f := range r.Facts {
				rows[i] = [2]string{f.Name, f.Text}
			}
			a.fields(rows)
		}
		if len(r.Faults) == 0 {
			if !a.json && !a.quiet {
				a.printf("%s\n", a.color(green, "all is well"))
			}
			return nil
		}
		if !a.json {
			for _, f := range r.Faults {
				fmt.Fprintf(a.io.Err, "fault: %s\n", visible(f))
			}
		}
		return codeError(ExitFailed)
	})
}

// DemoOptions are the flags of demo.
type DemoOptions struct {
	Keep     bool // leave the fleet running
	Out      io.Writer
	Terminal bool   // Out is one
	Plain    bool   // no colours
	Binary   string // the muster executable; "" is this one
	Seed     uint64 // 0 takes one
	Cards    int    // about how many; 0 is the demo's own number
	Dir      string // "" makes a temporary folder
}

func (a *app) demoCmd() *cobra.Command {
	o := DemoOptions{}
	c := verb("demo", "three nodes on this machine, a board of cards, one node killed in the middle", 0, 0, func(c *cobra.Command, _ []string) error {
		if a.deps.Demo == nil {
			return board.Errorf(board.Invalid, "this build has no demo")
		}
		o.Out, o.Terminal, o.Plain = a.io.Out, a.io.Terminal, a.noColor
		return a.deps.Demo(c.Context(), o)
	})
	f := c.Flags()
	f.BoolVar(&o.Keep, "keep", false, "leave the three nodes running, to look around")
	f.Uint64Var(&o.Seed, "seed", 0, "show the same again (default: another each time)")
	f.IntVar(&o.Cards, "cards", 0, "about so many cards")
	f.StringVar(&o.Dir, "dir", "", "in this folder (default: a temporary one)")
	return c
}

func (a *app) benchCmd() *cobra.Command {
	return &cobra.Command{Use: "bench [NAME...]", Short: "measure, beside a baseline in the same run", DisableFlagParsing: true, RunE: func(_ *cobra.Command, args []string) error {
		if a.deps.Bench == nil {
			return board.Errorf(board.Invalid, "this build has no benchmarks")
		}
		if code := a.deps.Bench(args, a.io.Out, a.io.Err); code != 0 {
			return codeError(code)
		}
		return nil
	}}
}

func (a *app) versionCmd() *cobra.Command {
	return verb("version", "this program's version, and that of the local node", 0, 0, func(c *cobra.Command, _ []string) error {
		node := ""
		if cl, err := a.client(); err == nil {
			cl.Timeout = 2 * time.Second
			ctx, cancel := context.WithTimeout(c.Context(), 2*time.Second)
			defer cancel()
			if i, err := api.Decode[api.Info](cl.Get(ctx, "/v1/info", nil)); err == nil {
				node = i.Version
			}
		}
		switch {
		case a.json:
			a.printJSON(map[string]any{"v": api.Version, "data": map[string]any{"version": a.deps.Version, "node": node, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH}})
		case a.quiet:
			a.printf("%s\n", a.deps.Version)
		default:
			a.printf("muster %s (%s, %s/%s)\n", a.deps.Version, runtime.Version(), runtime.GOOS, runtime.GOARCH)
			if node != "" && node != a.deps.Version {
				a.printf("the node here runs %s: muster restart brings it to this version\n", oneLine(node))
			}
		}
		return nil
	})
}

func (a *app) completionCmd() *cobra.Command {
	c := verb("completion SHELL", "completion for bash, zsh or fish", 1, 1, func(c *cobra.Command, args []string) error {
		root := c.Root()
		switch args[0] {
		case "bash":
			return root.GenBashCompletionV2(a.io.Out, true)
		case "zsh":
			return root.GenZshCompletion(a.io.Out)
		case "fish":
			return root.GenFishCompletion(a.io.Out, true)
		}
		return usagef("completion for %q is not here: use bash, zsh or fish", args[0])
	})
	c.ValidArgs = []string{"bash", "zsh", "fish"}
	return c
}

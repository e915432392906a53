package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"

	"muster/board/workflow"
	"muster/launcher/harnesstest"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	os.Exit(code)
}

// run is main with its outside as parameters; it returns the exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	if len(args) != 1 || args[0] != "install" && args[0] != "newest" {
		fmt.Fprintln(stderr, "usage: go run ./cmd/harness install|newest")
		return 2
	}
	dir, err := harnesstest.Folder()
	if err == nil {
		fmt.Fprintf(stdout, "agent programs in %s\n", dir)
		if args[0] == "install" {
			err = harnesstest.Install(ctx, dir, harnesstest.Pins(), stdout)
		} else {
			err = newest(ctx, dir, stdout)
		}
	}
	if err != nil {
		fmt.Fprintf(stderr, "harness: %v\n", err)
		return 1
	}
	return 0
}

// newest installs the newest version of each program and says what is different:
// the version, options that came and went, and what of it our presets use.
func newest(ctx context.Context, dir string, w io.Writer) error {
	missing := 0
	for _, p := range harnesstest.Pins() {
		now, err := harnesstest.Newest(ctx, p)
		if err != nil {
			return err
		}
		if now.Version == p.Version {
			fmt.Fprintf(w, "%s %s is the newest\n", p.Harness, p.Version)
			continue
		}
		fmt.Fprintf(w, "%s %s, pinned is %s\n", p.Harness, now.Version, p.Version)
		if err := harnesstest.Install(ctx, dir, []harnesstest.Pin{now}, w); err != nil {
			return err
		}
		preset := workflow.Default().Harnesses[p.Harness]
		help := harnesstest.NewHelp(dir, now)
		have, err := help.Options(ctx, preset)
		if err != nil {
			return err
		}
		had, err := harnesstest.Recorded(p)
		if err != nil {
			return err
		}
		for _, o := range had {
			if !slices.Contains(have, o) {
				fmt.Fprintf(w, "  gone: %s\n", o)
			}
		}
		for _, o := range have {
			if !slices.Contains(had, o) {
				fmt.Fprintf(w, "  new:  %s\n", o)
			}
		}
		bad, n, err := help.Check(ctx, preset)
		if err != nil {
			return err
		}
		for _, b := range bad {
			fmt.Fprintf(w, "  the preset uses what is not there: %s\n", b)
		}
		fmt.Fprintf(w, "  %d of %d options of the preset are as it wants them\n", n-len(bad), n)
		missing += len(bad)
	}
	if missing > 0 {
		return fmt.Errorf("%d options of presets are not there in the newest versions", missing)
	}
	return nil
}

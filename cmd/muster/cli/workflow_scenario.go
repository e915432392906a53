package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/board/scenario"
	"muster/board/workflow"
	"muster/cmd/muster/api"
)

// played is how one scenario went, as JSON.
type played struct {
	Name     string   `json:"name"`
	File     string   `json:"file"`
	Line     int      `json:"line"`
	OK       bool     `json:"ok"`
	Failures []string `json:"failures,omitempty"`
}

// covered is one transition and how often it was taken, as JSON.
type covered struct {
	Path   string `json:"path"`
	Source string `json:"source,omitempty"` // the workflow it is inherited from
	Line   int    `json:"line"`
	Says   string `json:"says"`
	Taken  int    `json:"taken"`
}

func (a *app) workflowTest() *cobra.Command {
	var coverage, all bool
	var files []string
	c := verb("test [FILE] [--scenarios FILE]...", "play a workflow's scenarios, without a node; the default workflow's own without a file", 0, 1, func(_ *cobra.Command, args []string) error {
		source, name := workflow.DefaultSource(), "default workflow"
		if len(args) > 0 {
			var err error
			if source, err = a.source(args[0]); err != nil {
				return fmt.Errorf("workflow: %w", err)
			}
			name = args[0]
		}
		p, err := scenario.NewPlayer(source)
		if err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				fmt.Fprintf(a.io.Err, "%s:%s\n", visible(name), visible(line))
			}
			return board.Errorf(board.Invalid, "%s has mistakes; nothing was played", name).WithCheck("workflow").WithHint("see: muster workflow lint %s", name)
		}
		list, err := a.playAll(p, args, files)
		if err != nil {
			return err
		}
		return a.tellPlayed(p, list, coverage, all)
	})
	c.Flags().StringArrayVar(&files, "scenarios", nil, "a file of scenarios (default: beside FILE, NAME.scenarios.yaml)")
	c.Flags().BoolVar(&coverage, "coverage", false, "list the transitions that were taken, and those that were not")
	c.Flags().BoolVar(&all, "all", false, "with --coverage: also those it inherits")
	return c
}

// playAll plays the scenarios of every file.
func (a *app) playAll(p *scenario.Player, args, files []string) (list []played, err error) {
	type input struct {
		name string
		src  []byte
	}
	var inputs []input
	switch {
	case len(args) == 0 && len(files) == 0:
		inputs = append(inputs, input{"default-scenarios.yaml", scenario.DefaultSource()})
	case len(files) == 0:
		ext := filepath.Ext(args[0])
		files = []string{strings.TrimSuffix(args[0], ext) + ".scenarios" + ext}
		fallthrough
	default:
		for _, f := range files {
			src, err := a.source(f)
			if errors.Is(err, fs.ErrNotExist) {
				return nil, board.Errorf(board.NotFound, "there are no scenarios %s", f).WithHint("write them there, or name another file: --scenarios FILE")
			}
			if err != nil {
				return nil, fmt.Errorf("scenarios: %w", err)
			}
			inputs = append(inputs, input{f, src})
		}
	}
	for _, in := range inputs {
		scenarios, report := scenario.Load(in.src)
		if err := report.Err(); err != nil {
			for _, line := range strings.Split(err.Error(), "\n") {
				fmt.Fprintf(a.io.Err, "%s:%s\n", visible(in.name), visible(line))
			}
			return nil, board.Errorf(board.Invalid, "%s has mistakes; nothing of it was played", in.name).WithCheck("scenario").WithHint("the format is in docs/workflows.md")
		}
		for _, s := range scenarios {
			x := played{Name: s.Name, File: in.name, Line: s.Line, OK: true}
			for _, f := range p.Play(s).Failures {
				x.OK, x.Failures = false, append(x.Failures, f.String())
			}
			list = append(list, x)
		}
	}
	return list, nil
}

func (a *app) tellPlayed(p *scenario.Player, list []played, coverage, all bool) error {
	failed := 0
	for _, x := range list {
		if !x.OK {
			failed++
		}
	}
	var lines []covered
	taken, inherited, inheritedTaken := 0, 0, 0
	for _, l := range p.Coverage() {
		if l.File != "" && !all {
			inherited++
			inheritedTaken += min(l.Taken, 1)
			continue
		}
		taken += min(l.Taken, 1)
		lines = append(lines, covered{Path: l.Path, Source: l.File, Line: l.Line, Says: l.Says, Taken: l.Taken})
	}
	if a.json {
		data := map[string]any{"ok": failed == 0, "scenarios": list}
		if coverage {
			data["transitions"] = lines
		}
		a.printJSON(map[string]any{"v": api.Version, "data": data})
	} else {
		a.printPlayed(list, failed)
		if coverage {
			a.printCoverage(lines, taken)
			if inherited > 0 {
				a.printf("and %d of %d that it inherits (--all)\n", inheritedTaken, inherited)
			}
		}
	}
	if failed > 0 {
		return codeError(ExitFailed)
	}
	return nil
}

func (a *app) printPlayed(list []played, failed int) {
	for _, x := range list {
		switch {
		case !x.OK:
			a.printf("%s %s (%s:%d)\n", a.color(red, "failed"), visible(x.Name), visible(x.File), x.Line)
			for _, f := range x.Failures {
				a.printf("  %s:%s\n", visible(x.File), visible(f))
			}
		case !a.quiet:
			a.printf("%s %s\n", a.color(green, "ok    "), visible(x.Name))
		}
	}
	if !a.quiet {
		a.printf("%d scenario(s), %d failed\n", len(list), failed)
	}
}

// printCoverage lists transitions, those that were not taken last: they are what one looks for.
func (a *app) printCoverage(lines []covered, taken int) {
	for _, want := range []bool{true, false} {
		for _, l := range lines {
			if (l.Taken > 0) != want {
				continue
			}
			at := fmt.Sprintf("line %d", l.Line)
			if l.Source != "" {
				at = l.Source + " " + at
			}
			if l.Taken > 0 {
				a.printf("taken %3d  %-34s %s\n", l.Taken, visible(l.Path), a.color(dim, at))
				continue
			}
			a.printf("%s  %-34s %s  %s\n", a.color(yellow, "not taken"), visible(l.Path), a.color(dim, at), visible(oneLine(l.Says)))
		}
	}
	a.printf("%d of %d transitions taken\n", taken, len(lines))
}

package cli

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/board/workflow"
	"muster/board/workflow/chart"
	"muster/cmd/muster/api"
)

func (a *app) workflowGraph() *cobra.Command {
	var format, file string
	c := verb("graph [FILE]", "a workflow as a picture, without a node; the default workflow without a file", 0, 1, func(_ *cobra.Command, args []string) error {
		source, name := workflow.DefaultSource(), "default workflow"
		if len(args) > 0 {
			var err error
			if source, err = a.source(args[0]); err != nil {
				return fmt.Errorf("workflow: %w", err)
			}
			name = args[0]
		}
		if format == "" && strings.HasSuffix(file, ".mmd") {
			format = "mermaid"
		}
		draw := map[string]func(*chart.Graph) string{"": (*chart.Graph).SVG, "svg": (*chart.Graph).SVG, "mermaid": (*chart.Graph).Mermaid}[format]
		if draw == nil {
			return usagef("--format %q: use svg or mermaid", format)
		}
		w, report := workflow.Load(source, nil)
		if w == nil {
			for _, f := range report.Findings {
				fmt.Fprintf(a.io.Err, "%s:%s\n", visible(name), visible(f.String()))
			}
			return board.Errorf(board.Invalid, "%s has mistakes; nothing was drawn", name).WithCheck("workflow").WithHint("see: muster workflow lint %s", name)
		}
		return a.tellDrawn(draw(chart.Of(w)), file, format)
	})
	c.Flags().StringVar(&format, "format", "", "svg (a picture, the default) or mermaid (text that many pages draw)")
	c.Flags().StringVarP(&file, "out", "o", "", "the file to write (default: standard output)")
	return c
}

func (a *app) tellDrawn(drawn, file, format string) error {
	if file == "" {
		if a.json {
			a.printJSON(map[string]any{"v": api.Version, "data": map[string]any{"format": orElse(format, "svg"), "text": drawn}})
			return nil
		}
		a.printf("%s", drawn)
		return nil
	}
	if err := os.WriteFile(file, []byte(drawn), 0o644); err != nil {
		return fmt.Errorf("graph: %w", err)
	}
	if a.json {
		a.printJSON(map[string]any{"v": api.Version, "data": map[string]any{"format": orElse(format, "svg"), "file": file}})
		return nil
	}
	a.printf("%s\n", visible(file))
	return nil
}

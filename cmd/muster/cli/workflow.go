package cli

import (
	"context"
	"fmt"
	"net/url"

	"github.com/spf13/cobra"

	"muster/board/workflow"
)

func (a *app) workflowCmd() *cobra.Command {
	return group("workflow", "what a board does", a.workflowLint(), a.workflowShow())
}

// finding is one thing that lint found.
type finding struct {
	Severity string `json:"severity"`
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Check    string `json:"check"`
	Path     string `json:"path,omitempty"`
	Message  string `json:"message"`
	Advice   string `json:"advice,omitempty"`
}

func (a *app) workflowLint() *cobra.Command {
	return verb("lint FILE", "what is wrong with a workflow, without a node", 1, 1, func(_ *cobra.Command, args []string) error {
		src, err := a.source(args[0])
		if err != nil {
			return fmt.Errorf("workflow: %w", err)
		}
		w, rep := workflow.Load(src, nil)
		found := rep.Findings
		if w != nil {
			found = append(found[:len(found):len(found)], workflow.Lint(w)...)
		}
		list, failed := []finding{}, rep.Failed()
		seen := map[string]bool{}
		for _, f := range found {
			if seen[f.String()] {
				continue
			}
			seen[f.String()] = true
			failed = failed || f.Severity == workflow.Error
			list = append(list, finding{string(f.Severity), f.Line, f.Column, f.Check, f.Path, f.Message, f.Advice})
			if !a.json {
				a.printf("%s:%s\n", visible(args[0]), visible(f.String()))
			}
		}
		switch {
		case a.json:
			a.printJSON(map[string]any{"v": 1, "data": map[string]any{"ok": !failed, "findings": list}})
		case len(list) == 0 && !a.quiet:
			a.printf("%s: nothing found\n", visible(args[0]))
		}
		if failed {
			return codeError(ExitFailed)
		}
		return nil
	})
}

func (a *app) workflowShow() *cobra.Command {
	var standard bool
	c := verb("show [B]", "a board's workflow as written; the default one without a node", 0, 1, func(c *cobra.Command, args []string) error {
		if standard {
			a.printf("%s", workflow.DefaultSource())
			return nil
		}
		return a.showWorkflow(c.Context(), a.boardArg(args))
	})
	c.Flags().BoolVar(&standard, "default", false, "the default workflow, which all extend")
	return c
}

func (a *app) showWorkflow(ctx context.Context, name string) error {
	ans, err := a.get(ctx, "/v1/boards/"+url.PathEscape(name)+"/workflow", nil)
	type doc struct {
		Version uint64 `json:"version"`
		YAML    string `json:"yaml"`
	}
	return show(a, ans, err, func(d doc) []string { return []string{fmt.Sprint(d.Version)} }, func(d doc) {
		a.printf("%s", visible(d.YAML))
		a.hint("what it extends: muster workflow show --default; change it: muster board apply %s -f FILE", name)
	})
}

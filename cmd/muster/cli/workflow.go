package cli

import (
	"context"
	"fmt"
	"net/url"
	"slices"

	"github.com/spf13/cobra"

	"muster/board/workflow"
	"muster/cmd/muster/api"
)

func (a *app) workflowCmd() *cobra.Command {
	return group("workflow", "what a board does", a.workflowLint(), a.workflowTest(), a.workflowGraph(), a.workflowShow())
}

// finding is one thing that lint found.
type finding struct {
	Severity string `json:"severity"`
	Source   string `json:"source,omitempty"` // the workflow it extends; "" is the file itself
	Line     int    `json:"line"`
	Column   int    `json:"column"`
	Check    string `json:"check"`
	Path     string `json:"path,omitempty"`
	Message  string `json:"message"`
	Advice   string `json:"advice,omitempty"`
	text     string
}

func (a *app) workflowLint() *cobra.Command {
	var all bool
	c := verb("lint FILE", "what is wrong with a workflow, without a node", 1, 1, func(_ *cobra.Command, args []string) error {
		src, err := a.source(args[0])
		if err != nil {
			return fmt.Errorf("workflow: %w", err)
		}
		list, elsewhere, failed := lint(src)
		if all {
			list, elsewhere = append(list, elsewhere...), nil
		}
		if a.json {
			a.printJSON(map[string]any{"v": api.Version, "data": map[string]any{"ok": !failed, "findings": append(list, elsewhere...)}})
		} else {
			for _, f := range list {
				a.printf("%s:%s\n", visible(args[0]), visible(f.text))
			}
			switch {
			case a.quiet:
			case len(elsewhere) > 0:
				a.printf("%s: %d finding(s); and %d note(s) about the workflow it extends, with --all\n", visible(args[0]), len(list), len(elsewhere))
			default:
				a.printf("%s: %d finding(s)\n", visible(args[0]), len(list))
			}
		}
		if failed {
			return codeError(ExitFailed)
		}
		return nil
	})
	c.Flags().BoolVar(&all, "all", false, "also what it inherits from the workflow it extends")
	return c
}

// lint looks at a workflow; warnings about what it extends are apart, an error never is.
func lint(src []byte) (list, elsewhere []finding, failed bool) {
	w, rep := workflow.Load(src, nil)
	found := slices.Clone(rep.Findings)
	if w != nil {
		found = append(found, workflow.Lint(w)...)
	}
	list, failed = []finding{}, rep.Failed()
	seen := map[string]bool{}
	for _, f := range found {
		text := f.String()
		if seen[text] {
			continue
		}
		seen[text] = true
		failed = failed || f.Severity == workflow.Error
		x := finding{string(f.Severity), f.File, f.Line, f.Column, f.Check, f.Path, f.Message, f.Advice, text}
		if f.File != "" && f.Severity != workflow.Error {
			elsewhere = append(elsewhere, x)
		} else {
			list = append(list, x)
		}
	}
	return list, elsewhere, failed
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

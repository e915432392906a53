package cli

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/cobra/doc"
	"github.com/spf13/pflag"

	"muster/board/rule"
	"muster/board/workflow"
)

// docsCmd writes what is made of the command line itself: for packages and for
// the repository, whose copy a test holds against it.
func (a *app) docsCmd() *cobra.Command {
	c := verb("docs DIR", "write man pages, completions and the reference into a folder", 1, 1, func(c *cobra.Command, args []string) error {
		if err := writeDocs(c.Root(), args[0], time.Unix(0, 0)); err != nil {
			return fmt.Errorf("docs: %w", err)
		}
		return nil
	})
	c.Hidden = true
	return c
}

// writeDocs fills dir/man, dir/completion and dir/reference.
func writeDocs(root *cobra.Command, dir string, date time.Time) error {
	man := filepath.Join(dir, "man")
	for _, d := range []string{man, filepath.Join(dir, "completion"), filepath.Join(dir, "reference")} {
		if err := os.MkdirAll(d, 0o755); err != nil {
			return err
		}
	}
	undated(root)
	if err := doc.GenManTree(root, &doc.GenManHeader{Title: "MUSTER", Section: "1", Source: "muster", Manual: "muster", Date: &date}, man); err != nil {
		return err
	}
	for name, write := range map[string]func(io.Writer) error{
		"completion/muster.bash": func(w io.Writer) error { return root.GenBashCompletionV2(w, true) },
		"completion/_muster":     root.GenZshCompletion,
		"completion/muster.fish": func(w io.Writer) error { return root.GenFishCompletion(w, true) },
		"reference/cli.md":       func(w io.Writer) error { return cliReference(w, root) },
		"reference/workflow.md":  func(w io.Writer) error { return workflowReference(w, workflow.Default()) },
	} {
		var b strings.Builder
		if err := write(&b); err != nil {
			return err
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(b.String()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// undated leaves out of the pages what is of this call.
func undated(c *cobra.Command) {
	c.DisableAutoGenTag = true
	for _, sub := range c.Commands() {
		undated(sub)
	}
}

const generated = "<!-- Written by `make docs` from the program itself; do not edit. -->\n\n"

// cliReference is every verb on one page.
func cliReference(w io.Writer, root *cobra.Command) error {
	var b strings.Builder
	b.WriteString("# The command line\n\n" + generated + indented(root.Long) + "\n## Flags of every verb\n\n")
	flagTable(&b, root.PersistentFlags())
	for _, g := range root.Groups() {
		fmt.Fprintf(&b, "\n## %s\n", strings.TrimSuffix(g.Title, ":"))
		for _, c := range root.Commands() {
			if c.GroupID == g.ID {
				verbPage(&b, c)
			}
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func verbPage(b *strings.Builder, c *cobra.Command) {
	if c.Hidden || !c.IsAvailableCommand() {
		return
	}
	fmt.Fprintf(b, "\n### %s\n\n", c.CommandPath())
	if !c.HasSubCommands() {
		fmt.Fprintf(b, "    %s\n\n", strings.TrimSuffix(c.UseLine(), " [flags]"))
	}
	b.WriteString(strings.TrimSuffix(indented(cmp.Or(c.Long, c.Short)), "\n") + "\n")
	if c.Example != "" {
		fmt.Fprintf(b, "\n```\n%s\n```\n", strings.TrimSpace(strings.ReplaceAll("\n"+c.Example, "\n  ", "\n")))
	}
	if c.LocalNonPersistentFlags().HasAvailableFlags() {
		b.WriteString("\n")
		flagTable(b, c.LocalNonPersistentFlags())
	}
	for _, sub := range c.Commands() {
		verbPage(b, sub)
	}
}

// indented keeps lines of a text that are set in as they are.
func indented(text string) string {
	return strings.NewReplacer("<", "&lt;", ">", "&gt;").Replace(strings.TrimSpace(text)) + "\n"
}

func flagTable(b *strings.Builder, flags *pflag.FlagSet) {
	b.WriteString("| flag | |\n|---|---|\n")
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden || f.Name == "help" {
			return
		}
		kind, usage := pflag.UnquoteUsage(f)
		name := "--" + f.Name
		if f.Shorthand != "" {
			name = "-" + f.Shorthand + ", " + name
		}
		if kind != "" {
			name += " " + kind
		}
		fmt.Fprintf(b, "| `%s` | %s |\n", name, cellText(usage))
	})
}

// cellText is a text inside a table.
func cellText(s string) string {
	return strings.NewReplacer("|", "\\|", "\n", " ", "<", "&lt;", ">", "&gt;").Replace(s)
}

func code(s string) string {
	if s == "" {
		return ""
	}
	return "`" + strings.ReplaceAll(strings.ReplaceAll(s, "\n", " "), "|", "\\|") + "`"
}

// workflowReference is what the default workflow does, and what expressions may read.
func workflowReference(w io.Writer, wf *workflow.Workflow) error {
	var b strings.Builder
	b.WriteString("# The default workflow, and what a workflow may say\n\n" + generated +
		"How to write one: [workflows.md](../workflows.md). This page lists what the built-in workflow has, which all others extend (`muster workflow show --default`).\n\n## Parameters\n\n| parameter | default |\n|---|---|\n")
	params := wf.Params(nil)
	for _, k := range slices.Sorted(maps.Keys(params)) {
		text := "null"
		if params[k] != nil {
			text = fmt.Sprint(params[k])
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", k, code(text))
	}
	b.WriteString("\n## Statuses\n\n| status | stored as | run |\n|---|---|---|\n")
	for _, name := range wf.Order {
		s, run := wf.Statuses[name], ""
		if s.Run != nil {
			run = "role `" + s.Run.Role + "`"
		}
		fmt.Fprintf(&b, "| `%s` | `%s` | %s |\n", name, s.StoredAs, run)
	}
	b.WriteString("\n## Transitions\n\nIn the order in which they are tried. Those of *any* come after the status's own.\n\n| in | event | by | guard | to |\n|---|---|---|---|---|\n")
	for _, name := range wf.Order {
		transitionRows(&b, "`"+name+"`", wf.Statuses[name].On)
	}
	transitionRows(&b, "*any*", wf.On)
	b.WriteString("\n## Caps\n\n| cap | counts | of | at most |\n|---|---|---|---|\n")
	for _, c := range wf.Dispatch.Capacity {
		fmt.Fprintf(&b, "| %s | %s | %s | %s |\n", cellText(c.Description), c.Counts, c.Scope, code(c.Max.Source()))
	}
	b.WriteString("\n## Profiles\n\n| profile | harness | surface | workspace |\n|---|---|---|---|\n")
	for _, k := range slices.Sorted(maps.Keys(wf.Profiles)) {
		p := wf.Profiles[k]
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k, p.Harness, cmp.Or(p.Surface, "headless"), cmp.Or(p.Workspace.Kind, "scratch"))
	}
	b.WriteString("\n## Harnesses\n\n| harness | surfaces | prompt | verdict |\n|---|---|---|---|\n")
	for _, k := range slices.Sorted(maps.Keys(wf.Harnesses)) {
		h, surfaces := wf.Harnesses[k], []string{}
		if h.Headless != nil {
			surfaces = append(surfaces, "headless")
		}
		if h.Pane != nil {
			surfaces = append(surfaces, "pane")
		}
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", k, strings.Join(surfaces, ", "), h.Prompt, cmp.Or(h.Verdict, "explicit"))
	}
	fmt.Fprintf(&b, "\n## Times that hold where a file says nothing\n\n| | seconds |\n|---|---|\n| `grace` | %d |\n| `kill` | %d |\n| `leave` | %d |\n| `claim` | %d |\n| a hook's `timeout` | %d |\n",
		workflow.DefaultGrace, workflow.DefaultKill, workflow.DefaultLeave, workflow.DefaultClaim, workflow.DefaultHookTimeout)
	b.WriteString("\n## What expressions may read\n\n| variable | members |\n|---|---|\n")
	for _, name := range rule.ScopeNames() {
		if !strings.Contains(name, ".") {
			fmt.Fprintf(&b, "| `%s` | %s |\n", name, strings.Join(rule.Members(name), ", "))
		}
	}
	_, err := io.WriteString(w, b.String())
	return err
}

func transitionRows(b *strings.Builder, in string, on map[string][]*workflow.Transition) {
	for _, event := range slices.Sorted(maps.Keys(on)) {
		for _, t := range on[event] {
			to := "stays"
			if t.Target != nil {
				to = code(t.Target.Source())
			}
			fmt.Fprintf(b, "| %s | `%s` | %s | %s | %s |\n", in, event, cmp.Or(strings.Join(t.By, ", "), "anyone"), code(t.Guard.Source()), to)
		}
	}
}

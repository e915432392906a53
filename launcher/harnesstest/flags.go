package harnesstest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"time"

	"muster/board/workflow"
)

// Help is what a program says of itself: by command ("codex exec"), the text.
type Help struct {
	program string // path
	name    string
	texts   map[string]string
}

// NewHelp asks the program of a pin, below dir, when it is looked at.
func NewHelp(dir string, p Pin) *Help {
	return &Help{program: p.path(dir), name: p.Program, texts: map[string]string{}}
}

// helpLimit is how long a program may take to print its help.
const helpLimit = time.Minute

// text is the help of a command, asked for once. The program gets an empty home.
func (h *Help) text(ctx context.Context, command []string) (string, error) {
	key := strings.Join(command, " ")
	if s, ok := h.texts[key]; ok {
		return s, nil
	}
	home, err := os.MkdirTemp("", "muster-help")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(home)
	ctx, cancel := context.WithTimeout(ctx, helpLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, h.program, append(slices.Clone(command[1:]), "--help")...)
	cmd.Dir = home
	cmd.Env = []string{"HOME=" + home, "PATH=" + os.Getenv("PATH"), "COLUMNS=200", "NO_COLOR=1"}
	out, err := cmd.CombinedOutput() // some print it to the wrong side
	if err != nil {
		return "", fmt.Errorf("%s --help: %w: %s", key, err, out)
	}
	h.texts[key] = string(out)
	return string(out), nil
}

var (
	optionName = regexp.MustCompile(`^(--?[A-Za-z][\w-]*)(?:,\s*)?`)
	commandRow = regexp.MustCompile(`(?m)^\s+(?:[a-z-]+ )?([a-z][a-z-]+)(?:\s{2,}|\s+[<\[])`)
)

// options are the names of options in a help text, each with the words about it.
func options(help string) map[string]string {
	found := map[string]string{}
	var at []string
	for line := range strings.Lines(help) {
		rest := strings.TrimSpace(line)
		if strings.HasPrefix(rest, "-") && optionName.MatchString(rest) {
			at = nil
			for {
				m := optionName.FindStringSubmatch(rest)
				if m == nil {
					break
				}
				at = append(at, m[1])
				rest = strings.TrimPrefix(rest, m[0])
			}
		}
		for _, name := range at {
			found[name] += rest + "\n"
		}
	}
	return found
}

// commands are the names of commands in a help text.
func commands(help string) []string {
	_, rest, ok := strings.Cut(help, "Commands:\n")
	if !ok {
		return nil
	}
	rest, _, _ = strings.Cut(rest, "\n\n")
	var list []string
	for _, m := range commandRow.FindAllStringSubmatch(rest, -1) {
		list = append(list, m[1])
	}
	return list
}

// Use is an option as a preset uses it: of which command, with which value if it is constant.
type Use struct {
	Command []string
	Option  string
	Value   string
}

// uses are all options that one argv of a preset can have, under every condition.
func (h *Help) uses(ctx context.Context, argv []workflow.Arg) ([]Use, error) {
	command := []string{h.name}
	var list []Use
	for _, words := range words(argv)[1:] {
		for i, word := range words {
			if strings.HasPrefix(word, "-") && len(word) > 1 {
				name, value, joined := strings.Cut(word, "=")
				if !joined && i+1 < len(words) && !strings.HasPrefix(words[i+1], "-") {
					value = words[i+1]
				}
				list = append(list, Use{slices.Clone(command), name, value})
				continue
			}
			if len(words) > 1 { // a value: commands stand alone
				continue
			}
			text, err := h.text(ctx, command)
			if err != nil {
				return nil, err
			}
			if slices.Contains(commands(text), word) {
				command = append(command, word)
			}
		}
	}
	return list, nil
}

// words are the constant words of an argv, those of a group together; "" stands for what is no constant.
func words(argv []workflow.Arg) [][]string {
	var list [][]string
	for _, a := range argv {
		if a.Text != nil {
			s, _ := a.Text.Constant()
			if n := len(list); n > 1 && len(list[n-1]) == 1 && strings.HasPrefix(list[n-1][0], "-") && !strings.HasPrefix(s, "-") && isValueOf(list[n-1][0]) {
				list[n-1] = append(list[n-1], s)
				continue
			}
			list = append(list, []string{s})
			continue
		}
		var group []string
		for _, t := range a.Args {
			s, _ := t.Constant()
			group = append(group, s)
		}
		list = append(list, group)
	}
	return list
}

// isValueOf tells that what follows an option in a row of its own is its value: all
// but the switches do so, and "-" alone is the standard input.
func isValueOf(option string) bool {
	return option != "-" && !strings.Contains(option, "=") && !slices.Contains(switches, option)
}

// switches are the options without a value that presets name in a row of their own.
var switches = []string{"--verbose", "--json", "--skip-git-repo-check", "--skip-trust", "--cli", "--accept-hooks"}

// Check says which options of a preset the program's help does not have, or not
// with the value that the preset gives.
func (h *Help) Check(ctx context.Context, preset *workflow.Harness) (bad []string, checked int, err error) {
	for _, launch := range []*workflow.Launch{preset.Headless, preset.Pane} {
		if launch == nil {
			continue
		}
		for _, argv := range [][]workflow.Arg{launch.Fresh, launch.Resume} {
			if len(argv) == 0 {
				continue
			}
			uses, err := h.uses(ctx, argv)
			if err != nil {
				return nil, 0, err
			}
			for _, u := range uses {
				checked++
				if reason := h.bad(ctx, u); reason != "" && !slices.Contains(bad, reason) {
					bad = append(bad, reason)
				}
			}
		}
	}
	return bad, checked, nil
}

func (h *Help) bad(ctx context.Context, u Use) string {
	command := strings.Join(u.Command, " ")
	text, err := h.text(ctx, u.Command)
	if err != nil {
		return err.Error()
	}
	about, ok := options(text)[u.Option]
	if !ok {
		return fmt.Sprintf("%s has no option %s", command, u.Option)
	}
	limited := strings.Contains(about, "choices:") || strings.Contains(about, "possible values:")
	if limited && u.Value != "" && !regexp.MustCompile(`\b`+regexp.QuoteMeta(u.Value)+`\b`).MatchString(about) {
		return fmt.Sprintf("%s %s takes no %q: %s", command, u.Option, u.Value, strings.Join(strings.Fields(about), " "))
	}
	return ""
}

// Options lists the options of the commands that a preset uses, one a line:
// "codex exec --json".
func (h *Help) Options(ctx context.Context, preset *workflow.Harness) ([]string, error) {
	if _, _, err := h.Check(ctx, preset); err != nil {
		return nil, err
	}
	var list []string
	for command, text := range h.texts {
		for name := range options(text) {
			list = append(list, command+" "+name)
		}
	}
	slices.Sort(list)
	return list, nil
}

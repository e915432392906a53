package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"muster/cmd/muster/api"
	"muster/cmd/muster/harmless"
)

// visible makes the control characters of foreign text visible; line ends and tabs stay.
func visible(s string) string { return harmless.Text(s) }

// oneLine is visible text for a table.
func oneLine(s string) string { return harmless.Line(s) }

// printJSON prints one line of JSON.
func (a *app) printJSON(v any) {
	e := json.NewEncoder(a.io.Out)
	e.SetEscapeHTML(false)
	_ = e.Encode(v)
}

func (a *app) printf(format string, args ...any) { fmt.Fprintf(a.io.Out, format, args...) }

// hint tells what to type next, to people.
func (a *app) hint(format string, args ...any) {
	if !a.json && !a.quiet {
		fmt.Fprintf(a.io.Err, "hint: %s\n", a.here(fmt.Sprintf(format, args...)))
	}
}

// musterVerb is a call of this program in a text for people.
var musterVerb = regexp.MustCompile(`(^|[^a-z/.-])muster ([a-z][a-z-]*)`)

// elsewhere are the verbs that a hint has people say with another folder, or on another machine.
var elsewhere = []string{"join", "up", "restore", "service"}

// here makes what a hint says work as it stands where this call worked: for the node of the folder that --data named.
func (a *app) here(text string) string {
	if !a.dataSet {
		return text
	}
	return musterVerb.ReplaceAllStringFunc(text, func(s string) string {
		before, name, _ := strings.Cut(s, "muster ")
		if !slices.Contains(a.verbs, name) || slices.Contains(elsewhere, name) {
			return s
		}
		return before + "muster --data " + oneLine(shellWord(a.data)) + " " + name
	})
}

// show prints an answer: as it came (--json), its ids (-q), or for people.
func show[T any](a *app, ans *api.Answer, err error, ids func(T) []string, human func(T)) error {
	if err != nil {
		return err
	}
	if a.json {
		data := ans.Data
		if len(data) == 0 {
			data = json.RawMessage("{}")
		}
		a.printJSON(api.Envelope{V: api.Version, Index: ans.Index, AgeMS: ans.AgeMS, Data: data})
		return nil
	}
	x, err := api.Decode[T](ans, nil)
	if err != nil {
		return err
	}
	if a.quiet {
		for _, id := range ids(x) {
			a.printf("%s\n", oneLine(id))
		}
		return nil
	}
	human(x)
	return nil
}

// Colours, by number.
const (
	plain  = ""
	red    = "31"
	green  = "32"
	yellow = "33"
	cyan   = "36"
	dim    = "2"
	bold   = "1"
)

func (a *app) color(c, s string) string {
	if c == plain || a.noColor || !a.io.Terminal || s == "" {
		return s
	}
	return "\x1b[" + c + "m" + s + "\x1b[0m"
}

// cell is a piece of a table.
type cell struct{ text, color string }

// table aligns rows. Cells are foreign text: they are made visible here.
type table struct {
	a    *app
	rows [][]cell
}

func (a *app) table(head ...string) *table {
	t := &table{a: a}
	row := make([]cell, len(head))
	for i, h := range head {
		row[i] = cell{h, dim}
	}
	t.rows = append(t.rows, row)
	return t
}

// row adds a row of strings and cells.
func (t *table) row(cells ...any) {
	row := make([]cell, len(cells))
	for i, c := range cells {
		switch c := c.(type) {
		case cell:
			row[i] = c
		default:
			row[i] = cell{text: fmt.Sprint(c)}
		}
	}
	t.rows = append(t.rows, row)
}

func (t *table) print(w io.Writer) {
	var width []int
	for _, row := range t.rows {
		for i := range row {
			row[i].text = oneLine(row[i].text)
			if i == len(width) {
				width = append(width, 0)
			}
			width[i] = max(width[i], utf8.RuneCountInString(row[i].text))
		}
	}
	for _, row := range t.rows {
		var b strings.Builder
		for i, c := range row {
			b.WriteString(t.a.color(c.color, c.text))
			if i < len(row)-1 {
				b.WriteString(strings.Repeat(" ", width[i]-utf8.RuneCountInString(c.text)+2))
			}
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

// age is a length of time as people say it, in one unit.
func age(d time.Duration) string {
	switch {
	case d < 0:
		return "0s"
	case d < 100*time.Second:
		return fmt.Sprintf("%ds", int(d.Seconds()))
	case d < 100*time.Minute:
		return fmt.Sprintf("%dm", int(d.Minutes()))
	case d < 48*time.Hour:
		return fmt.Sprintf("%dh", int(d.Hours()))
	}
	return fmt.Sprintf("%dd", int(d.Hours()/24))
}

func (a *app) since(t time.Time) string { return age(a.io.Now().Sub(t)) }

// clock is a moment for people, in their zone.
func clock(t time.Time) string { return t.Local().Format("2006-01-02 15:04:05") }

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func statusColor(stored string) string {
	switch stored {
	case "done":
		return green
	case "running":
		return cyan
	case "blocked":
		return red
	case "review", "triage":
		return yellow
	case "cancelled", "archived":
		return dim
	}
	return plain
}

func clip(s string, most int) string {
	if utf8.RuneCountInString(s) <= most {
		return s
	}
	r := []rune(s)
	return string(r[:most-1]) + "…"
}

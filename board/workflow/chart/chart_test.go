package chart

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"muster/board/workflow"
)

func load(t testing.TB, src []byte) *workflow.Workflow {
	t.Helper()
	w, report := workflow.Load(src, nil)
	if w == nil {
		t.Fatal(report)
	}
	return w
}

func standard(t testing.TB) *Graph { return Of(load(t, workflow.DefaultSource())) }

// box is a rectangle of the picture.
type box struct {
	what       string
	x, y, w, h float64
}

func (a box) meets(b box) bool {
	return a.x < b.x+b.w && b.x < a.x+a.w && a.y < b.y+b.h && b.y < a.y+a.h
}

// picture is what a test reads of an SVG: it must be well-formed XML.
type picture struct {
	width, height float64
	statuses      []box
	labels        []box
	texts         []box // estimated from the middle and the text
	curves        [][]float64
	style         string
}

func parse(t testing.TB, svg string) (p picture) {
	t.Helper()
	d := xml.NewDecoder(strings.NewReader(svg))
	var open []xml.StartElement
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return p
		}
		if err != nil {
			t.Fatalf("the picture is no XML: %v", err)
		}
		switch x := token.(type) {
		case xml.StartElement:
			open = append(open, x.Copy())
			p.element(x)
		case xml.EndElement:
			open = open[:len(open)-1]
		case xml.CharData:
			if len(open) == 0 {
				continue
			}
			switch last := open[len(open)-1]; last.Name.Local {
			case "style":
				p.style += string(x)
			case "text":
				p.text(last, string(x))
			}
		}
	}
}

func attr(e xml.StartElement, name string) string {
	for _, a := range e.Attr {
		if a.Name.Local == name {
			return a.Value
		}
	}
	return ""
}

func number(e xml.StartElement, name string) float64 {
	f, _ := strconv.ParseFloat(attr(e, name), 64)
	return f
}

func (p *picture) element(e xml.StartElement) {
	switch e.Name.Local {
	case "svg":
		p.width, p.height = number(e, "width"), number(e, "height")
	case "rect":
		b := box{attr(e, "data-status") + attr(e, "data-label"), number(e, "x"), number(e, "y"), number(e, "width"), number(e, "height")}
		if attr(e, "data-status") != "" {
			p.statuses = append(p.statuses, b)
		}
		if attr(e, "data-label") != "" {
			p.labels = append(p.labels, b)
		}
	case "path":
		if strings.HasPrefix(attr(e, "class"), "edge") {
			p.curves = append(p.curves, points(attr(e, "d")))
		}
	}
}

func (p *picture) text(e xml.StartElement, s string) {
	size := map[string]float64{"name": 14, "sub": 11, "label": 12, "event": 12, "to": 12}[strings.Fields(attr(e, "class"))[0]]
	if size == 0 {
		return
	}
	w := textWidth(s, size)
	x := number(e, "x")
	if c := attr(e, "class"); c != "event" && c != "to" {
		x -= w / 2
	}
	p.texts = append(p.texts, box{s, x, number(e, "y") - size*0.8, w, size})
}

// points follows a path in small steps: x, y, x, y, ...
func points(d string) (all []float64) {
	var at [2]float64
	fields := strings.Fields(strings.NewReplacer("M", " M ", "L", " L ", "C", " C ").Replace(d))
	take := func(i int) float64 { f, _ := strconv.ParseFloat(fields[i], 64); return f }
	for i := 0; i < len(fields); {
		switch fields[i] {
		case "M":
			at = [2]float64{take(i + 1), take(i + 2)}
			i += 3
		case "L":
			to := [2]float64{take(i + 1), take(i + 2)}
			all = append(all, between2(at, at, to, to)...)
			at, i = to, i+3
		case "C":
			to := [2]float64{take(i + 5), take(i + 6)}
			all = append(all, between2(at, [2]float64{take(i + 1), take(i + 2)}, [2]float64{take(i + 3), take(i + 4)}, to)...)
			at, i = to, i+7
		default:
			return nil
		}
	}
	return all
}

func between2(a, b, c, d [2]float64) (all []float64) {
	for s := 0.0; s <= 1; s += 0.1 {
		r := 1 - s
		for k := range 2 {
			all = append(all, r*r*r*a[k]+3*r*r*s*b[k]+3*r*s*s*c[k]+s*s*s*d[k])
		}
	}
	return all
}

// sound holds a picture against what doc.go promises.
func sound(t testing.TB, name string, g *Graph) picture {
	t.Helper()
	svg := g.SVG()
	p := parse(t, svg)
	if len(p.statuses) != len(g.Statuses) || len(p.labels) != len(g.Edges) || len(p.curves) != len(g.Edges) {
		t.Fatalf("%s: %d boxes of %d, %d labels and %d lines of %d", name, len(p.statuses), len(g.Statuses), len(p.labels), len(p.curves), len(g.Edges))
	}
	all := append(append([]box{}, p.statuses...), p.labels...)
	for i, a := range all {
		if a.x < 0 || a.y < 0 || a.x+a.w > p.width || a.y+a.h > p.height {
			t.Errorf("%s: %s is outside the picture", name, a.what)
		}
		for _, b := range all[:i] {
			if a.meets(b) {
				t.Errorf("%s: boxes %s and %s overlap: %v %v", name, a.what, b.what, a, b)
			}
		}
	}
	for i, curve := range p.curves {
		for k := 0; k+1 < len(curve); k += 2 {
			dot := box{"", curve[k] - 0.5, curve[k+1] - 0.5, 1, 1}
			for _, b := range p.statuses {
				inner := box{b.what, b.x + 1, b.y + 1, b.w - 2, b.h - 2}
				if dot.meets(inner) {
					t.Fatalf("%s: line %d (%v) crosses the box of %s at %v", name, i, g.Edges[i], b.what, dot)
				}
			}
			for j, b := range p.labels {
				if j != i && b.what != strconv.Itoa(i) && dot.meets(b) {
					t.Fatalf("%s: line %d crosses the label of %s", name, i, b.what)
				}
			}
		}
	}
	for _, x := range p.texts {
		if x.x < 0 || x.x+x.w > p.width+1 {
			t.Errorf("%s: the text %q leaves the picture", name, x.what)
		}
		for _, b := range all {
			if x.meets(b) && (x.x < b.x-1 || x.x+x.w > b.x+b.w+1 || x.y < b.y-1 || x.y+x.h > b.y+b.h+1) {
				t.Errorf("%s: the text %q sticks out of %s", name, x.what, b.what)
			}
		}
	}
	if again := g.SVG(); again != svg {
		t.Errorf("%s: it is not the same twice", name)
	}
	return p
}

// Issue 3, item 5: the default workflow's statuses, readable on a page of 1200 px, no labels over each other, in two schemes.
func TestDefaultPicture(t *testing.T) {
	g := standard(t)
	p := sound(t, "default", g)
	if len(g.Statuses) != 12 || p.width > 1200 || p.height > 1600 {
		t.Errorf("%d statuses on %v x %v", len(g.Statuses), p.width, p.height)
	}
	if !strings.Contains(p.style, "@media (prefers-color-scheme: dark)") {
		t.Error("there is no dark scheme")
	}
	for _, x := range paints {
		if x.light == x.dark || strings.Count(p.style, x.classes+" { "+x.property+": #") != 2 {
			t.Errorf("%s %s has not two colours", x.classes, x.property)
		}
	}
	svg := g.SVG()
	for _, bad := range []string{"<script", "href", "url(", "@import", "var("} {
		if strings.Contains(svg, bad) {
			t.Errorf("the picture holds %q", bad)
		}
	}
}

// What is drawn is what the workflow says.
func TestGraphOfDefault(t *testing.T) {
	g := standard(t)
	names := func(e Edge) string {
		return g.Statuses[e.From].Name + " " + strings.Join(e.Events, ",") + " " + g.Statuses[e.To].Name
	}
	have := map[string]Edge{}
	for _, e := range g.Edges {
		have[names(e)] = e
	}
	for _, want := range []string{"triage start specifying", "todo promote ready", "ready start running", "running request_review review", "review start reviewing",
		"reviewing exited,complete done", "review complete merging", "merging hook_done done", "merging hook_failed todo", "blocked unblock,forget todo", "blocked unblock triage",
		"done reopen todo", "triage specify,decompose todo", "review request_changes todo", "archived unarchive todo"} {
		if _, ok := have[want]; !ok {
			t.Errorf("no line %s", want)
		}
	}
	if e := have["ready start running"]; !e.Start || e.Fleet {
		t.Errorf("start: %+v", e)
	}
	if e := have["todo promote ready"]; e.Start || !e.Fleet {
		t.Errorf("promote: %+v", e)
	}
	rows := map[string]Row{}
	for _, r := range g.Anywhere {
		rows[r.Event] = r
	}
	for _, want := range []Row{{"cancel", "manager", "cancelled"}, {"exited", "platform", "where its run began, blocked"}, {"comment", "anyone", ""},
		{"block", "implementer, reviewer, manager", "triage, todo, blocked"}, {"stale", "platform", "where its run began"}} {
		if rows[want.Event] != want {
			t.Errorf("%s: %+v", want.Event, rows[want.Event])
		}
	}
	first := ""
	for _, s := range g.Statuses {
		if s.First {
			first += s.Name + " "
		}
	}
	if first != "triage todo ready " {
		t.Errorf("a card begins in %s", first)
	}
}

// Whatever the shape of a workflow, the promises hold: many random ones, dense and with long names.
func TestRandomPictures(t *testing.T) {
	for seed := range uint64(40) {
		r := rand.New(rand.NewPCG(seed, 1))
		g := &Graph{Name: fmt.Sprintf("random %d <&>", seed)}
		for i := range 1 + r.IntN(14) {
			s := Status{Name: fmt.Sprintf("s%d%s", i, strings.Repeat("w", r.IntN(20))), Stored: "running", First: r.IntN(4) == 0, Last: r.IntN(5) == 0}
			if r.IntN(2) == 0 {
				s.Role = strings.Repeat("r", 1+r.IntN(30))
			}
			g.Statuses = append(g.Statuses, s)
		}
		for range r.IntN(30) {
			from, to := r.IntN(len(g.Statuses)), r.IntN(len(g.Statuses))
			if from != to {
				g.add(Edge{From: from, To: to, Events: []string{fmt.Sprintf("%sx%d", strings.Repeat("event_", r.IntN(9)), r.IntN(9))}})
			}
		}
		for range r.IntN(9) {
			g.Anywhere = append(g.Anywhere, Row{strings.Repeat("e", 1+r.IntN(60)), strings.Repeat("m", r.IntN(90)), strings.Repeat("t ", r.IntN(60))})
		}
		sound(t, fmt.Sprint("seed ", seed), g)
	}
}

// The work is bounded by ours, not by the size of the workflow: the largest that loads is drawn.
func TestLargePicture(t *testing.T) {
	var b strings.Builder
	b.WriteString("version: 1\nname: big\ninitial: s0\nstatuses:\n")
	for i := range 100 {
		fmt.Fprintf(&b, "  s%d:\n    stored_as: todo\n    on:\n", i)
		for k := range 10 {
			fmt.Fprintf(&b, "      e%d: [{target: s%d}]\n", k, (i*7+k*13+1)%100)
		}
	}
	g := Of(load(t, []byte(b.String())))
	if len(g.Edges) < 900 {
		t.Fatalf("%d lines", len(g.Edges))
	}
	p := parse(t, g.SVG())
	for i, x := range p.labels {
		for _, y := range p.labels[:i] {
			if x.meets(y) {
				t.Fatalf("labels %s and %s overlap", x.what, y.what)
			}
		}
	}
}

// Mermaid's text: each status and line once, names that are no words of its language, and what holds anywhere as a note.
func TestMermaid(t *testing.T) {
	text := standard(t).Mermaid()
	for _, want := range []string{"stateDiagram-v2\n", "    state \"ready\" as s_ready\n", "    [*] --> s_todo\n", "    s_ready --> s_running: start\n", "        cancel (manager) leads to cancelled\n", "    end note\n"} {
		if strings.Count(text, want) != 1 {
			t.Errorf("%q stands there %d times", want, strings.Count(text, want))
		}
	}
	small := Of(load(t, []byte("version: 1\nname: x\ninitial: end\nstatuses:\n  end: {stored_as: todo, on: {go-on: [{target: all-done}]}}\n  all-done: {stored_as: done}\n")))
	if got, want := small.Mermaid(), "stateDiagram-v2\n    direction TB\n    state \"end\" as s_end\n    state \"all-done\" as s_all__done\n    [*] --> s_end\n    s_end --> s_all__done: go-on\n    s_all__done --> [*]\n"; got != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}

// The pictures of the guide's workflows are sound, too.
func TestGuidePictures(t *testing.T) {
	files, err := filepath.Glob("../../../docs/workflows/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range files {
		if strings.HasSuffix(f, ".scenarios.yaml") {
			continue
		}
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if p := sound(t, f, Of(load(t, src))); p.width > 1300 {
			t.Errorf("%s is %v px wide", f, p.width)
		}
	}
}

package chart

import (
	"fmt"
	"strings"
)

// paint is the colour of some classes in both schemes.
type paint struct{ classes, property, light, dark string }

// paints are written out for each scheme: not every reader of SVG knows variables. Kinds of statuses differ by hue
// and by a word, never by hue alone.
var paints = []paint{
	{".page, .paper", "fill", "#fbfbfa", "#12151b"},
	{".title, .name, .event, .dot", "fill", "#1d2330", "#e8ebf1"},
	{".note, .sub, .label, .to", "fill", "#5d6678", "#98a2b3"},
	{".box", "fill", "#ffffff", "#1b2029"},
	{".box, .rule", "stroke", "#d9dde4", "#2f3642"},
	{".entry", "stroke", "#1d2330", "#e8ebf1"},
	{".edge", "stroke", "#8f98a8", "#5f6b7e"},
	{".head", "fill", "#8f98a8", "#5f6b7e"},
	{".edge.start", "stroke", "#1f6feb", "#6cb0ff"},
	{".head.start, .label.start, .running", "fill", "#1f6feb", "#6cb0ff"},
	{".edge.fleet", "stroke", "#8a63d2", "#b99bf5"},
	{".head.fleet, .label.fleet", "fill", "#8a63d2", "#b99bf5"},
	{".triage, .todo, .ready", "fill", "#9aa4b2", "#7d8899"},
	{".review", "fill", "#b7791f", "#e3b341"},
	{".blocked, .cancelled", "fill", "#c93c37", "#ff7b72"},
	{".done, .archived", "fill", "#2c8a4b", "#56d364"},
	{".ring", "stroke", "#2c8a4b", "#56d364"},
}

const shapes = `    text { font-family: ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial, "DejaVu Sans", sans-serif; font-size: 12px; }
    .title { font-size: 18px; font-weight: 650; } .name { font-size: 14px; } .name, .event { font-weight: 600; } .sub { font-size: 11px; }
    .name, .sub, .label { text-anchor: middle; } .box { stroke-width: 1.2; } .ring { fill: none; stroke-opacity: 0.45; }
    .edge { fill: none; stroke-width: 1.5; } .edge.start { stroke-width: 2; } .edge.fleet { stroke-dasharray: 5 4; } .edge.back { stroke-opacity: 0.75; }
    .entry { stroke-width: 1.5; }
`

func style() string {
	var b strings.Builder
	b.WriteString(shapes)
	for _, p := range paints {
		fmt.Fprintf(&b, "    %s { %s: %s; }\n", p.classes, p.property, p.light)
	}
	b.WriteString("    @media (prefers-color-scheme: dark) {\n")
	for _, p := range paints {
		fmt.Fprintf(&b, "      %s { %s: %s; }\n", p.classes, p.property, p.dark)
	}
	b.WriteString("    }\n")
	return b.String()
}

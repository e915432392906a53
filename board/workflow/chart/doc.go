// Package chart draws a workflow as a statechart: as Mermaid text and as an SVG picture that follows the
// reader's light or dark scheme.
//
// Guarantees: pure; the same workflow gives the same bytes. In the picture no box overlaps another, be it a
// status or a label, and no line crosses one. What holds in any status is listed under the picture instead of
// being drawn from each.
//
// Concurrency: values in, values out.
package chart

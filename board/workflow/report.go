package workflow

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Severity of a finding.
type Severity string

// An Error keeps a workflow from being saved; a Warning does not.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
)

// Finding is one thing that is wrong in a workflow file: what, where, why, and what to do.
type Finding struct {
	Pos
	Severity Severity
	Check    string // short name of the check: "unknown-key", "unreachable-status", ...
	Path     string // where in the structure: statuses.ready.on.start[0].guard
	Message  string
	Advice   string
}

func (f Finding) String() string {
	s := fmt.Sprintf("%s: %s: ", f.Pos, f.Severity)
	if f.Path != "" {
		s += f.Path + ": "
	}
	s += f.Message
	if f.Advice != "" {
		s += "; " + f.Advice
	}
	return s
}

// maxFindings bounds a report: a file that is wrong everywhere is told so without end.
const maxFindings = 100

// Report is what Load found wrong.
type Report struct {
	Findings []Finding // in the order of the file
	Dropped  int       // more of them, not listed
}

// Failed says that there is an error.
func (r *Report) Failed() bool {
	return r.Dropped > 0 || slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == Error })
}

// Err is the report as one error of several lines; nil when nothing is wrong.
func (r *Report) Err() error {
	if !r.Failed() {
		return nil
	}
	return &LoadError{Report: r}
}

// LoadError is a workflow file that cannot be used.
type LoadError struct{ Report *Report }

func (e *LoadError) Error() string { return e.Report.String() }

// String lists the findings, one a line.
func (r *Report) String() string {
	var lines []string
	for _, f := range r.Findings {
		lines = append(lines, f.String())
	}
	if r.Dropped > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", r.Dropped))
	}
	return strings.Join(lines, "\n")
}

func (r *Report) add(f Finding) {
	if len(r.Findings) >= maxFindings {
		r.Dropped++
		return
	}
	r.Findings = append(r.Findings, f)
}

// sortFindings: by file (the loaded one first), line, column.
func sortFindings(fs []Finding) {
	slices.SortStableFunc(fs, func(a, b Finding) int {
		return cmp.Or(strings.Compare(a.File, b.File), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Column, b.Column))
	})
}

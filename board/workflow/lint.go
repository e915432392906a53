package workflow

// Lint holds a loaded workflow against what cannot work although every word of it is known.
func Lint(w *Workflow) []Finding { return nil }

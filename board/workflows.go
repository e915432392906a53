package board

// Workflows remembers compiled workflows by board and version. Safe for concurrent use.
type Workflows struct{}

// NewWorkflows makes an empty memory.
func NewWorkflows() *Workflows { return &Workflows{} }

package board

import (
	"bytes"
	"encoding/json"
	"fmt"
	"sync"

	"muster/board/rule"
	"muster/board/workflow"
)

// maxWorkflows bounds the compiled workflows kept; beyond it the memory starts
// anew, which costs a few milliseconds a board.
const maxWorkflows = 256

// maxExtends bounds a chain of `extends: board:SLUG`.
const maxExtends = 8

// Workflows remembers compiled workflows by board, version and parameters, and
// what they extend. It is a memory only: the same view gives the same workflow
// with or without it. Safe for concurrent use.
type Workflows struct {
	mu   sync.Mutex
	kept map[flowKey]*flow
}

type flowKey struct {
	board   string
	version uint64
	params  string
}

// flow is a compiled workflow with a board's own parameters over it.
type flow struct {
	wf     *workflow.Workflow
	params map[string]any
	from   []source // what it was compiled from: itself, then what it extends
	err    *Error
	static sync.Map // guardKey to bool: see never
}

type guardKey struct {
	status string
	guard  *rule.Expr
}

// never says that a guard cannot hold for a card of the status, whatever the payload is.
func (f *flow) never(status string, guard *rule.Expr) bool {
	key := guardKey{status, guard}
	if v, ok := f.static.Load(key); ok {
		return v == true
	}
	stored := f.wf.StoredAs(status)
	v, constant := guard.With(map[string]any{"card.status": status, "card.stored": stored, "card.finished": Finished(stored)}).Constant()
	never := constant && v != true
	f.static.Store(key, never)
	return never
}

// source is a saved workflow as it is stored. The stored bytes are compared,
// not only the version: a batch that was given up may have shown another text
// under the same number.
type source struct {
	key flowKey
	raw []byte
}

// NewWorkflows makes an empty memory.
func NewWorkflows() *Workflows { return &Workflows{kept: map[flowKey]*flow{}} }

// Of is the workflow in force on a board (M-22).
func (w *Workflows) Of(v View, b *Board) (*workflow.Workflow, error) {
	f := w.flow(v, b.Slug, b.Workflow, b.Params)
	if f.err != nil {
		return nil, f.err
	}
	return f.wf, nil
}

// OfVersion is a saved version of a board's workflow: a run keeps the one it was started with for its prompt.
func (w *Workflows) OfVersion(v View, b *Board, version uint64) (*workflow.Workflow, error) {
	f := w.flow(v, b.Slug, version, b.Params)
	if f.err != nil {
		return nil, f.err
	}
	return f.wf, nil
}

// Params are the parameters in force on a board: the workflow's, with the board's own values over them (WFL-14).
func (w *Workflows) Params(v View, b *Board) (map[string]any, error) {
	f := w.flow(v, b.Slug, b.Workflow, b.Params)
	if f.err != nil {
		return nil, f.err
	}
	return f.params, nil
}

func (w *Workflows) flow(v View, slug string, version uint64, params []byte) *flow {
	key := flowKey{slug, version, string(params)}
	if w == nil {
		return compileFlow(v, key)
	}
	w.mu.Lock()
	f := w.kept[key]
	w.mu.Unlock()
	if f != nil && f.fresh(v) {
		return f
	}
	f = compileFlow(v, key)
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.kept) >= maxWorkflows {
		w.kept = map[flowKey]*flow{}
	}
	w.kept[key] = f
	return f
}

// fresh says that what it was compiled from still stands as it was.
func (f *flow) fresh(v View) bool {
	for i, s := range f.from {
		if i > 0 {
			if b := GetBoard(v, s.key.board); b == nil || b.Workflow != s.key.version {
				return false
			}
		}
		if !bytes.Equal(s.raw, v.Get(TWorkflow, WorkflowKey(s.key.board, s.key.version))) {
			return false
		}
	}
	return true
}

func compileFlow(v View, key flowKey) *flow {
	f := &flow{}
	if f.wf, f.err = loadFlow(v, key, &f.from); f.err != nil {
		return f
	}
	var own map[string]any
	if key.params != "" {
		if err := json.Unmarshal([]byte(key.params), &own); err != nil {
			f.err = Errorf(Internal, "board %s: its parameters cannot be read: %v", key.board, err)
			return f
		}
	}
	f.params = f.wf.Params(own)
	return f
}

func loadFlow(v View, key flowKey, from *[]source) (*workflow.Workflow, *Error) {
	src, err := readSource(v, key, from)
	if err != nil {
		return nil, Errorf(Internal, "board %s: %v", key.board, err)
	}
	if src == nil {
		return workflow.Default(), nil
	}
	wf, report := workflow.Load(src, func(slug string) ([]byte, error) {
		b := GetBoard(v, slug)
		if b == nil {
			return nil, fmt.Errorf("there is no board %q", slug)
		}
		if len(*from) > maxExtends {
			return nil, fmt.Errorf("more than %d workflows extend each other", maxExtends)
		}
		base, err := readSource(v, flowKey{board: slug, version: b.Workflow}, from)
		if err == nil && base == nil {
			base = workflow.DefaultSource()
		}
		return base, err
	})
	if err := report.Err(); err != nil || wf == nil {
		return nil, Errorf(Refused, "board %s: its workflow (version %d) cannot be used: %v", key.board, key.version, err).
			WithCheck("workflow").WithHint("mend it: muster board apply %s -f FILE", key.board)
	}
	return wf, nil
}

// readSource reads a saved workflow and notes it; nil is the default workflow (version 0).
func readSource(v View, key flowKey, from *[]source) ([]byte, error) {
	raw := v.Get(TWorkflow, WorkflowKey(key.board, key.version))
	*from = append(*from, source{key, bytes.Clone(raw)})
	if key.version == 0 {
		return nil, nil
	}
	doc := GetWorkflowDoc(v, key.board, key.version)
	if doc == nil {
		return nil, fmt.Errorf("version %d of the workflow of board %q is not there", key.version, key.board)
	}
	return doc.Source, nil
}

// flow is the board's compiled workflow and parameters; the error is for people.
func (t *tx) flow(b *Board) (*flow, *Error) {
	f := t.env.Workflows.flow(t, b.Slug, b.Workflow, b.Params)
	return f, f.err
}

// workflow is the compiled version in force of a board's workflow (M-22).
func (t *tx) workflow(b *Board) (*workflow.Workflow, *Error) {
	f, err := t.flow(b)
	return f.wf, err
}

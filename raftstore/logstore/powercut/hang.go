package powercut

import "sync"

// Hang is a disk that passes everything on to a plain folder, and whose syncs return when it says so: what a dying drive,
// or a file server that went away, is to a process. A process that waits for it cannot be killed before it answers.
// Safe for concurrent use.
type Hang struct {
	folder string

	mu    sync.Mutex
	held  chan struct{} // closed when syncs return again; nil while they do
	waits int           // syncs that were held
}

// NewHang is a disk over an existing folder.
func NewHang(folder string) *Hang { return &Hang{folder: folder} }

// Stop lets no sync return from now on.
func (h *Hang) Stop() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held == nil {
		h.held = make(chan struct{})
	}
}

// Go lets all of them return.
func (h *Hang) Go() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.held != nil {
		close(h.held)
		h.held = nil
	}
}

// Held is how many syncs had to wait so far.
func (h *Hang) Held() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.waits
}

func (h *Hang) wait() {
	h.mu.Lock()
	held := h.held
	if held != nil {
		h.waits++
	}
	h.mu.Unlock()
	if held != nil {
		<-held
	}
}

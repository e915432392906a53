package api

import (
	"net/http"
	"strconv"
)

// MemoryFiles are the files of a snapshot of an agent's folder.
type MemoryFiles struct {
	Agent string       `json:"agent"`
	Hash  string       `json:"hash"`
	Files []MemoryFile `json:"files"` // in the order of their paths
}

// MemoryFile is one of them.
type MemoryFile struct {
	Path   string `json:"path"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
	Exec   bool   `json:"exec,omitempty"`
}

// MemoryChunk is a piece of a file of a snapshot.
type MemoryChunk struct {
	Chunk []byte `json:"chunk"`
	Next  int64  `json:"next"`
	EOF   bool   `json:"eof"`
}

var (
	memoryAsks = asks{"agent": anyText, "hash": anyText}
	chunkAsks  = asks{"agent": anyText, "hash": anyText, "path": anyText, "from": number(0)}
)

func (h *handler) memory(r *http.Request, _ caller) (any, Fresh, error) {
	q := r.URL.Query()
	x, err := h.b.MemoryFiles(r.Context(), q.Get("agent"), q.Get("hash"))
	return x, unread, err
}

func (h *handler) memoryChunk(r *http.Request, _ caller) (any, Fresh, error) {
	q := r.URL.Query()
	from, _ := strconv.ParseInt(q.Get("from"), 10, 64)
	x, err := h.b.MemoryChunk(r.Context(), q.Get("agent"), q.Get("hash"), q.Get("path"), max(from, 0))
	return x, unread, err
}

package web

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed static
var files embed.FS

var kinds = map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".svg": "image/svg+xml", ".webmanifest": "application/manifest+json"}

type file struct {
	body []byte
	kind string
	tag  string
}

// static serves the page's own files, each with a tag of what is in it: after an
// upgrade a browser sees that it has an old one.
func static() http.Handler {
	all := map[string]file{}
	_ = fs.WalkDir(files, "static", func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := files.ReadFile(p)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(b)
		all["/"+strings.TrimPrefix(p, "static/")] = file{b, kinds[path.Ext(p)], `"` + hex.EncodeToString(sum[:8]) + `"`}
		return nil
	})
	all["/"] = all["/index.html"]
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		f, ok := all[r.URL.Path]
		if !ok || r.Method != http.MethodGet && r.Method != http.MethodHead {
			refuse(w, http.StatusNotFound, "route", "there is nothing here", "")
			return
		}
		h := w.Header()
		h.Set("Content-Type", f.kind)
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", f.tag)
		if r.Header.Get("If-None-Match") == f.tag {
			w.WriteHeader(http.StatusNotModified)
			return
		}
		_, _ = w.Write(f.body)
	})
}

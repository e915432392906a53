package api

import "net/http"

// Reads are the paths that are answered with an envelope, each with a value of what it holds.
func Reads() map[string]any {
	all := map[string]any{}
	for _, x := range (&handler{}).routes() {
		if x.method == http.MethodGet && x.data != nil {
			all[x.path] = x.data
		}
	}
	return all
}

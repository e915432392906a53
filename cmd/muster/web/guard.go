package web

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// policy lets the page load its own files and speak to its own node, and nothing
// else: no inline script or style, no other origin, no frame around it, and no text
// becomes markup (trusted types; the one policy copies the workflow's picture).
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; font-src 'self'; connect-src 'self'; manifest-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types muster-chart"

func secure(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Frame-Options", "DENY")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), microphone=(), geolocation=(), payment=(), usb=()")
}

// guard comes before everything, on every method: a name that is not ours is DNS
// rebinding (T20), an Origin that is not ours another page (T19, T21).
func (s *Server) guard(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		secure(w.Header())
		if !slices.Contains(s.hosts, strings.ToLower(r.Host)) {
			refuse(w, http.StatusMisdirectedRequest, "host", "this page is not known by that name", "use the address that muster web prints; another name is given with --http-name")
			return
		}
		if r.Method == http.MethodOptions { // no other origin is ever allowed anything
			refuse(w, http.StatusForbidden, "origin", "other pages get nothing here", "")
			return
		}
		if o := r.Header.Get("Origin"); o != "" && !s.sameOrigin(o, r.Host) {
			refuse(w, http.StatusForbidden, "origin", "another page asked, and only this one may", "")
			return
		}
		if site := r.Header.Get("Sec-Fetch-Site"); site != "" && site != "same-origin" && !(site == "none" || navigation(r)) {
			refuse(w, http.StatusForbidden, "origin", "another page asked, and only this one may", "")
			return
		}
		next.ServeHTTP(w, r)
	})
}

// navigation is a person's following a link to the page: it holds nothing without a bearer.
func navigation(r *http.Request) bool {
	return r.Method == http.MethodGet && r.URL.Path == "/" && r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

func (s *Server) sameOrigin(origin, host string) bool {
	u, err := url.Parse(origin)
	return err == nil && u.Scheme == s.scheme() && strings.EqualFold(u.Host, host)
}

package api

import (
	"context"
	"net"
	"net/http"
	"net/http/pprof"
	"net/netip"
	"strings"
	"time"

	"muster/board"
)

// Health is how well a node can do its part in the fleet.
type Health struct {
	Node   string  `json:"node"`
	Ready  bool    `json:"ready"`
	Checks []Check `json:"checks"`
}

// Check is one thing that health depends on; Text says what is wrong, and what next.
type Check struct {
	Name string `json:"name"`
	OK   bool   `json:"ok"`
	Text string `json:"text,omitempty"`
}

// A Checked backend knows how well it can do its part.
type Checked interface {
	Health(ctx context.Context) []Check
}

// A Measured backend shows its figures to Prometheus.
type Measured interface {
	Metrics() http.Handler
}

func health(ctx context.Context, b Backend) Health {
	_, name := b.Self()
	x := Health{Node: name, Ready: true, Checks: []Check{}}
	if c, ok := b.(Checked); ok {
		x.Checks = some(c.Health(ctx))
	}
	for _, c := range x.Checks {
		x.Ready = x.Ready && c.OK
	}
	return x
}

func (h *handler) health(r *http.Request, _ caller) (any, Fresh, error) {
	return health(r.Context(), h.b), unread, nil
}

// alive answers as long as this process serves at all.
func (h *handler) alive(*http.Request, caller) (any, Fresh, error) {
	_, name := h.b.Self()
	return Health{Node: name, Ready: true, Checks: []Check{}}, unread, nil
}

func (h *handler) ready(r *http.Request, _ caller) (any, Fresh, error) {
	x := health(r.Context(), h.b)
	return x, unread, x.err()
}

// err is why a node is not ready, nil when it is.
func (x Health) err() error {
	if x.Ready {
		return nil
	}
	var list []string
	for _, c := range x.Checks {
		if !c.OK {
			list = append(list, c.Name+": "+c.Text)
		}
	}
	return board.Errorf(board.Unavailable, "%s is not ready: %s", x.Node, strings.Join(list, "; ")).WithCheck("not_ready").WithHint("see: muster status")
}

// metrics shows this node's figures to whoever may read all boards.
func (h *handler) metrics(w http.ResponseWriter, r *http.Request) {
	c, err := h.caller(r)
	if err == nil {
		err = h.mayRead(r, &c)
	}
	if err == nil && c.bound() {
		err = c.outside()
	}
	if err != nil {
		h.refuse(w, c, err)
		return
	}
	show(h.b, w, r)
}

func show(b Backend, w http.ResponseWriter, r *http.Request) {
	m, ok := b.(Measured)
	if !ok {
		send(w, nil, unread, board.Errorf(board.NotFound, "this node has no metrics"), "")
		return
	}
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(streamWrite))
	m.Metrics().ServeHTTP(w, r)
}

// Monitor answers the figures and the health of a node to whoever reaches it, for
// an address on loopback. It shows numbers and names, and no text of a card; it
// takes nothing. A request whose Host is a name is refused: a page of elsewhere
// could have that name point here (T20).
func Monitor(b Backend) http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, r *http.Request) { show(b, w, r) })
	mux.HandleFunc("GET /livez", func(w http.ResponseWriter, r *http.Request) {
		_, name := b.Self()
		send(w, Health{Node: name, Ready: true, Checks: []Check{}}, unread, nil, "")
	})
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), defaultTimeout)
		defer cancel()
		x := health(ctx, b)
		send(w, x, unread, x.err(), "")
	})
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Content-Type-Options", "nosniff")
		if !ownHost(r.Host) || r.Header.Get("Origin") != "" {
			http.Error(w, "ask this address by localhost or by its number, and not from a page", http.StatusMisdirectedRequest)
			return
		}
		mux.ServeHTTP(w, r)
	})
}

// ownHost tells whether a request was meant for this machine's loopback.
func ownHost(host string) bool {
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	host = strings.Trim(host, "[]")
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

// pprof gives profiles of this process, to managers: they show what the process
// holds in memory, and taking one costs it.
func (h *handler) pprof(w http.ResponseWriter, r *http.Request) {
	c, err := h.caller(r)
	if err == nil {
		err = h.manages(r, &c, "a profile: it shows what the process holds")
	}
	if err == nil {
		err = h.transfers.take()
	}
	if err != nil {
		h.refuse(w, c, err)
		return
	}
	defer h.transfers.give()
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(pprofTime))
	r.URL.Path = "/debug/pprof/" + r.PathValue("profile")
	switch r.PathValue("profile") {
	case "profile":
		pprof.Profile(w, r)
	case "trace":
		pprof.Trace(w, r)
	case "cmdline":
		pprof.Cmdline(w, r)
	case "symbol":
		pprof.Symbol(w, r)
	default:
		pprof.Index(w, r)
	}
}

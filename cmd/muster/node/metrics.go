package node

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/metrics"
	"muster/mesh"
)

var (
	_ api.Measured = backend{}
	_ api.Checked  = backend{}
)

// measures is what a node keeps for its metrics.
type measures struct {
	once    sync.Once
	handler http.Handler

	mu     sync.Mutex
	starts map[[2]string]uint64 // by board and profile, of terms of this node
	last   *metrics.State       // as of Seq seq, counted at the time at
	seq    uint64
	at     time.Time
}

// countFor is how long a count of the state is shown that no transaction has
// made old: what a cap of starts counts ends by itself.
const countFor = 15 * time.Second

// started counts a start that this node has committed as the leader.
func (m *measures) started(o *board.Order) {
	var s struct {
		Board   string `json:"board"`
		Profile string `json:"profile"`
	}
	if o.Kind != board.OrderStart || json.Unmarshal(o.Spec, &s) != nil {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.starts == nil {
		m.starts = map[[2]string]uint64{}
	}
	m.starts[[2]string{s.Board, s.Profile}]++
}

// Metrics implements api.Measured.
func (b backend) Metrics() http.Handler {
	m := &b.n.measures
	m.once.Do(func() { m.handler = metrics.Handler(source(b)) })
	return m.handler
}

// source is the node as its metrics see it.
type source backend

// Facts implements metrics.Source.
func (s source) Facts(ctx context.Context) (*metrics.Facts, error) {
	n := s.n
	r := backend(s).Readings(ctx)
	st, _, err := api.StatusOf(ctx, backend(s), r)
	if err != nil {
		return nil, err
	}
	applied, seq := n.store.Applied()
	f := &metrics.Facts{Version: n.cfg.Version, Node: n.cfg.Name, Fleet: n.mem.Fleet, Started: n.begun, Quorum: st.Quorum, Live: st.Quorum,
		Term: n.store.Term(), Last: n.store.LastIndex(), Applied: applied, Seq: seq, Heard: n.heardCommit.Load(), Age: -1,
		Store: n.store.Stats(), Denied: n.denials.copy(), Outbox: n.launch.Unsent(), Alarms: len(st.Alarms)}
	_, f.Leader = n.store.LeaderTerm()
	if age, ok := n.Clock().Age(n.now()); ok {
		f.Age = age
	}
	if m, ok := n.mesh.(interface{ Stats() mesh.Stats }); ok {
		if f.Denied == nil {
			f.Denied = map[string]uint64{}
		}
		f.Denied["handshake"] = m.Stats().HandshakesRefused
	}
	n.measures.mu.Lock()
	f.Starts = maps.Clone(n.measures.starts)
	n.measures.mu.Unlock()
	f.State, err = n.counted(seq, r.Nodes)
	return f, err
}

// counted counts the state, unless it was counted as it is.
func (n *Node) counted(seq uint64, nodes map[string]board.Reading) (*metrics.State, error) {
	m := &n.measures
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.last != nil && m.seq == seq && time.Since(m.at) < countFor {
		return m.last.Heard(nodes), nil
	}
	err := n.store.View(func(v board.View) error {
		m.seq, m.at = v.Seq(), time.Now()
		m.last = metrics.Count(v, n.flows, func(id string) board.Reading { return nodes[id] }, max(v.Time(), n.boardNow()))
		return nil
	})
	return m.last, err
}

// Health implements api.Checked: what a node needs to do its part.
func (b backend) Health(ctx context.Context) []api.Check {
	n := b.n
	check := func(name string, ok bool, format string, args ...any) api.Check {
		c := api.Check{Name: name, OK: ok}
		if !ok {
			c.Text = fmt.Sprintf(format, args...)
		}
		return c
	}
	r := b.Readings(ctx)
	applied, _ := n.store.Applied()
	heard := n.heardCommit.Load()
	left, known := n.space.left()
	failed := n.Err()
	return []api.Check{
		check("runs", failed == nil && n.ctx.Err() == nil, "this node has stopped acting: %v", failed),
		check("member", r.Removed == "", "%s", r.Removed),
		check("leader", r.Live, "no leader is reachable from here"),
		check("state", heard < applied+mayLag, "%d entries are not applied here yet", int64(heard)-int64(applied)),
		check("space", !n.full.Load() && (!known || left >= spaceLow), "NOSPACE: %d MB are left on %s", left>>20, n.cfg.Data),
	}
}

// CheckMonitor refuses an address for figures that others than this machine could reach.
func CheckMonitor(addr string) error {
	if addr == "" {
		return nil
	}
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("--metrics %q is not IP:PORT", addr)
	}
	if ip := net.ParseIP(strings.Trim(host, "[]")); ip == nil || !ip.IsLoopback() {
		return fmt.Errorf("--metrics %q: give an address on loopback, as 127.0.0.1:7190; who asks there shows no credential. From elsewhere: GET /metrics with a token, or a proxy of yours", addr)
	}
	return nil
}

// openMonitor serves figures and health on loopback, where it was asked for.
func (n *Node) openMonitor() error {
	if n.cfg.Metrics == "" || n.cfg.Seams.Mesh != nil {
		return nil
	}
	l, err := net.Listen("tcp", n.cfg.Metrics)
	if err != nil {
		return fmt.Errorf("--metrics: %w", err)
	}
	n.monitor = &http.Server{Handler: api.Monitor(backend{n}), ReadHeaderTimeout: 5 * time.Second, ReadTimeout: 10 * time.Second, WriteTimeout: time.Minute,
		IdleTimeout: time.Minute, MaxHeaderBytes: 16 << 10}
	n.cfg.Progress("metrics at http://" + l.Addr().String() + "/metrics")
	n.serving.Go(func() { _ = n.monitor.Serve(l) })
	return nil
}

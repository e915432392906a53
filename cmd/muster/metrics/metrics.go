package metrics

import (
	"context"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"muster/board"
	"muster/raftstore"
)

// Facts are a node's figures at one moment.
type Facts struct {
	Version, Node, Fleet string
	Started              time.Time
	Leader, Quorum       bool
	Live                 bool // machines are known as the leader knows them
	Term, Last, Applied  uint64
	Heard                uint64 // index that the leader had applied at the last contact
	Seq                  uint64
	Age                  time.Duration // of the last contact; negative: none yet
	Store                raftstore.Stats
	Denied               map[string]uint64    // by kind
	Starts               map[[2]string]uint64 // by board and profile
	Outbox, Alarms       int
	State                *State
}

// Source is a node as its metrics see it.
type Source interface {
	Facts(ctx context.Context) (*Facts, error)
}

const (
	scrapes = 2 // at once
	within  = 8 * time.Second
)

// Handler serves the figures of a node, in the text format of Prometheus or in
// OpenMetrics. A reading that fails is answered with 500 and says why.
func Handler(src Source) http.Handler {
	r := prometheus.NewRegistry()
	r.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}), newCollector(src))
	return promhttp.HandlerFor(r, promhttp.HandlerOpts{MaxRequestsInFlight: scrapes, Timeout: within, EnableOpenMetrics: true})
}

type collector struct {
	src   Source
	descs map[string]*prometheus.Desc
}

func newCollector(src Source) *collector {
	c := &collector{src: src, descs: map[string]*prometheus.Desc{}}
	for n, x := range names {
		c.descs[n] = prometheus.NewDesc(n, x.help, x.labels, nil)
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect implements prometheus.Collector.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	ctx, cancel := context.WithTimeout(context.Background(), within)
	defer cancel()
	f, err := c.src.Facts(ctx)
	if err != nil {
		ch <- prometheus.NewInvalidMetric(c.descs["muster_build_info"], err)
		return
	}
	s := shower{c, ch}
	s.node(f)
	s.store(&f.Store)
	if f.State != nil {
		s.fleet(f.State)
		s.machines(f.State.Machines, f.Live)
	}
}

// shower turns figures into metrics.
type shower struct {
	c  *collector
	ch chan<- prometheus.Metric
}

func (s shower) show(name string, value float64, labels ...string) {
	m, err := prometheus.NewConstMetric(s.c.descs[name], names[name].kind, value, labels...)
	if err != nil {
		m = prometheus.NewInvalidMetric(s.c.descs[name], err)
	}
	s.ch <- m
}

func (s shower) times(name string, t raftstore.Times) {
	under := map[float64]uint64{}
	for i, bound := range raftstore.TimeBounds {
		under[bound.Seconds()] = t.Under[i]
	}
	s.ch <- prometheus.MustNewConstHistogram(s.c.descs[name], t.Count, t.Sum.Seconds(), under)
}

func truth(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

func (s shower) node(f *Facts) {
	s.show("muster_build_info", 1, f.Version, f.Node, f.Fleet)
	s.show("muster_start_time_seconds", float64(f.Started.UnixMilli())/1000)
	s.show("muster_raft_leader", truth(f.Leader))
	s.show("muster_quorum", truth(f.Quorum))
	s.show("muster_raft_term", float64(f.Term))
	s.show("muster_raft_last_index", float64(f.Last))
	s.show("muster_raft_applied_index", float64(f.Applied))
	s.show("muster_raft_lag_entries", float64(f.Heard-min(f.Heard, f.Applied)))
	s.show("muster_state_seq", float64(f.Seq))
	if f.Age >= 0 {
		s.show("muster_contact_age_seconds", f.Age.Seconds())
	}
	for kind, n := range f.Denied {
		s.show("muster_denials_total", float64(n), kind)
	}
	for at, n := range f.Starts {
		s.show("muster_starts_total", float64(n), at[:]...)
	}
	s.show("muster_outbox_items", float64(f.Outbox))
	s.show("muster_alarms", float64(f.Alarms))
}

func (s shower) store(x *raftstore.Stats) {
	s.times("muster_commit_duration_seconds", x.Commit)
	s.times("muster_apply_duration_seconds", x.Apply)
	s.show("muster_batches_total", float64(x.Rounds))
	s.show("muster_transactions_total", float64(x.Txns))
	s.show("muster_log_writes_total", float64(x.LogWrites))
	s.show("muster_log_syncs_total", float64(x.LogSyncs))
	s.show("muster_log_written_bytes_total", float64(x.LogWritten))
	s.show("muster_log_size_bytes", float64(x.LogBytes))
	s.show("muster_entries_refused_total", float64(x.RefusedSeq), "seq")
	s.show("muster_entries_refused_total", float64(x.RefusedTerm), "term")
}

func (s shower) fleet(x *State) {
	s.show("muster_voters", float64(x.Voters))
	pairs := func(name string, counts map[[2]string]int) {
		for at, n := range counts {
			s.show(name, float64(n), at[:]...)
		}
	}
	pairs("muster_cards", x.Cards)
	pairs("muster_cards_waiting", x.Waits)
	pairs("muster_attention", x.Needs)
	pairs("muster_paused", x.Paused)
	pairs("muster_webhook_failures", x.Hooks)
	for at, n := range x.Sessions {
		s.show("muster_sessions", float64(n), at[:]...)
	}
	seen := map[[5]string]bool{}
	for _, u := range x.Caps {
		at := [5]string{u.Board, u.Cap, u.Counts, u.Scope, u.Group}
		if seen[at] { // two caps in the same words: the first is shown
			continue
		}
		seen[at] = true
		s.show("muster_cap_used", float64(u.Used), at[:]...)
		if u.Bound {
			s.show("muster_cap_max", u.Max, at[:]...)
		}
	}
}

func (s shower) machines(list []Machine, live bool) {
	seen := map[string]bool{}
	for _, m := range list {
		if seen[m.Name] {
			continue
		}
		seen[m.Name] = true
		s.show("muster_node_slots", float64(m.Slots), m.Name)
		r := m.Reading
		if live {
			s.show("muster_node_online", truth(r.State == board.NodeOnline), m.Name)
		}
		if r.Pressure == "" || r.Pressure == "unknown" && r.FreeMB == 0 { // nothing was heard of it
			continue
		}
		s.show("muster_node_load1", r.Load, m.Name)
		s.show("muster_node_memory_available_bytes", float64(r.FreeMB)*(1<<20), m.Name)
		if r.DiskMB > 0 {
			s.show("muster_node_disk_free_bytes", float64(r.DiskMB)*(1<<20), m.Name)
		}
		s.show("muster_node_no_space", truth(r.NoSpace), m.Name)
		s.show("muster_node_clock_offset_seconds", float64(r.ClockMS)/1000, m.Name)
		s.show("muster_node_workspaces", float64(r.Workspaces), m.Name)
		s.show("muster_node_workspaces_bytes", float64(r.WorkMB)*(1<<20), m.Name)
	}
}

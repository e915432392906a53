package bench

import (
	"bufio"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	etcdMembers = 3
	etcdStart   = 30 * time.Second
	// EtcdConnections is how many connections the clients of an etcd side
	// share: etcd is faster with a few than with one for each client (bench
	// etcd-conns), and a baseline gets what suits it.
	EtcdConnections = 4
	putPath         = "/etcdserverpb.KV/Put"
)

// An Etcd is a cluster of three stock etcd processes on loopback: fsync as it
// comes, defaults throughout, and between its members TLS where the bench asks
// for it (its clients speak plainly, as ours do on a socket). It is a baseline to start in the same
// run and on the same disk as the side it is compared with.
type Etcd struct {
	Version string
	clients []string // host:port of each member's client door
	members []*etcdMember
}

type etcdMember struct {
	cmd   *exec.Cmd
	log   string
	ended chan struct{} // closed when the process has been reaped
}

// StartEtcd starts the cluster with its data below dir and waits until every
// member is healthy. It returns a *Missing when this machine has no etcd.
func StartEtcd(ctx context.Context, dir string) (*Etcd, error) { return startEtcd(ctx, dir, "http") }

// StartEtcdTLS is StartEtcd with TLS between the members, by certificates that each signs for itself.
func StartEtcdTLS(ctx context.Context, dir string) (*Etcd, error) {
	return startEtcd(ctx, dir, "https", "--peer-auto-tls")
}

func startEtcd(ctx context.Context, dir, scheme string, more ...string) (*Etcd, error) {
	program, err := exec.LookPath("etcd")
	if err != nil {
		return nil, &Missing{"etcd", "the baseline is a three-member etcd in the same run; on Debian: apt-get install etcd-server"}
	}
	ports, err := freePorts(2 * etcdMembers)
	if err != nil {
		return nil, fmt.Errorf("etcd: %w", err)
	}
	e := &Etcd{Version: strings.TrimPrefix(firstLine(ctx, program, "--version"), "etcd Version: ")}
	var peers []string
	for i := range etcdMembers {
		e.clients = append(e.clients, "127.0.0.1:"+strconv.Itoa(ports[i]))
		peers = append(peers, fmt.Sprintf("m%d=%s://127.0.0.1:%d", i, scheme, ports[etcdMembers+i]))
	}
	for i, peer := range peers {
		_, url, _ := strings.Cut(peer, "=")
		client := "http://" + e.clients[i]
		m, err := startMember(program, dir, "m"+strconv.Itoa(i), append([]string{
			"--listen-client-urls", client, "--advertise-client-urls", client,
			"--listen-peer-urls", url, "--initial-advertise-peer-urls", url,
			"--initial-cluster", strings.Join(peers, ","), "--initial-cluster-state", "new",
		}, more...))
		if err != nil {
			return nil, errors.Join(err, e.Close())
		}
		e.members = append(e.members, m)
	}
	if err := e.waitHealthy(ctx); err != nil {
		return nil, errors.Join(err, e.Close())
	}
	return e, nil
}

func startMember(program, dir, name string, args []string) (*etcdMember, error) {
	m := &etcdMember{log: filepath.Join(dir, "etcd-"+name+".log"), ended: make(chan struct{})}
	log, err := os.Create(m.log)
	if err != nil {
		return nil, fmt.Errorf("etcd: log: %w", err)
	}
	defer log.Close()
	m.cmd = exec.Command(program, append([]string{"--name", name, "--data-dir", filepath.Join(dir, "etcd-"+name)}, args...)...)
	m.cmd.Stdout, m.cmd.Stderr = log, log
	m.cmd.Env = append(os.Environ(), "ETCD_UNSUPPORTED_ARCH=arm64") // 3.4 wants to be asked twice there
	if err := m.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start etcd: %w", err)
	}
	go func() {
		defer close(m.ended)
		_ = m.cmd.Wait()
	}()
	return m, nil
}

// waitHealthy asks each member until it says it has a leader and can write.
func (e *Etcd) waitHealthy(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, etcdStart)
	defer cancel()
	for i, addr := range e.clients {
		for {
			text, err := get(ctx, "http://"+addr+"/health")
			if err == nil && strings.Contains(text, `"true"`) {
				break
			}
			select {
			case <-ctx.Done():
				return fmt.Errorf("etcd member %d is not healthy after %s: %s", i, etcdStart, lastLine(e.members[i].log))
			case <-e.members[i].ended:
				return fmt.Errorf("etcd member %d ended: %s", i, lastLine(e.members[i].log))
			case <-time.After(50 * time.Millisecond):
			}
		}
	}
	return nil
}

// Close ends the members and waits for them; one that does not go is killed.
func (e *Etcd) Close() error {
	for _, m := range e.members {
		_ = m.cmd.Process.Signal(syscall.SIGTERM)
	}
	patience := time.After(5 * time.Second)
	for _, m := range e.members {
		select {
		case <-m.ended:
		case <-patience:
			_ = m.cmd.Process.Kill()
			<-m.ended
			patience = time.After(0)
		}
	}
	return nil
}

// Puts is a side: clients in a closed loop, each putting values of size bytes
// through connections (0: EtcdConnections, never more than clients) spread
// over the members; a put is acknowledged when a majority has synced it. Its
// value is puts/s.
func (e *Etcd) Puts(clients, size, connections int) Side {
	if connections == 0 {
		connections = EtcdConnections
	}
	connections = min(connections, clients)
	name := fmt.Sprintf("etcd %s put %d B, %d clients, %d connections", e.Version, size, clients, connections)
	return Side{Name: name, Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		load, counters, err := e.put(ctx, window, clients, size, connections)
		return Sample{Value: load.PerSecond(), Latency: &load.Latency, Counters: counters}, err
	}}
}

// Ack is a side: one client putting values of size bytes on one kept
// connection to one member. Its value is the p50 in ms.
func (e *Etcd) Ack(size int) Side {
	name := fmt.Sprintf("etcd %s put %d B, one client", e.Version, size)
	return Side{Name: name, Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		load, counters, err := e.put(ctx, window, 1, size, 1)
		return Sample{Value: Milliseconds(load.Latency.P50), Latency: &load.Latency, Counters: counters}, err
	}}
}

func (e *Etcd) put(ctx context.Context, window time.Duration, clients, size, connections int) (Load, map[string]float64, error) {
	conns, err := e.dial(ctx, connections)
	if err != nil {
		return Load{}, nil, err
	}
	defer closeAll(conns)
	before, err := e.syncs(ctx)
	if err != nil {
		return Load{}, nil, err
	}
	cpuBefore, err := e.cpu()
	if err != nil {
		return Load{}, nil, err
	}
	value := make([]byte, size)
	load, err := ClosedLoop(ctx, window, clients, func(ctx context.Context, client, n int) error {
		key := fmt.Sprintf("bench/%04d/%04d", client, n%1000)
		_, err := conns[client%len(conns)].call(ctx, putPath, putRequest(key, value))
		return err
	})
	if err != nil {
		return Load{}, nil, fmt.Errorf("put: %w", err)
	}
	after, err := e.syncs(ctx)
	if err != nil {
		return Load{}, nil, err
	}
	cpuAfter, err := e.cpu()
	if err != nil {
		return Load{}, nil, err
	}
	perMember := (after - before) / etcdMembers
	return load, map[string]float64{
		"log syncs a member per 1,000":    perMember / float64(load.Ops) * 1000,
		"CPU ms of all members per 1,000": Milliseconds(cpuAfter-cpuBefore) / float64(load.Ops) * 1000,
	}, nil
}

// cpu is the processor time of all members.
func (e *Etcd) cpu() (sum time.Duration, err error) {
	for i, m := range e.members {
		d, err := cpuOf(m.cmd.Process.Pid)
		if err != nil {
			return 0, fmt.Errorf("processor time of etcd member %d: %w", i, err)
		}
		sum += d
	}
	return sum, nil
}

func (e *Etcd) dial(ctx context.Context, n int) ([]*grpcConn, error) {
	var conns []*grpcConn
	for i := range n {
		c, err := dialGRPC(ctx, e.clients[i%len(e.clients)])
		if err != nil {
			closeAll(conns)
			return nil, fmt.Errorf("dial etcd: %w", err)
		}
		conns = append(conns, c)
	}
	return conns, nil
}

func closeAll(conns []*grpcConn) {
	for _, c := range conns {
		c.close()
	}
}

// syncs reads how often the members have synced their logs, in all.
func (e *Etcd) syncs(ctx context.Context) (float64, error) {
	const name = "etcd_disk_wal_fsync_duration_seconds_count"
	sum := 0.0
	for _, addr := range e.clients {
		text, err := get(ctx, "http://"+addr+"/metrics")
		if err != nil {
			return 0, fmt.Errorf("etcd metrics: %w", err)
		}
		v, err := metric(text, name)
		if err != nil {
			return 0, fmt.Errorf("etcd metrics: %w", err)
		}
		sum += v
	}
	return sum, nil
}

// metric finds one value in Prometheus text.
func metric(text, name string) (float64, error) {
	for line := range strings.Lines(text) {
		if value, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(value), 64)
		}
	}
	return 0, fmt.Errorf("no %s", name)
}

// putRequest encodes etcdserverpb.PutRequest: key is field 1, value field 2.
func putRequest(key string, value []byte) []byte {
	b := make([]byte, 0, len(key)+len(value)+2+2*binary.MaxVarintLen32)
	b = binary.AppendUvarint(append(b, 1<<3|2), uint64(len(key)))
	b = append(b, key...)
	b = binary.AppendUvarint(append(b, 2<<3|2), uint64(len(value)))
	return append(b, value...)
}

// freePorts finds ports nobody listens on now. Another process can take one
// before etcd does; then etcd says so and the bench fails.
func freePorts(n int) ([]int, error) {
	var ports []int
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, fmt.Errorf("find a free port: %w", err)
		}
		defer l.Close() // all at the end, so that none is found twice
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

func get(ctx context.Context, url string) (string, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return "", err
	}
	answer, err := http.DefaultClient.Do(req)
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(io.LimitReader(answer.Body, 4<<20))
	if err != nil {
		return "", err
	}
	return string(text), nil
}

func lastLine(path string) string {
	f, err := os.Open(path)
	if err != nil {
		return err.Error()
	}
	defer f.Close()
	last := "(it said nothing)"
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		last = lines.Text()
	}
	return last
}

// etcdAck is what a durable put costs etcd on this machine.
func etcdAck(ctx context.Context, env Env) ([]Result, error) {
	return withEtcd(ctx, env, func(e *Etcd) (Result, error) {
		return Pair(ctx, env.Config("etcd-ack", "ms"), e.Ack(256), SyncAndRTT(env.Dir))
	})
}

func etcdConns(ctx context.Context, env Env) ([]Result, error) {
	return withEtcd(ctx, env, func(e *Etcd) (Result, error) {
		return Pair(ctx, env.Config("etcd-conns", "puts/s"), e.Puts(64, 256, 0), e.Puts(64, 256, 64))
	})
}

// withEtcd runs one comparison beside a fresh cluster.
func withEtcd(ctx context.Context, env Env, compare func(*Etcd) (Result, error)) ([]Result, error) {
	e, err := StartEtcd(ctx, env.Dir)
	if err != nil {
		return nil, err
	}
	r, err := compare(e)
	return []Result{r}, errors.Join(err, e.Close())
}

package bench

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

const fleetStart = 60 * time.Second

// A Fleet is some nodes of ours, each a process of its own on loopback, all of
// them voters: TLS, fsync and timers as they come.
type Fleet struct {
	program string
	dir     string
	slots   int // of each node
	Nodes   []*FleetNode
}

// A FleetNode is one process. Its data folder outlives it: it can be started again.
type FleetNode struct {
	Name, Data string
	args       []string
	cmd        *exec.Cmd
	ended      chan struct{} // closed when the process has been reaped
	api        *api.Client
}

// StartFleet starts nodes below dir and returns when all of them vote.
func StartFleet(ctx context.Context, env Env, nodes int) (*Fleet, error) {
	f := &Fleet{program: env.Program, dir: env.Dir, slots: cmp.Or(env.slots, 64)}
	if f.program == "" {
		return nil, &Missing{"the muster program", "its nodes are processes of their own"}
	}
	for i := range nodes {
		if err := f.add(ctx, i); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	if nodes > 1 {
		if err := f.promote(ctx); err != nil {
			return nil, errors.Join(err, f.Close())
		}
	}
	return f, nil
}

func (f *Fleet) add(ctx context.Context, i int) error {
	n := &FleetNode{Name: string(rune('a' + i)), Data: filepath.Join(f.dir, string(rune('a'+i)))}
	n.api = &api.Client{Socket: n.Socket(), Timeout: 20 * time.Second}
	n.args = []string{"up", "--data", n.Data, "--name", n.Name, "--label", "always-on=true", "--slots", strconv.Itoa(f.slots)}
	first := n.args
	if i > 0 {
		t, err := api.Decode[api.TokenAnswer](f.Nodes[0].api.Post(ctx, "/v1/token", api.TokenOptions{Role: "node", TTL: 3600}))
		if err != nil {
			return fmt.Errorf("token for node %s: %w", n.Name, err)
		}
		first = append(append([]string{}, n.args...), "--join", t.Token)
	}
	f.Nodes = append(f.Nodes, n)
	return n.start(ctx, f.program, first)
}

// Socket is the node's door for its user.
func (n *FleetNode) Socket() string { return filepath.Join(n.Data, "muster.sock") }

// Start starts a node that was ended; it returns when its API answers.
func (f *Fleet) Start(ctx context.Context, n *FleetNode) error {
	return n.start(ctx, f.program, n.args)
}

func (n *FleetNode) start(ctx context.Context, program string, args []string) error {
	ctx, cancel := context.WithTimeout(ctx, fleetStart)
	defer cancel()
	path := n.Data + ".log"
	log, err := os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("node %s: log: %w", n.Name, err)
	}
	defer log.Close()
	n.cmd = exec.Command(program, args...)
	n.cmd.Stdout, n.cmd.Stderr = log, log
	if err := n.cmd.Start(); err != nil {
		return fmt.Errorf("start node %s: %w", n.Name, err)
	}
	ended, cmd := make(chan struct{}), n.cmd
	n.ended = ended
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	for {
		if _, err := n.api.Get(ctx, "/v1/info", nil); err == nil {
			return nil
		}
		select {
		case <-ended:
			return fmt.Errorf("node %s ended: %s", n.Name, lastLine(path))
		case <-ctx.Done():
			return fmt.Errorf("node %s does not answer after %s: %s", n.Name, fleetStart, lastLine(path))
		case <-time.After(2 * time.Millisecond):
		}
	}
}

// Stop ends a node in order, or kills it when it does not go.
func (n *FleetNode) Stop() {
	if n.ended == nil {
		return
	}
	_ = n.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-n.ended:
	case <-time.After(10 * time.Second):
		_ = n.cmd.Process.Kill()
		<-n.ended
	}
	n.ended = nil
}

// Close ends all nodes. Their folders are the bench's to remove.
func (f *Fleet) Close() error {
	for i := len(f.Nodes) - 1; i >= 0; i-- { // the first one leads, as a rule
		f.Nodes[i].Stop()
	}
	return nil
}

// promote makes every node a voter, so that nothing waits for a node to have been stable.
func (f *Fleet) promote(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, fleetStart)
	defer cancel()
	for _, n := range f.Nodes[1:] {
		if _, err := f.Do(ctx, f.Nodes[0], board.VNodeVote, board.NodeVote{Node: n.Name, Vote: true}); err != nil {
			return fmt.Errorf("promote node %s: %w", n.Name, err)
		}
	}
	for {
		s, err := f.Status(ctx, f.Nodes[0])
		if err == nil && s.Voters == len(f.Nodes) {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d nodes vote after %s (%v)", s.Voters, len(f.Nodes), fleetStart, err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// Do has one request executed through a node.
func (f *Fleet) Do(ctx context.Context, n *FleetNode, verb string, args any) (map[string]any, error) {
	a, err := n.api.Do(ctx, verb, args, "", false)
	if err != nil {
		return nil, err
	}
	out := map[string]any{}
	if len(a.Data) > 0 {
		err = json.Unmarshal(a.Data, &out)
	}
	return out, err
}

// Status is the fleet as one node sees it.
func (f *Fleet) Status(ctx context.Context, n *FleetNode) (api.Status, error) {
	return api.Decode[api.Status](n.api.Get(ctx, "/v1/status", nil))
}

// Sort gives who leads now, and another node (itself in a fleet of one).
func (f *Fleet) Sort(ctx context.Context) (leader, other *FleetNode, err error) {
	s, err := f.Status(ctx, f.Nodes[0])
	if err != nil {
		return nil, nil, err
	}
	for _, n := range f.Nodes {
		if n.Name == s.Leader {
			leader = n
		} else {
			other = n
		}
	}
	if leader == nil {
		return nil, nil, fmt.Errorf("the fleet has no leader (%q)", s.Leader)
	}
	if other == nil {
		other = leader
	}
	return leader, other, nil
}

// Cards files cards that nobody is assigned to, and returns their ids.
func (f *Fleet) Cards(ctx context.Context, n int) ([]string, error) {
	var ids []string
	for i := range n {
		title, body := fmt.Sprintf("card %d", i), strings.Repeat("b", 600)
		data, err := f.Do(ctx, f.Nodes[i%len(f.Nodes)], board.VCardAdd, board.CardAdd{Triage: true, CardFields: board.CardFields{Title: &title, Body: &body}})
		if err != nil {
			return nil, fmt.Errorf("file a card: %w", err)
		}
		id, _ := data["id"].(string)
		ids = append(ids, id)
	}
	return ids, nil
}

// counted are the counters of a fleet's figures: what is summed over the nodes
// is divided by their number, so that the figures are of one node.
func (f *Fleet) counted(ctx context.Context) (map[string]float64, error) {
	out := map[string]float64{}
	for _, n := range f.Nodes {
		c, err := api.Decode[map[string]uint64](n.api.Get(ctx, "/v1/counters", nil))
		if err != nil {
			return nil, fmt.Errorf("counters of node %s: %w", n.Name, err)
		}
		nodes := float64(len(f.Nodes))
		out["log syncs a node per 1,000"] += float64(c["log_syncs"]) / nodes
		out["log bytes a node per 1,000"] += float64(c["log_bytes"]) / nodes
		out["entries per 1,000"] += float64(c["entries"]) / nodes
		out["keys written per 1,000"] += float64(c["keys"]) / nodes
		cpu, err := cpuOf(n.cmd.Process.Pid)
		if err != nil {
			return nil, fmt.Errorf("processor time of node %s: %w", n.Name, err)
		}
		out["CPU ms of all nodes per 1,000"] += Milliseconds(cpu)
	}
	return out, nil
}

// clockTicks is USER_HZ, which is 100 on every Linux that Go runs on.
const clockTicks = 100

// cpuOf is the processor time a process has used, 0 where /proc does not say.
func cpuOf(pid int) (time.Duration, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if errors.Is(err, os.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	_, rest, _ := strings.Cut(string(b), ") ") // the name may hold spaces
	fields := strings.Fields(rest)
	if len(fields) < 13 {
		return 0, fmt.Errorf("stat of process %d: %q", pid, b)
	}
	var ticks int64
	for _, text := range fields[11:13] {
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return 0, fmt.Errorf("stat of process %d: %w", pid, err)
		}
		ticks += n
	}
	return time.Duration(ticks) * time.Second / clockTicks, nil
}

// anonymous is RssAnon of a process in bytes: memory that is its own, without
// the mapped file, which is the kernel's to drop.
func anonymous(pid int) (int64, error) {
	f, err := os.Open(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, &Missing{"linux", "the memory of a process is read from /proc"}
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		if v, ok := strings.CutPrefix(lines.Text(), "RssAnon:"); ok {
			return kilobytes(strings.TrimSpace(v)) * 1024, nil
		}
	}
	return 0, fmt.Errorf("process %d: no RssAnon", pid)
}

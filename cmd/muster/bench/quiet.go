package bench

import (
	"bytes"
	"context"
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
)

// quietBoard is the workflow of a board whose sessions wait for the end of a
// pipe: whoever holds it for writing lets them go, also by dying.
const quietBoard = `
version: 1
name: default
extends: default
profiles:
  quiet: {harness: command, args: [cat, %[1]s]}
  pane: {harness: command, surface: pane, args: [cat, %[1]s]}
`

// quietTime bounds the starting of all quiet sessions.
const quietTime = 5 * time.Minute

// quiet is a fleet whose sessions wait and say nothing.
type quiet struct {
	fleet    *Fleet
	sessions int
	who      string // the profile: quiet, or pane
	pipe     *os.File
}

// newQuiet starts sessions in a fleet and waits until each has its keeper.
func newQuiet(ctx context.Context, f *Fleet, sessions int, who string) (*quiet, error) {
	ctx, cancel := context.WithTimeout(ctx, quietTime)
	defer cancel()
	path := filepath.Join(f.dir, "quiet")
	if err := syscall.Mkfifo(path, 0o600); err != nil {
		return nil, fmt.Errorf("pipe that sessions wait at: %w", err)
	}
	pipe, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("pipe that sessions wait at: %w", err)
	}
	q := &quiet{f, sessions, who, pipe}
	if err := q.fill(ctx, path); err != nil {
		return nil, errors.Join(err, pipe.Close())
	}
	return q, nil
}

func (q *quiet) fill(ctx context.Context, path string) error {
	at := q.fleet.Nodes[0]
	if _, err := q.fleet.Do(ctx, at, board.VBoardApply, board.BoardApply{Board: "default", YAML: fmt.Sprintf(quietBoard, path)}); err != nil {
		return err
	}
	title := "wait"
	for range q.sessions {
		if _, err := q.fleet.Do(ctx, at, board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title, Assignee: &q.who}}); err != nil {
			return fmt.Errorf("file a card: %w", err)
		}
	}
	for {
		keepers, err := q.keepers()
		if err != nil {
			return err
		}
		if len(keepers) >= q.sessions {
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%d of %d sessions run: %w", len(keepers), q.sessions, ctx.Err())
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// tmux are the tmux servers of the fleet's nodes.
func (q *quiet) tmux() (pids []int) {
	for _, n := range q.fleet.Nodes {
		out, err := exec.Command("tmux", "-S", filepath.Join(n.Data, "tmux", "s"), "display-message", "-p", "#{pid}").Output()
		if pid, perr := strconv.Atoi(strings.TrimSpace(string(out))); err == nil && perr == nil {
			pids = append(pids, pid)
		}
	}
	return pids
}

// endTmux ends them: panes, and their server, outlive a node.
func (q *quiet) endTmux() {
	for _, n := range q.fleet.Nodes {
		_ = exec.Command("tmux", "-S", filepath.Join(n.Data, "tmux", "s"), "kill-server").Run() // it may have none
	}
}

// keepers are the keepers of the fleet that hold a session: children of a node, or of its tmux server, with a child of
// their own.
func (q *quiet) keepers() ([]int, error) {
	nodes := map[int]bool{}
	for _, n := range q.fleet.Nodes {
		nodes[n.cmd.Process.Pid] = true
	}
	if q.who == "pane" {
		for _, pid := range q.tmux() {
			nodes[pid] = true
		}
	}
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, &Missing{"linux", "processes are read from /proc"}
	}
	parent := map[int]int{}
	for _, e := range entries {
		if pid, err := strconv.Atoi(e.Name()); err == nil {
			if v, err := statusOf(pid, "PPid"); err == nil { // it may end meanwhile
				parent[pid] = int(v)
			}
		}
	}
	var keepers []int
	for _, keeper := range parent {
		if nodes[parent[keeper]] {
			keepers = append(keepers, keeper)
		}
	}
	return keepers, nil
}

// statusOf reads a number from a process's status.
func statusOf(pid int, name string) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	return fieldOf(b, name)
}

func fieldOf(text []byte, name string) (int64, error) {
	for line := range bytes.Lines(text) {
		if v, ok := strings.CutPrefix(string(line), name+":"); ok {
			n, _, _ := strings.Cut(strings.TrimSpace(v), " ")
			return strconv.ParseInt(n, 10, 64)
		}
	}
	return 0, fmt.Errorf("no %s in what the system says of a process", name)
}

// switches is how often all threads of a process were given a processor.
func switches(pid int) (int64, error) {
	tasks, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return 0, err
	}
	sum := int64(0)
	for _, t := range tasks {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/status", pid, t.Name()))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, err
		}
		for _, name := range []string{"voluntary_ctxt_switches", "nonvoluntary_ctxt_switches"} {
			n, err := fieldOf(b, name)
			if err != nil {
				return 0, err
			}
			sum += n
		}
	}
	return sum, nil
}

// private is the memory that a process shares with nobody, in bytes.
func private(pid int) (int64, error) {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/smaps_rollup", pid))
	if err != nil {
		return 0, err
	}
	clean, err1 := fieldOf(b, "Private_Clean")
	dirty, err2 := fieldOf(b, "Private_Dirty")
	return (clean + dirty) * 1024, errors.Join(err1, err2)
}

// side is what one node uses while nothing happens, in ms of processor time a second.
func (q *quiet) side(n *FleetNode, where string) Side {
	return Side{Name: fmt.Sprintf("processor time of %s, %d nodes, %d quiet sessions", where, len(q.fleet.Nodes), q.sessions), Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		keepers, err := q.keepers()
		if err != nil {
			return Sample{}, err
		}
		if len(keepers) < q.sessions {
			return Sample{}, fmt.Errorf("%d of %d sessions run: what is quiet has ended", len(keepers), q.sessions)
		}
		before, err := sum(keepers, switches)
		if err != nil {
			return Sample{}, err
		}
		servers := q.tmux()
		drawn, err := sum(servers, ticks)
		if err != nil {
			return Sample{}, err
		}
		used, err := usedMeanwhile(ctx, window, []int{n.cmd.Process.Pid})
		if err != nil {
			return Sample{}, err
		}
		drawing, err := sum(servers, ticks)
		if err != nil {
			return Sample{}, err
		}
		after, err1 := sum(keepers, switches)
		memory, err2 := sum(keepers, private)
		own, err3 := anonymous(n.cmd.Process.Pid)
		return Sample{Value: used, Counters: map[string]float64{
			"context switches of all keepers in the window": float64(after - before),
			"private MB of a keeper (mean)":                 float64(memory) / float64(len(keepers)) / 1e6,
			"RssAnon of the node, MB":                       float64(own) / 1e6,
			"processor time of tmux, ms in the window":      Milliseconds(time.Duration(drawing - drawn)),
		}}, errors.Join(err1, err2, err3)
	}}
}

func sum(pids []int, of func(int) (int64, error)) (all int64, err error) {
	for _, pid := range pids {
		n, err := of(pid)
		if err != nil {
			return 0, fmt.Errorf("process %d: %w", pid, err)
		}
		all += n
	}
	return all, nil
}

// ticks is the processor time of a process so far, in ns.
func ticks(pid int) (int64, error) {
	d, err := cpuOf(pid)
	return int64(d), err
}

// usedMeanwhile is the processor time that processes use in a window, in ms a second for one of them.
func usedMeanwhile(ctx context.Context, window time.Duration, pids []int) (float64, error) {
	before, err := sum(pids, ticks)
	if err != nil {
		return 0, err
	}
	from := time.Now()
	select {
	case <-time.After(window):
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	after, err := sum(pids, ticks)
	used := Milliseconds(time.Duration(after-before)) / float64(len(pids)) / time.Since(from).Seconds()
	return max(used, 0.001), err // a ratio wants more than nothing
}

// idleMember is the baseline: a member of an etcd to which nobody speaks.
func (e *Etcd) idleMember() Side {
	var pids []int
	for _, m := range e.members {
		pids = append(pids, m.cmd.Process.Pid)
	}
	return Side{Name: "processor time of an etcd member, idle (mean of three)", Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		used, err := usedMeanwhile(ctx, window, pids)
		return Sample{Value: used}, err
	}}
}

// quietly measures a fleet at rest against an etcd at rest.
func quietly(ctx context.Context, env Env, nodes, sessions int, who string, measure func(q *quiet, e *Etcd) ([]Result, error)) (all []Result, err error) {
	e, err := StartEtcd(ctx, env.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	env.slots = sessions
	f, err := StartFleet(ctx, env, nodes)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	q, err := newQuiet(ctx, f, sessions, who)
	if err != nil {
		return nil, err
	}
	defer q.endTmux()
	defer q.pipe.Close() // before the nodes end: the sessions end with it
	return measure(q, e)
}

// idleNodes is P12: five nodes and 100 quiet sessions.
func idleNodes(ctx context.Context, env Env) ([]Result, error) {
	return quietly(ctx, env, 5, 100, "quiet", func(q *quiet, e *Etcd) ([]Result, error) {
		leader, other, err := q.fleet.Sort(ctx)
		if err != nil {
			return nil, err
		}
		r, err := Pair(ctx, env.Config("idle-leader", "ms/s", Goal{Name: "gate", AtMost: 2}, Goal{Name: "target", AtMost: 0.5}, Goal{Name: "moonshot", AtMost: 0.2}), q.side(leader, "the leader"), e.idleMember())
		all := []Result{r}
		if err != nil {
			return all, err
		}
		r, err = Pair(ctx, env.Config("idle-follower", "ms/s", Goal{Name: "gate", AtMost: 1}, Goal{Name: "target", AtMost: 0.5}, Goal{Name: "moonshot", AtMost: 0.2}), q.side(other, "another node"), e.idleMember())
		return append(all, r), err
	})
}

// quietSessions is one machine full of sessions that wait.
func quietSessions(ctx context.Context, env Env) ([]Result, error) {
	return quietly(ctx, env, 1, 200, "quiet", func(q *quiet, e *Etcd) ([]Result, error) {
		r, err := Pair(ctx, env.Config("sessions", "ms/s"), q.side(q.fleet.Nodes[0], "the node"), e.idleMember())
		return []Result{r}, err
	})
}

// paneSettles is the time until panes in which nothing moves are known as idle: before that each is news.
const paneSettles = 30 * time.Second

// quietPanes is one machine full of panes in which nothing moves.
func quietPanes(ctx context.Context, env Env) ([]Result, error) {
	if _, err := exec.LookPath("tmux"); err != nil {
		return nil, &Missing{"tmux", "sessions in panes are its"}
	}
	return quietly(ctx, env, 1, 200, "pane", func(q *quiet, e *Etcd) ([]Result, error) {
		select {
		case <-time.After(paneSettles):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
		r, err := Pair(ctx, env.Config("panes", "ms/s"), q.side(q.fleet.Nodes[0], "the node"), e.idleMember())
		return []Result{r}, err
	})
}

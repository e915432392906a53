package bench

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"

	"muster/board"
	"muster/raftstore"
)

// failoverClients keep a cluster busy while its leaders are killed.
const failoverClients = 16

// killsASecond makes of a window of 5 s 15 kills: of seven windows more than a hundred.
const killsASecond = 3

// probeEvery is how often somebody asks after a kill whether events are taken
// again, whatever became of those who asked before.
const probeEvery = 10 * time.Millisecond

// failoverTime bounds one kill, from it until all is as before.
const failoverTime = 2 * time.Minute

// A crowd is a cluster whose leaders are ended: ours, or etcd.
type crowd interface {
	size() int
	leader(ctx context.Context) (int, error)
	// event has one event committed through a member; it returns at once when that is impossible.
	event(ctx context.Context, member, n int) error
	// end ends a member by a signal.
	end(member int, by syscall.Signal) error
	// back starts it again and returns when all members follow one leader.
	back(ctx context.Context, member int) error
}

// failovers is a crowd under load, and what is done to its leaders.
type failovers struct {
	crowd crowd
	by    syscall.Signal
	// session, unless nil, has a session started through a member and tells when it ran.
	session func(ctx context.Context, member int) (time.Time, error)
}

// side ends leaders; its value is the median time in ms from a leader's end until
// an event that was sent after it is committed.
func (x *failovers) side(name string) Side {
	return Side{Name: name, Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		stop := x.load(ctx)
		defer stop()
		var events, sessions []time.Duration
		for range max(1, int(killsASecond*window/time.Second)) {
			event, session, err := x.once(ctx)
			if err != nil {
				return Sample{}, err
			}
			events = append(events, event)
			if x.session != nil {
				sessions = append(sessions, session)
			}
		}
		sample := sampleOf(LatencyOf(events))
		sample.Counters = map[string]float64{"leaders ended in the window": float64(len(events)), "slowest ms to an event": Milliseconds(sample.Latency.Max)}
		if len(sessions) > 0 {
			l := LatencyOf(sessions)
			sample.Counters["ms to a started session (median)"] = Milliseconds(l.P50)
			sample.Counters["slowest ms to a started session"] = Milliseconds(l.Max)
		}
		return sample, nil
	}}
}

// load lets clients send events, each at a member of its own; who gets none done asks the next.
func (x *failovers) load(ctx context.Context) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var clients sync.WaitGroup
	for client := range failoverClients {
		clients.Go(func() {
			for n, at := 0, client; ctx.Err() == nil; n++ {
				one, done := context.WithTimeout(ctx, 10*time.Second)
				if x.crowd.event(one, at%x.crowd.size(), client*1_000_000+n) != nil {
					at++
					select {
					case <-time.After(probeEvery):
					case <-ctx.Done():
					}
				}
				done()
			}
		})
	}
	return func() { cancel(); clients.Wait() }
}

// once ends the leader, times the next event and the next session, and brings it back.
func (x *failovers) once(ctx context.Context) (event, session time.Duration, err error) {
	ctx, cancel := context.WithTimeout(ctx, failoverTime)
	defer cancel()
	old, err := x.crowd.leader(ctx)
	if err != nil {
		return 0, 0, err
	}
	from := time.Now()
	if err := x.crowd.end(old, x.by); err != nil {
		return 0, 0, err
	}
	var begun errgroup.Group
	if x.session != nil {
		begun.Go(func() error {
			at, err := x.session(ctx, (old+1)%x.crowd.size())
			session = at.Sub(from)
			return err
		})
	}
	if err := x.committed(ctx, old); err != nil {
		return 0, 0, err
	}
	event = time.Since(from)
	if err := begun.Wait(); err != nil {
		return 0, 0, err
	}
	return event, session, x.crowd.back(ctx, old)
}

// committed returns when one event is committed that was sent after the leader's
// end, through any other member.
func (x *failovers) committed(ctx context.Context, old int) error {
	ctx, cancel := context.WithCancel(ctx)
	var asked sync.WaitGroup
	defer asked.Wait()
	defer cancel()
	done := make(chan struct{}, 1)
	tick := time.NewTicker(probeEvery)
	defer tick.Stop()
	for n := 0; ; n++ {
		for i := range x.crowd.size() {
			if i == old {
				continue
			}
			asked.Go(func() {
				if x.crowd.event(ctx, i, n) == nil {
					select {
					case done <- struct{}{}:
					default:
					}
				}
			})
		}
		select {
		case <-done:
			return nil
		case <-ctx.Done():
			return fmt.Errorf("no event is committed after the leader's end: %w", ctx.Err())
		case <-tick.C:
		}
	}
}

// ours is a fleet as a crowd.
type ours struct {
	*Fleet
	posts Posts
}

func (o *ours) size() int { return len(o.Nodes) }

func (o *ours) leader(ctx context.Context) (int, error) {
	for {
		for i, n := range o.Nodes {
			s, err := o.Status(ctx, n)
			if err == nil && s.Quorum && s.Leader == n.Name {
				return i, nil
			}
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("nobody leads: %w", ctx.Err())
		case <-time.After(probeEvery):
		}
	}
}

func (o *ours) event(ctx context.Context, member, n int) error {
	conn, err := DialHTTP(ctx, "unix", o.Nodes[member].Socket())
	if err != nil {
		return err
	}
	defer conn.Close()
	defer context.AfterFunc(ctx, func() { _ = conn.Close() })()
	status, answer, err := conn.Post(ctx, o.posts.Path, o.posts.Body(n, n))
	if err != nil {
		return err
	}
	return o.posts.OK(status, answer)
}

func (o *ours) end(member int, by syscall.Signal) error {
	return o.Nodes[member].cmd.Process.Signal(by)
}

func (o *ours) back(ctx context.Context, member int) error {
	n := o.Nodes[member]
	select {
	case <-n.ended:
	case <-ctx.Done():
		return fmt.Errorf("node %s does not end: %w", n.Name, ctx.Err())
	}
	if err := o.Start(ctx, n); err != nil {
		return err
	}
	for {
		most, least := uint64(0), ^uint64(0)
		followed := 0
		for _, n := range o.Nodes {
			s, err := o.Status(ctx, n)
			if err == nil && s.Quorum && s.Leader != "" {
				followed++
			}
			most, least = max(most, s.Seq), min(least, s.Seq)
		}
		if followed == len(o.Nodes) && most-least < 1000 { // events go on meanwhile
			return nil
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("node %s does not come back: %w", n.Name, ctx.Err())
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// sessionOf starts a session on a node that lives, and gives the moment of its
// first word. Words of cards whose answer was lost are passed over.
func (s *starter) sessionOf(ctx context.Context, member int) (time.Time, error) {
	n := s.fleet.Nodes[member]
	title, where := "say a word", n.Name
	card := ""
	for card == "" {
		data, err := s.fleet.Do(ctx, n, board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title, Assignee: &s.who, Machine: &where}})
		card, _ = data["id"].(string)
		if err == nil {
			break
		}
		select { // it says that nobody leads
		case <-ctx.Done():
			return time.Time{}, err
		case <-time.After(probeEvery):
		}
	}
	end, _ := ctx.Deadline()
	if err := s.pipe.SetReadDeadline(end); err != nil {
		return time.Time{}, fmt.Errorf("pipe for the sessions' words: %w", err)
	}
	for {
		line, err := s.words.ReadString('\n')
		if err != nil {
			return time.Time{}, fmt.Errorf("the session of %s said no word: %w", card, err)
		}
		if strings.TrimSpace(line) == card {
			return time.Now(), nil
		}
	}
}

// againstTimeout are the same windows held against the election timeout.
func againstTimeout(r Result, cfg Config, timeout time.Duration) Result {
	t := Result{Name: cfg.Name, Unit: r.Unit, NameA: r.NameA, NameB: "the election timeout", WindowLength: r.WindowLength, DriftLimit: r.DriftLimit}
	for _, w := range r.Windows {
		w.B = Sample{Value: Milliseconds(timeout)}
		w.Ratio = w.A.Value / w.B.Value
		t.Windows = append(t.Windows, w)
	}
	t.judge(cfg)
	return t
}

// failover is P5a: the leader of three nodes killed -9 under load, against etcd's
// and against the election timeout.
func failover(ctx context.Context, env Env) (all []Result, err error) {
	e, err := StartEtcd(ctx, env.Dir)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, e.Close()) }()
	return withFleet(ctx, env, 3, func(f *Fleet, p Posts) ([]Result, error) {
		s, err := newStarter(ctx, f)
		if err != nil {
			return nil, err
		}
		defer s.pipe.Close()
		mine := &failovers{crowd: &ours{f, p}, by: syscall.SIGKILL, session: s.sessionOf}
		theirs, err := newEtcdCrowd(ctx, e)
		if err != nil {
			return nil, err
		}
		defer theirs.close()
		other := &failovers{crowd: theirs, by: syscall.SIGKILL}
		cfg := env.Config("failover", "ms", Goal{Name: "gate", AtMost: 1.5}, Goal{Name: "target", AtMost: 0.6}, Goal{Name: "moonshot", AtMost: 0.25})
		cfg.Warmup = min(cfg.Warmup, time.Second/killsASecond)
		r, err := Pair(ctx, cfg, mine.side(fmt.Sprintf("kill -9 of the leader of three nodes, %d clients -> an event sent after it is committed", failoverClients)),
			other.side(fmt.Sprintf("the same with etcd %s's leader", e.Version)))
		if err != nil {
			return []Result{r}, err
		}
		cfg = env.Config("failover-timeout", "ms", Goal{Name: "gate", AtMost: 4}, Goal{Name: "target", AtMost: 2.5}, Goal{Name: "moonshot", AtMost: 2})
		return []Result{r, againstTimeout(r, cfg, raftstore.LAN().Election)}, nil
	})
}

// plannedStop is P5b: the leader told to stop, against one commit.
func plannedStop(ctx context.Context, env Env) ([]Result, error) {
	return withFleet(ctx, env, 3, func(f *Fleet, p Posts) ([]Result, error) {
		mine := &failovers{crowd: &ours{f, p}, by: syscall.SIGTERM}
		commit := Side{Name: "one client's event", Run: func(ctx context.Context, window time.Duration) (Sample, error) {
			leader, _, err := f.Sort(ctx)
			if err != nil {
				return Sample{}, err
			}
			return HTTPAck("", "unix", leader.Socket(), p).Run(ctx, window)
		}}
		cfg := env.Config("stop", "ms", Goal{Name: "gate", AtMost: 100}, Goal{Name: "target", AtMost: 20}, Goal{Name: "moonshot", AtMost: 10})
		cfg.Warmup = min(cfg.Warmup, time.Second/killsASecond)
		r, err := Pair(ctx, cfg, mine.side("SIGTERM to the leader of three nodes -> an event sent after it is committed"), commit)
		return []Result{r}, err
	})
}

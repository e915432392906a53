package launchertest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"muster/board/lease"
	"muster/launcher"
)

// Plan is what a session of the twin does.
type Plan struct {
	After    time.Duration // it ends by itself after this; below zero: never
	Code     int64
	Fails    string // it cannot be started, because of this
	Output   string // it says this, at once
	Stubborn bool   // TERM does not end it

	// Does is what it does while it lives: its answer is the exit code, and ctx ends with it; After and Code are not
	// looked at then.
	Does func(ctx context.Context) int64
}

// Runner is the twin of [launcher.Keepers]. Give Script and Now before use.
type Runner struct {
	Script func(*launcher.Spec) Plan
	Now    func() lease.Instant
	// Saw is told of each session when it begins to execute, and when it has ended; nil: nobody.
	Saw func(s *launcher.Spec, lives bool)

	mu   sync.Mutex
	live map[string]*session // by folder
	next int
}

// Running is the number of sessions that live.
func (r *Runner) Running() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.live)
}

// Start implements [launcher.Runner].
func (r *Runner) Start(dir string) (launcher.Session, error) {
	s := &session{r: r, dir: dir, stop: make(chan stopping, 1), kick: make(chan struct{}, 1), die: make(chan struct{}), up: make(chan struct{}), over: make(chan struct{})}
	go s.keep()
	return newHandle(s), nil
}

// Adopt implements [launcher.Runner].
func (r *Runner) Adopt(_ context.Context, dir string) (launcher.Session, error) {
	r.mu.Lock()
	s := r.live[dir]
	r.mu.Unlock()
	if s == nil {
		return nil, nil
	}
	return newHandle(s), nil
}

// End implements [launcher.Runner]: nothing of the twin outlives its keeper.
func (r *Runner) End(_ context.Context, dir string) error {
	lock, err := launcher.Hold(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	if e, err := launcher.ReadExit(dir); err != nil || e != nil && e.Boot != "" {
		return err
	}
	return launcher.WriteExit(dir, &launcher.Exit{Started: launcher.Used(dir), Error: "its keeper died before it", Boot: launcher.BootID(), At: r.Now(), Wall: time.Now().UnixMilli()})
}

// KillKeeper is kill -9 of the keeper of a folder, which takes its session
// along; false without one.
func (r *Runner) KillKeeper(dir string) bool {
	r.mu.Lock()
	s := r.live[dir]
	delete(r.live, dir)
	r.mu.Unlock()
	if s == nil {
		return false
	}
	close(s.die)
	<-s.over
	return true
}

type stopping struct {
	kill time.Duration
	why  string
}

// session is a keeper and what it keeps, in memory.
type session struct {
	r    *Runner
	dir  string
	spec *launcher.Spec

	stop chan stopping
	kick chan struct{} // the deadline has moved
	die  chan struct{}
	up   chan struct{} // executing
	over chan struct{} // the keeper is gone

	mu       sync.Mutex
	pid      int
	deadline lease.Instant
}

// keep is the life of a keeper.
func (s *session) keep() {
	defer close(s.over)
	lock, err := launcher.Hold(s.dir)
	if err != nil {
		return // another keeper's
	}
	defer lock.Close()
	if s.spec, err = launcher.ReadSpec(s.dir); err != nil || launcher.Used(s.dir) {
		return
	}
	plan := s.r.Script(s.spec)
	exit := &launcher.Exit{}
	check := launcher.LastCheck(s.dir, s.spec, s.r.Now())
	switch ok, why := lease.KeeperMayExec(check); {
	case plan.Fails != "":
		exit.Error = plan.Fails
	case !ok:
		exit.Refused, exit.Error = refusal(check), why
	default:
		if exit = s.execute(plan); exit == nil {
			return // killed: nobody writes a record
		}
	}
	exit.Boot, exit.At, exit.Wall = launcher.BootID(), s.r.Now(), time.Now().UnixMilli()
	if launcher.WriteExit(s.dir, exit) != nil {
		return // as a keeper on a full disk: an end without a record
	}
	s.r.mu.Lock()
	delete(s.r.live, s.dir)
	s.r.mu.Unlock()
}

func refusal(c lease.LastCheck) string {
	switch {
	case c.Void:
		return launcher.RefusedVoid
	case c.Estop:
		return launcher.RefusedEstop
	}
	return launcher.RefusedLate
}

// execute follows the session to its end; nil when its keeper was killed.
func (s *session) execute(plan Plan) *launcher.Exit {
	s.r.mu.Lock()
	if s.r.live == nil {
		s.r.live = map[string]*session{}
	}
	s.r.next++
	pid := 1<<30 + s.r.next // no process has it
	s.r.live[s.dir] = s
	s.r.mu.Unlock()
	if err := launcher.WriteProc(s.dir, &launcher.Proc{PID: pid, Boot: launcher.BootID(), Nonce: s.spec.Nonce}); err != nil {
		return &launcher.Exit{Error: err.Error()}
	}
	if err := os.WriteFile(filepath.Join(s.dir, launcher.LogFile), []byte(plan.Output), 0o600); err != nil {
		return &launcher.Exit{Error: err.Error()}
	}
	if s.r.Saw != nil {
		s.r.Saw(s.spec, true)
		defer s.r.Saw(s.spec, false)
	}
	s.mu.Lock()
	s.pid, s.deadline = pid, s.spec.Deadline
	s.mu.Unlock()
	close(s.up)
	return s.follow(plan)
}

func (s *session) follow(plan Plan) *launcher.Exit {
	begin, killAt, why := s.r.Now(), lease.Instant(0), ""
	did := s.do(&plan)
	defer did.end()
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		now := s.r.Now()
		s.mu.Lock()
		deadline := s.deadline
		s.mu.Unlock()
		look := lease.Instant(1 << 62)
		if deadline != 0 {
			due, at := lease.KeeperDue(deadline, s.spec.Kill, now)
			look = at
			if due != lease.DueNothing && killAt == 0 {
				killAt, why = deadline, "its lease ran out: this node had no contact with the fleet"
			}
		}
		if killAt != 0 {
			look = killAt
			if now >= killAt || !plan.Stubborn {
				return &launcher.Exit{Started: true, Signal: map[bool]string{true: "SIGKILL", false: "SIGTERM"}[plan.Stubborn], Error: why}
			}
		}
		if plan.After >= 0 {
			if now.Sub(begin) >= plan.After {
				code := plan.Code
				return &launcher.Exit{Started: true, Code: &code, Error: why}
			}
			look = min(look, begin.Add(plan.After))
		}
		timer.Reset(max(0, min(look.Sub(now), time.Hour)))
		select {
		case <-timer.C:
		case code := <-did.code:
			return &launcher.Exit{Started: true, Code: &code, Error: why}
		case <-s.kick:
		case st := <-s.stop:
			if killAt == 0 {
				killAt, why = s.r.Now().Add(st.kill), fmt.Sprintf("stopped: %s", st.why)
			}
		case <-s.die:
			return nil
		}
	}
}

// deed is what a session does by itself.
type deed struct {
	code chan int64
	end  func()
}

func (s *session) do(plan *Plan) deed {
	d := deed{code: make(chan int64, 1), end: func() {}}
	if plan.Does != nil {
		plan.After = -1
		ctx, cancel := context.WithCancel(context.Background())
		over := make(chan struct{})
		go func() {
			defer close(over)
			d.code <- plan.Does(ctx)
		}()
		d.end = func() { cancel(); <-over }
	}
	return d
}

// handle is one node's connection to a session.
type handle struct {
	s    *session
	once sync.Once
	shut chan struct{}
	done chan struct{}
}

func newHandle(s *session) *handle {
	h := &handle{s: s, shut: make(chan struct{}), done: make(chan struct{})}
	go func() {
		defer close(h.done)
		select {
		case <-s.over:
		case <-h.shut:
		}
	}()
	return h
}

var errGone = errors.New("the keeper is gone")

func (h *handle) PID() int {
	h.s.mu.Lock()
	defer h.s.mu.Unlock()
	return h.s.pid
}

func (h *handle) Keeper() int              { return 0 }
func (h *handle) Started() <-chan struct{} { return h.s.up }
func (h *handle) Done() <-chan struct{}    { return h.done }

func (h *handle) Extend(deadline lease.Instant) error {
	h.s.mu.Lock()
	if h.s.deadline != 0 {
		h.s.deadline = lease.Extend(h.s.deadline, deadline)
	}
	h.s.mu.Unlock()
	select {
	case h.s.kick <- struct{}{}:
	default:
	}
	return nil
}

func (h *handle) Stop(kill time.Duration, why string) error {
	select {
	case h.s.stop <- stopping{kill, why}:
	case <-h.s.over:
		return errGone
	default: // told already
	}
	return nil
}

func (h *handle) Close() {
	h.once.Do(func() { close(h.shut) })
	<-h.done
}

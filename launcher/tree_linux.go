package launcher

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// process is one line of the machine's process table.
type process struct {
	pid, ppid int
	start     int64 // ticks since boot, outside of any time namespace
	image     int64 // differs from program to program of one process (where its stack begins); 0: not told
	zombie    bool
}

// clockTicks per second in /proc; it is 100 on every Linux a Go program runs on.
const clockTicks = 100

// readProcess reads a process; ok is false when there is none.
func readProcess(pid int) (p process, ok bool) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return p, false
	}
	i := bytes.LastIndexByte(b, ')') // the name before may hold anything
	if i < 0 {
		return p, false
	}
	f := strings.Fields(string(b[i+1:]))
	if len(f) < 20 {
		return p, false
	}
	p.pid = pid
	p.zombie = f[0] == "Z" || f[0] == "X"
	p.ppid, _ = strconv.Atoi(f[1])
	p.start, _ = strconv.ParseInt(f[19], 10, 64)
	p.start -= timeOffset() * clockTicks
	if len(f) > 25 {
		p.image, _ = strconv.ParseInt(f[25], 10, 64)
	}
	return p, true
}

// timeOffset is how many seconds this process's boot clock is ahead of the
// machine's, by a time namespace: /proc shows start times moved by it.
var timeOffset = sync.OnceValue(func() int64 {
	mine, err1 := os.Readlink("/proc/self/ns/time")
	next, err2 := os.Readlink("/proc/self/ns/time_for_children")
	b, err3 := os.ReadFile("/proc/self/timens_offsets")
	if err1 != nil || err2 != nil || err3 != nil || mine != next {
		return 0
	}
	for _, line := range strings.Split(string(b), "\n") {
		if f := strings.Fields(line); len(f) >= 2 && f[0] == "boottime" {
			n, _ := strconv.ParseInt(f[1], 10, 64)
			return n
		}
	}
	return 0
})

func processes() []process {
	d, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer d.Close()
	names, _ := d.Readdirnames(-1)
	list := make([]process, 0, len(names))
	for _, n := range names {
		pid, err := strconv.Atoi(n)
		if err != nil {
			continue
		}
		if p, ok := readProcess(pid); ok {
			list = append(list, p)
		}
	}
	return list
}

// below lists the living processes that descend from those for which root
// says true; with self, those too.
func below(list []process, root func(process) bool, self bool) []process {
	mark := make(map[int]bool, 16)
	for _, p := range list {
		if root(p) {
			mark[p.pid] = true
		}
	}
	roots := len(mark)
	if roots == 0 {
		return nil
	}
	for more := true; more; {
		more = false
		for _, p := range list {
			if !mark[p.pid] && mark[p.ppid] {
				mark[p.pid], more = true, true
			}
		}
	}
	var out []process
	for _, p := range list {
		if mark[p.pid] && !p.zombie && (self || !root(p)) {
			out = append(out, p)
		}
	}
	return out
}

// descendants are the living processes of this keeper's tree. The keeper is a
// child subreaper: whoever loses his parent becomes its child.
func descendants() []process {
	me := os.Getpid()
	return below(processes(), func(p process) bool { return p.pid == me }, false)
}

// signal sends to exactly this process: the handle is opened first and the
// start time read after, so a pid that was used again is never hit.
func (p process) signal(sig syscall.Signal) {
	h, err := os.FindProcess(p.pid)
	if err != nil {
		return
	}
	defer h.Release()
	if now, ok := readProcess(p.pid); ok && now.start == p.start {
		_ = h.Signal(sig) // dead meanwhile is what we want
	}
}

// tree is what a keeper started and is to end whole: everything below it, and
// everything in the leaf it made for it.
type tree struct {
	pid  int
	leaf string
	mem  memLeaf
	told map[process]telling // who has had his TERM, by pid and start
	look time.Duration       // until the next look at who was told between fork and exec
}

// telling is a TERM that was sent: to which program of the process, and whether it was sent again.
type telling struct {
	image int64
	again bool
}

// term tells the whole tree to end. Called again, it tells those who were born
// meanwhile to a parent that has died of it; what a living parent starts in
// order to end well is left alone. A signal that comes between a fork and its exec
// is lost (on a busy machine that is the rule): who has lost its parent and has become another program
// since it was told is told once more. That exec makes no event, so while it may
// come, look is when to call again; it is 0 otherwise.
func (t *tree) term() (look time.Duration) {
	first := t.told == nil
	me := os.Getpid()
	open := false
	for _, p := range descendants() {
		key := process{pid: p.pid, start: p.start}
		was, told := t.told[key]
		orphan := p.ppid == me && p.pid != t.pid
		switch {
		case !told && (first || orphan):
			t.tell(key, p.image)
			open = open || orphan && p.image != 0
		case told && orphan && !was.again && p.image != 0 && p.image != was.image:
			t.told[key] = telling{p.image, true}
		default:
			open = open || told && orphan && !was.again && p.image != 0
			continue
		}
		p.signal(syscall.SIGTERM)
		p.signal(syscall.SIGCONT) // a stopped process takes no TERM
	}
	if !open {
		return 0
	}
	t.look = min(max(2*t.look, 10*time.Millisecond), time.Second)
	return t.look
}

// was tells whether a process has had its TERM.
func (t *tree) was(key process) bool {
	_, told := t.told[key]
	return told
}

func (t *tree) tell(key process, image int64) {
	if t.told == nil {
		t.told = map[process]telling{}
	}
	t.told[key] = telling{image: image}
}

func (t *tree) kill() {
	killCgroup(t.leaf)
	for _, p := range descendants() {
		p.signal(syscall.SIGKILL)
	}
}

// becomeReaper makes orphans of the tree children of this process.
func becomeReaper() error {
	return os.NewSyscallError("prctl", unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
}

// reap collects dead children and tells each; empty is true when nothing of
// the tree lives: a subreaper without children has no descendants.
func (t *tree) reap(ended func(pid int, ws syscall.WaitStatus)) (empty bool) {
	for {
		var ws syscall.WaitStatus
		pid, err := syscall.Wait4(-1, &ws, syscall.WNOHANG, nil)
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return true // ECHILD
		case pid == 0:
			return false
		default:
			ended(pid, ws)
		}
	}
}

func startOf(pid int) int64 {
	p, _ := readProcess(pid)
	return p.start
}

// hasNonce tells that a process carries the mark of a run in its environment.
func hasNonce(pid int, nonce string) bool {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil || nonce == "" {
		return false
	}
	return bytes.Contains(append([]byte{0}, b...), []byte("\x00"+envNonce+"="+nonce+"\x00"))
}

// ours lists the living processes of a run whose keeper is gone: those that
// carry its nonce, the recorded one when start time and boot agree, and what
// descends from them.
func ours(nonce string, p *Proc) []process {
	me := os.Getpid()
	list := processes()
	root := map[int]bool{}
	for _, q := range list {
		same := p != nil && q.pid == p.PID && q.start == p.Start && p.Boot == BootID()
		if q.pid != me && !q.zombie && (same || hasNonce(q.pid, nonce)) {
			root[q.pid] = true
		}
	}
	return below(list, func(q process) bool { return root[q.pid] }, true)
}

// endTree kills what is left of a run whose keeper is gone and comes back when
// nothing lives any more, or with an error that says what does.
func endTree(ctx context.Context, nonce string, p *Proc) error {
	if p != nil && p.Boot != BootID() {
		return nil // another boot: nothing of it can live
	}
	group := ""
	if p != nil && ourCgroup(p.Cgroup, nonce) {
		group = p.Cgroup
	}
	var alive []process
	for wait := time.Millisecond; wait < 2*time.Second; wait *= 2 {
		killCgroup(group)
		alive = ours(nonce, p)
		if len(alive) == 0 && cgroupEmpty(group) {
			removeCgroup(group)
			if p != nil && ourCgroup(p.Memory, nonce) {
				memLeafOf(p).remove()
			}
			return nil
		}
		for _, q := range alive {
			q.signal(syscall.SIGKILL)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(wait):
		}
	}
	return fmt.Errorf("%d processes of the session do not die of KILL (first: %v)", len(alive), alive)
}

// InTree tells whether a process belongs to the tree of a keeper: the user's
// own socket refuses such a peer (architecture.md §6).
func inTree(pid int, keepers map[int]bool) bool {
	for range 64 {
		p, ok := readProcess(pid)
		if !ok || pid <= 1 {
			return false
		}
		if keepers[pid] {
			return true
		}
		pid = p.ppid
	}
	return false
}

// keeperAttr is how a keeper is started: its own session, so that the end of
// the node, of its terminal or of its service leaves it running.
func keeperAttr() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setsid: true} }

// sessionAttr is how a session's process is started: its own session and
// group, in the leaf, at its terminal if it has one, and dead when the keeper's thread is.
func sessionAttr(leaf, tty *os.File) *syscall.SysProcAttr {
	a := &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL, Setctty: tty != nil} // Ctty 0: its standard input
	if leaf != nil {
		a.UseCgroupFD, a.CgroupFD = true, int(leaf.Fd())
	}
	return a
}

// treeLimits says in words what this system cannot do.
func treeLimits() string { return "" }

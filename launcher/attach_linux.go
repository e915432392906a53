package launcher

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// ownProcess looks at one process: it has to live, and to be the user's whose node this is.
func ownProcess(pid int) (o own, err error) {
	p, ok := readProcess(pid)
	if !ok || p.zombie || pid <= 1 {
		return o, fmt.Errorf("there is no process %d", pid)
	}
	dir := "/proc/" + strconv.Itoa(pid)
	st, err := os.Stat(dir)
	if err != nil {
		return o, fmt.Errorf("there is no process %d", pid)
	}
	if s, ok := st.Sys().(*syscall.Stat_t); !ok || int(s.Uid) != os.Getuid() {
		return o, fmt.Errorf("process %d is another user's", pid)
	}
	cwd, err := os.Readlink(dir + "/cwd")
	if err != nil {
		return o, fmt.Errorf("process %d does not show where it works: %w", pid, err)
	}
	line, err := os.ReadFile(dir + "/cmdline")
	if err != nil {
		return o, fmt.Errorf("process %d does not show what it is: %w", pid, err)
	}
	o = own{Attached: Attached{PID: pid, Start: p.start, Boot: BootID()}, cwd: cwd, args: strings.Split(strings.TrimRight(string(line), "\x00"), "\x00")}
	return o, nil
}

// foreground is the process that a terminal's keys go to: the leader of the foreground group of the terminal whose first
// process this is, else that process itself.
func foreground(pid int) (int, error) {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0, fmt.Errorf("there is no process %d", pid)
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:])) // the name before may hold anything
	if len(f) > 5 {
		if group, err := strconv.Atoi(f[5]); err == nil && group > 1 {
			if p, ok := readProcess(group); ok && !p.zombie {
				return group, nil
			}
		}
	}
	return pid, nil
}

func ownProcesses() (list []own) {
	for _, p := range processes() {
		if o, err := ownProcess(p.pid); err == nil && o.Start == p.start {
			list = append(list, o)
		}
	}
	return list
}

// lives tells that exactly this process is there.
func (a *Attached) lives() bool {
	p, ok := readProcess(a.PID)
	return ok && !p.zombie && p.start == a.Start && a.Boot == BootID()
}

// errNotTold ends a keeper that writes no end: its session goes on, and its node gives it another one.
var errNotTold = errors.New("told to end; the session that it watched goes on")

// watch is the life of a keeper whose session was there before: it waits, without polling, for the end of that process.
// An error but errNotTold means that the process is not there.
func (k *keeper) watch() (*Exit, error) {
	if isVoid(".") {
		return &Exit{Refused: RefusedVoid, Error: "its order was taken back"}, nil
	}
	a := k.spec.Attach
	fd, err := unix.PidfdOpen(a.PID, 0) // first the handle, then the look: a pid that was used again is never it
	if err != nil || !a.lives() {
		return nil, fmt.Errorf("process %d is not there any more", a.PID)
	}
	defer unix.Close(fd)
	if err := WriteProc(".", &Proc{PID: a.PID, Start: a.Start, Boot: a.Boot, Nonce: k.spec.Nonce, Keeper: os.Getpid()}); err != nil {
		return nil, err
	}
	k.tree = tree{pid: a.PID}
	k.hub.tell(message{Event: evStarted, Run: k.spec.Run, PID: a.PID})
	ended := make(chan struct{})
	go func() {
		for {
			if _, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, -1); !errors.Is(err, unix.EINTR) {
				close(ended)
				return
			}
		}
	}()
	return k.await(ended)
}

// await follows the process to its end. What it left running is the person's, unless the session was to be stopped: then
// all of its tree that was seen is.
func (k *keeper) await(ended <-chan struct{}) (*Exit, error) {
	var tree []process
	look := time.NewTimer(time.Hour)
	defer look.Stop()
	pause := 20 * time.Millisecond
	for over := false; ; {
		if k.ending {
			tree = k.endSeen(tree)
			if over && len(tree) == 0 {
				return k.left(), nil
			}
			look.Reset(pause)
			pause = min(2*pause, 500*time.Millisecond)
		} else if over {
			return k.left(), nil
		}
		select {
		case <-ended:
			over, ended = true, nil
		case s := <-k.sigs:
			if s == syscall.SIGTERM && !k.ending {
				return nil, errNotTold
			}
		case c := <-k.hub.cmds:
			if c.Op == opStop && !k.ending {
				k.ending, k.killAt, k.why = true, bootNow().Add(c.Kill), "stopped: "+c.Why
			}
			c.reply(k.obey(c.message))
		case <-look.C:
		}
	}
}

// endSeen tells the process and all that descends from it to end, later kills it, and answers what lives of what was seen.
func (k *keeper) endSeen(seen []process) (alive []process) {
	list := processes()
	now := map[int]process{}
	for _, p := range list {
		now[p.pid] = p
	}
	a := k.spec.Attach
	known := map[process]bool{}
	for _, p := range append(seen, below(list, func(p process) bool { return p.pid == a.PID && p.start == a.Start }, true)...) {
		key := process{pid: p.pid, start: p.start}
		q, there := now[p.pid]
		if known[key] || !there || q.zombie || q.start != p.start {
			continue
		}
		known[key] = true
		alive = append(alive, q)
		switch {
		case bootNow() >= k.killAt:
			q.signal(syscall.SIGKILL)
		case !k.tree.was(key):
			k.tree.tell(key, q.image)
			q.signal(syscall.SIGTERM)
			q.signal(syscall.SIGCONT) // a stopped process takes no TERM
		}
	}
	return alive
}

// left is the end of a process that was not this keeper's child: nobody but its parent learns its code.
func (k *keeper) left() *Exit {
	return &Exit{Started: true, Error: cmp.Or(k.why, "the person's own session ended; its exit code is its parent's to know")}
}

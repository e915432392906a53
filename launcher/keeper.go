package launcher

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"os"
	"os/signal"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"syscall"
	"time"

	"muster/board/lease"
)

// KeepVerb is the hidden verb of the binary that runs [Keep].
const KeepVerb = "keep"

// keeper is the one loop that starts a session, holds its deadline, ends its
// whole tree and writes how it ended.
type keeper struct {
	dir  string // as given, for people; the process stands in it
	spec *Spec
	lock *os.File
	hub  *hub
	sigs chan os.Signal
	term *terminal // nil: a headless session

	tree  tree
	timer *bootTimer
	main  *syscall.WaitStatus // of the session's first process, nil while it lives

	deadline lease.Instant // of the lease; 0: none
	lapsed   bool          // it was the lease that ended the session
	stopped  bool          // somebody asked for its end
	final    chan bool     // one slot: whether the session's newest word is the last of its work
	finalAt  lease.Instant // since when it is; 0: it is not
	hung     bool          // it was ended because it did not end after that
	closed   bool          // its pane went away
	ending   bool          // TERM is out
	killAt   lease.Instant // when KILL is due, while ending
	killing  time.Duration // KILL is out: how long until it is sent again
	why      string        // who ended it, "" when it ended by itself
}

// Keep is the whole life of a keeper: args are the run's folder and, when its
// node started it, the number of the descriptor it shares with the node. It
// returns when nothing of the session lives and its exit record is on disk, or
// with an error when this folder is not for it (held, or used before).
//
// With "-" for a folder it waits for the node to name one: a keeper that is
// started in advance costs a start no time.
func Keep(args []string) error {
	// The session's process asks to die with the thread that started it.
	runtime.LockOSThread()
	plainSleeps()
	debug.SetGCPercent(40)
	if len(args) == 0 || len(args) > 2 {
		return errors.New("usage: keep RUNDIR [FD]: this verb is the node's own")
	}
	k := &keeper{dir: args[0], hub: newHub(), sigs: make(chan os.Signal, 16), final: make(chan bool, 1)}
	// Notify, not Ignore: what is ignored stays ignored in the session.
	signal.Notify(k.sigs, syscall.SIGCHLD, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGWINCH)
	if len(args) == 2 {
		if err := k.inherit(args[1]); err != nil {
			return err
		}
	}
	if k.dir == "-" {
		return nil // its node went away before it had a use for it
	}
	defer k.hub.close()
	if err := k.open(); err != nil {
		return fmt.Errorf("keeper of %s: %w", k.dir, err)
	}
	defer k.lock.Close()
	exit, err := k.run()
	if errors.Is(err, errNotTold) {
		return fmt.Errorf("keeper of %s: %w", k.dir, err)
	}
	if err != nil {
		exit = notStarted("", err)
	}
	return k.finish(exit)
}

// inherit takes over the connection the node made before it started us, or, of a keeper in a pane that waits for
// its run, makes the one that the node waits for: fd is then the folder of its socket.
func (k *keeper) inherit(fd string) error {
	var c net.Conn
	n, err := strconv.Atoi(fd)
	switch {
	case err != nil && k.dir == "-" && filepath.IsAbs(fd): // in a pane, which hands on no descriptor
		if c, err = dialFolder(fd, fileSpare); err != nil {
			return nil // nobody waits for it (any more)
		}
	case err != nil || n < 3:
		return fmt.Errorf("keeper: %q is no descriptor", fd)
	default:
		f := os.NewFile(uintptr(n), "node")
		c, err = net.FileConn(f)
		f.Close()
		if err != nil {
			return fmt.Errorf("keeper: descriptor %d: %w", n, err)
		}
	}
	r := bufio.NewReader(c)
	if k.dir == "-" && !k.waitForRun(c, r) {
		return nil
	}
	k.hub.add(c, r)
	return nil
}

// open makes the folder this keeper's own: one keeper per run, and one run per
// folder, ever.
func (k *keeper) open() (err error) {
	if err := os.Chdir(k.dir); err != nil {
		return err
	}
	if err := wordsTo(fileKeeper); err != nil {
		return err
	}
	k.callNode()
	if k.lock, err = takeLock("."); err != nil {
		return err
	}
	if k.spec, err = ReadSpec("."); err != nil {
		return err
	}
	if Used(".") && (k.spec.Attach == nil || exists(fileExit)) {
		return fmt.Errorf("run %s has been started before; a run is started once", k.spec.Run)
	}
	if k.timer, err = newBootTimer(); err != nil {
		return err
	}
	return k.hub.listen()
}

// run starts the session and follows it to its end. An error means that
// nothing was executed.
func (k *keeper) run() (*Exit, error) {
	if k.spec.Attach != nil {
		return k.watch()
	}
	if refused, why := k.lastCheck(); refused != "" {
		return &Exit{Refused: refused, Error: why}, nil
	}
	if err := becomeReaper(); err != nil {
		return nil, err
	}
	if err := k.openTerminal(); err != nil {
		return nil, err
	}
	g, err := openGate(k.spec, k.slaveOf())
	if err != nil {
		return nil, err
	}
	defer bound(k.watchFinal())()
	k.tree = tree{pid: g.pid, leaf: g.leaf, mem: g.mem}
	if err := k.tree.mem.enter(g.pid, k.spec.Memory); err != nil {
		fmt.Fprintf(os.Stderr, "not held to its memory limit of %d MB: %v\n", k.spec.Memory>>20, err) // into keeper.log
	}
	k.deadline = k.spec.Deadline
	proc := &Proc{PID: g.pid, Start: startOf(g.pid), Boot: bootID(), Nonce: k.spec.Nonce, Keeper: os.Getpid(), Cgroup: g.leaf, Memory: k.tree.mem.path, Pane: k.paneID()}
	err = WriteProc(".", proc)
	at(atRecorded)
	refused, why := "", ""
	if err == nil {
		refused, why = k.lastCheck()
	}
	if err == nil && refused == "" {
		err = k.join()
	}
	if err == nil && refused == "" {
		err = g.release()
	}
	if err != nil || refused != "" {
		g.drop()
		k.end(0, "")
		k.follow()
		return notStarted(refused, errors.Join(err, errorOf(why))), nil
	}
	at(atReleased)
	k.hub.tell(message{Event: evStarted, Run: k.spec.Run, PID: g.pid})
	k.follow()
	return k.endTerminal(k.exit()), nil
}

// lastCheck looks, under the folder's lock, whether the session may still be
// executed: once before anything is made, and once last thing before exec.
func (k *keeper) lastCheck() (refused, why string) {
	c := LastCheck(".", k.spec, bootNow())
	ok, why := lease.KeeperMayExec(c)
	switch {
	case ok:
		return "", ""
	case c.Void:
		return RefusedVoid, why
	case c.Estop:
		return RefusedEstop, why
	}
	return RefusedLate, why
}

// follow waits, without polling, until the session's process has ended and
// nothing of its tree lives.
func (k *keeper) follow() {
	again := time.NewTimer(time.Hour)
	defer again.Stop()
	for {
		empty := k.tree.reap(func(pid int, ws syscall.WaitStatus) {
			if pid == k.tree.pid {
				k.main = &ws
			}
		})
		if k.main != nil && empty {
			return
		}
		if k.main != nil && !k.ending {
			k.end(k.spec.Kill, "") // its process has ended, what it left behind ends too
		}
		k.due()
		if k.ending && k.killing == 0 {
			if look := k.tree.term(); look > 0 { // who was born while its parent died of it
				again.Reset(look)
			}
		}
		if k.killing > 0 {
			again.Reset(k.killing)
		}
		select {
		case s := <-k.sigs:
			if s == syscall.SIGTERM {
				k.stopped = k.stopped || !k.ending
				k.end(k.spec.Kill, "its keeper was told to end (shutdown of the machine?)")
			}
			k.signalled(s)
		case c := <-k.hub.cmds:
			c.reply(k.marked(k.obey(c.message)))
		case final := <-k.final:
			if k.finalAt = 0; final {
				k.finalAt = bootNow()
			}
		case <-k.noted():
			k.hub.tell(k.marked(message{Event: evPane, Run: k.spec.Run}))
		case <-k.timer.C:
		case <-again.C:
		}
	}
}

// due does what the lease's deadline and a stop's patience ask for now, and
// arms the timer for the next moment to look.
func (k *keeper) due() {
	now := bootNow()
	var look lease.Instant
	if k.deadline != 0 {
		due, at := lease.KeeperDue(k.deadline, k.spec.Kill, now)
		look = at
		k.lapsed = k.lapsed || due != lease.DueNothing && !k.ending
		switch due {
		case lease.DueTerm:
			k.end(k.deadline.Sub(now), "its lease ran out: this node had no contact with the fleet")
		case lease.DueKill:
			k.end(0, "its lease ran out: this node had no contact with the fleet")
		}
	}
	if at := k.hangAt(); at != 0 && !k.ending {
		if now >= at {
			k.hung = true
			k.end(k.spec.Kill, fmt.Sprintf("it did not end within %s of the last word of its work", max(k.spec.Leave, leastLeave)))
		} else if look == 0 || at < look {
			look = at
		}
	}
	if k.ending {
		look = k.killAt
		if now >= k.killAt {
			k.tree.kill()
			k.killing = min(max(2*k.killing, 10*time.Millisecond), time.Second)
			look = 0
		}
	}
	// A timer that cannot be set would leave a session over its lease.
	if err := k.timer.Set(look); err != nil && !k.ending {
		k.end(0, "its keeper cannot set a timer: "+err.Error())
	}
}

// end asks the session to end and has it killed after patience, or sooner if
// that is what stands already.
func (k *keeper) end(patience time.Duration, why string) {
	at := bootNow().Add(patience)
	if k.deadline != 0 {
		at = min(at, k.deadline)
	}
	if k.ending {
		k.killAt = min(k.killAt, at)
		return
	}
	k.ending, k.killAt, k.why = true, at, why
	if patience > 0 {
		k.tree.term()
		k.hangUp()
	}
}

func (k *keeper) obey(m message) message {
	switch m.Op {
	case opExtend:
		if k.deadline != 0 && !k.ending {
			k.deadline = lease.Extend(k.deadline, m.Deadline)
		}
	case opStop:
		why := "stopped"
		if m.Why != "" {
			why += ": " + m.Why
		}
		k.stopped = k.stopped || !k.ending
		k.end(m.Kill, why)
	case opTurn:
		if k.term != nil && m.Turn != nil {
			k.term.notes.turned(m.Turn)
		}
	}
	state := stateRunning
	if k.ending {
		state = stateEnding
	}
	re := message{Run: k.spec.Run, Nonce: k.spec.Nonce, PID: k.tree.pid, State: state, Deadline: k.deadline}
	if m.Op == opMemory {
		re.Memory = k.tree.memory()
	}
	return re
}

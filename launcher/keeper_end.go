package launcher

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// notStarted is the end of a run whose program was never executed. A full disk is
// the machine's affair, not its card's (M-12).
func notStarted(refused string, err error) *Exit {
	e := &Exit{Refused: refused, Error: err.Error()}
	if refused == "" && isFull(err) {
		e.Refused, e.Error = RefusedSpace, "NOSPACE: this machine's disk is full: "+e.Error
	}
	return e
}

func errorOf(text string) error {
	if text == "" {
		return nil
	}
	return errors.New(text)
}

// exit says how the session's first process ended. A signal is no code.
func (k *keeper) exit() *Exit {
	e := &Exit{Started: true, Error: k.why, Lapsed: k.lapsed, Stopped: k.stopped, Hung: k.hung}
	switch ws := *k.main; {
	case ws.Exited():
		code := int64(ws.ExitStatus())
		e.Code = &code
	case ws.Signaled():
		e.Signal = unix.SignalName(ws.Signal())
		if e.Signal == "" {
			e.Signal = strconv.Itoa(int(ws.Signal()))
		}
		if e.Error == "" {
			e.Error = "ended by " + e.Signal
		}
	}
	if e.Peak = k.tree.mem.peak(); e.Peak == 0 {
		e.Peak = largest()
	}
	if e.Signal == "SIGKILL" && !k.ending && k.tree.mem.kills() > 0 {
		e.Memory, e.Error = true, fmt.Sprintf("it was killed over its memory limit of %d MB", k.spec.Memory>>20)
	}
	return e
}

// wordsTo sends what this process says from here on (its last words, a crash of
// the runtime) to a file: nobody reads its node's terminal for it.
func wordsTo(name string) error {
	f, err := os.OpenFile(name, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for _, fd := range []int{1, 2} {
		if err := dupTo(int(f.Fd()), fd); err != nil {
			return err
		}
	}
	return nil
}

// record writes the exit record, and while the disk has no room for it waits for
// some: the folder stays held, so that nobody else writes an end without a code.
func (k *keeper) record(e *Exit) error {
	for wait := 100 * time.Millisecond; ; wait = min(2*wait, 5*time.Second) {
		err := WriteExit(".", e)
		if !isFull(err) {
			return err
		}
		again := time.After(wait)
		for waiting := true; waiting; {
			select {
			case s := <-k.sigs:
				if s == syscall.SIGTERM {
					return err
				}
			case c := <-k.hub.cmds:
				c.reply(k.obey(c.message))
			case <-again:
				waiting = false
			}
		}
	}
}

// finish puts the end on disk, then tells it: only now may anybody believe that
// the session is gone.
func (k *keeper) finish(e *Exit) error {
	e.Boot, e.At, e.Wall = bootID(), bootNow(), time.Now().UnixMilli()
	e.Means = meaning(".", k.spec, e)
	at(atDead)
	err := k.record(e)
	removeCgroup(k.tree.leaf)
	k.tree.mem.remove()
	if err != nil {
		return fmt.Errorf("keeper of %s: exit record: %w", k.dir, err)
	}
	at(atExit)
	k.hub.tell(message{Event: evEnded, Run: k.spec.Run})
	return nil
}

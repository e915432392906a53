package launcher

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster/board"
	"muster/board/lease"

	"golang.org/x/sys/unix"
)

// The files of a run's folder. Everything in it is 0600 in a folder 0700: the
// log, the prompt and the secret are the session's own.
const (
	fileSpec   = "spec.json"   // what to start; written before the keeper
	fileLock   = "lock"        // flock: one keeper per run
	fileVoid   = "void"        // this launch is dead: a keeper that finds it ends
	fileProc   = "proc.json"   // who was started; on disk before the program runs
	fileExit   = "exit.json"   // how it ended; written when the whole tree is dead
	fileRoom   = "exit.room"   // becomes exit.json: its blocks are there before a disk fills up
	fileSocket = "k.sock"      // the keeper's control socket
	fileLog    = "log"         // stdout and stderr of the session
	fileCut    = "log.cut"     // what was taken out of a log that grew too long
	fileKeeper = "keeper.log"  // the keeper's own last words
	fileSecret = "secret.json" // run, role, slot and secret, for the session
	fileWords  = "words"       // what the session said, with its outcome
	fileBrief  = "brief"       // the prompt
	fileBody   = "body"        // the card's body
)

// LogFile is the name of a run's output in its folder.
const LogFile = fileLog

// format is the version of a run's folder and of the keeper's socket, written into
// spec.json, proc.json, exit.json and every message. What is newer only adds: a keeper
// and a node of different versions pass over what they do not know, and status, extend
// and stop mean the same in all. Nothing written is 0, before there was a version.
const format = 1

// Spec is all a keeper needs; it asks nobody. Moments are on the boot clock
// (see [BootNow]), so they count sleep.
type Spec struct {
	V     int      `json:"v"`
	Run   string   `json:"run"`
	Node  string   `json:"node"`
	Key   string   `json:"key"`   // launch key: run id and purpose
	Nonce string   `json:"nonce"` // marks the tree: in its environment and in its cgroup's name
	Argv  []string `json:"argv"`
	Env   []string `json:"env"`            // complete; nothing is inherited
	Dir   string   `json:"dir"`            // where the session runs
	Kind  string   `json:"kind,omitempty"` // of that workspace

	Boot     string        `json:"boot"`               // boot id the moments belong to
	StartBy  lease.Instant `json:"start_by"`           // no start from here on
	Deadline lease.Instant `json:"deadline,omitempty"` // of the lease; 0: none
	Lease    time.Duration `json:"lease,omitempty"`
	Kill     time.Duration `json:"kill"` // TERM to KILL
	Leave    time.Duration `json:"leave"`
	Memory   int64         `json:"memory,omitempty"` // limit of the whole tree, bytes; 0: none
	Estop    string        `json:"estop,omitempty"`  // no start while this file exists

	Card  string `json:"card"`
	Slot  string `json:"slot"`
	Role  string `json:"role"`
	Order string `json:"order"`

	AgentHome string `json:"agent_home,omitempty"` // the agent's folder; "": it has none

	Attach *Attached `json:"attach,omitempty"` // nothing is started: this process is the session

	Verdict    string            `json:"verdict,omitempty"`     // exit: its exit code is its word
	Surface    string            `json:"surface,omitempty"`     // pane; "": headless
	Ready      string            `json:"ready,omitempty"`       // of a pane: it takes text when it shows this
	Typed      bool              `json:"typed,omitempty"`       // of a pane: its prompt is typed
	Carrier    string            `json:"carrier,omitempty"`     // the run whose folder its session's keeper holds, when it took it over
	Keeps      string            `json:"keeps,omitempty"`       // the run whose session it is to take over
	SessionID  string            `json:"session_id,omitempty"`  // of the harness
	SessionKey string            `json:"session_key,omitempty"` // member of a JSON line of its output that tells the id
	Sessions   *board.SpecFiles  `json:"sessions,omitempty"`    // where its program keeps its sessions
	Stdin      string            `json:"stdin,omitempty"`       // a file; "": nothing to read
	Exits      map[string]string `json:"exits,omitempty"`       // exit code to meaning
	Signs      []board.SpecSign  `json:"signs,omitempty"`       // line of output to meaning
	Final      []board.SpecLine  `json:"final,omitempty"`       // the last lines of its work: after one it has Leave to end
	Era        uint64            `json:"era"`
	Epoch      uint64            `json:"epoch"`
}

// Proc is who was started: what identifies the process without its name.
type Proc struct {
	V      int    `json:"v"`
	PID    int    `json:"pid"`
	Start  int64  `json:"start"` // ticks since boot, as the machine counts them outside of any namespace
	Boot   string `json:"boot"`
	Nonce  string `json:"nonce"`
	Keeper int    `json:"keeper"`
	Cgroup string `json:"cgroup,omitempty"` // leaf of cgroup v2 made for it
	Memory string `json:"memory,omitempty"` // leaf that counts its memory, of v2 or v1
	Pane   string `json:"pane,omitempty"`   // of its terminal, %n; "" when it is headless
}

// Exit is how a run's process ended. Code is nil when nobody saw a code: a
// signal ended it, its keeper died, or the machine did (M-08: never 0).
type Exit struct {
	V        int           `json:"v"`
	Started  bool          `json:"started"` // false: no program of this run was ever executed
	Code     *int64        `json:"code,omitempty"`
	Signal   string        `json:"signal,omitempty"`
	Error    string        `json:"error,omitempty"`
	Closed   bool          `json:"closed,omitempty"`   // a person closed its pane
	Terminal bool          `json:"terminal,omitempty"` // its terminal's server ended
	Lapsed   bool          `json:"lapsed,omitempty"`   // its lease ran out: the machine was out of touch
	Stopped  bool          `json:"stopped,omitempty"`  // it was asked to end
	Hung     bool          `json:"hung,omitempty"`     // it did not end after the last word of its work
	Memory   bool          `json:"memory,omitempty"`   // the machine killed it over its memory limit
	Peak     int64         `json:"peak,omitempty"`     // the most memory it had, bytes; where nobody counts for a tree, its largest process
	Means    *Meaning      `json:"means,omitempty"`    // nil: not known (a keeper of before), or code 0 and nothing to say
	Unseen   bool          `json:"unseen,omitempty"`   // nobody saw it end: the machine was started anew
	Refused  string        `json:"refused,omitempty"`  // void, estop, nospace, late: why the keeper did not start
	Boot     string        `json:"boot"`
	At       lease.Instant `json:"at"`
	Wall     int64         `json:"wall"` // ms since the epoch, for use across a reboot (M-02)
}

// Why a keeper did not start the session.
const (
	RefusedVoid  = "void"    // declared dead before it began
	RefusedEstop = "estop"   // the file ESTOP is there (M-16)
	RefusedSpace = "nospace" // the disk had no room for what must be written before
	RefusedLate  = "late"    // the lease, or the ten seconds after the contact, are over
)

// ago is how long ago the exit was, 0 when it cannot be known.
func (e *Exit) ago(boot string, now lease.Instant, wall time.Time) time.Duration {
	if e.Boot == boot && e.At > 0 {
		return max(0, now.Sub(e.At))
	}
	return max(0, wall.Sub(time.UnixMilli(e.Wall)))
}

// writeAtomic replaces dir/name by data: after a crash there is the old file or
// the new one, whole. With sync it is on disk when this returns.
func writeAtomic(dir, name string, data []byte, sync bool) error {
	tmp, err := os.CreateTemp(dir, "."+name+"-*")
	if err != nil {
		return err
	}
	_, err = tmp.Write(data)
	if err == nil && sync {
		err = tmp.Sync()
	}
	err = errors.Join(err, tmp.Close())
	if err == nil {
		err = os.Rename(tmp.Name(), filepath.Join(dir, name))
	}
	if err != nil {
		os.Remove(tmp.Name())
		return err
	}
	if sync {
		return syncDir(dir)
	}
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

func writeJSON(dir, name string, v any, sync bool) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return writeAtomic(dir, name, append(b, '\n'), sync)
}

func readJSON(dir, name string, v any) error {
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(b)) == 0 {
		return fmt.Errorf("%s is empty", name)
	}
	if err := json.Unmarshal(b, v); err != nil {
		return fmt.Errorf("%s is broken: %w", name, err)
	}
	return nil
}

// ReadSpec reads what a run's folder was made for.
func ReadSpec(dir string) (*Spec, error) {
	s := new(Spec)
	if err := readJSON(dir, fileSpec, s); err != nil {
		return nil, err
	}
	if s.Run == "" || s.Nonce == "" {
		return nil, fmt.Errorf("%s names no run", fileSpec)
	}
	return s, nil
}

// ReadProc reads who was started; fs.ErrNotExist when nobody was.
func ReadProc(dir string) (*Proc, error) {
	p := new(Proc)
	if err := readJSON(dir, fileProc, p); err != nil {
		return nil, err
	}
	return p, nil
}

// WriteProc records who was started, synced.
func WriteProc(dir string, p *Proc) error {
	q := *p
	q.V = format
	return writeJSON(dir, fileProc, &q, true)
}

// ReadExit reads how a run ended. There is no record (nil, nil) while it runs.
// An empty or broken record is an end without a code, never code 0 (SUP-12, M-08).
func ReadExit(dir string) (*Exit, error) {
	e := new(Exit)
	err := readJSON(dir, fileExit, e)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err == nil && e.Boot != "":
		if e.V == 0 { // of before there was a version
			e.Stopped = strings.HasPrefix(e.Error, "stopped")
		}
		return e, nil
	case err == nil:
		err = fmt.Errorf("%s says nothing", fileExit)
	}
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return nil, err
	}
	return &Exit{Started: true, Error: "its exit record cannot be read: " + err.Error(), Wall: time.Now().UnixMilli()}, nil
}

// WriteExit records how a run ended, synced. It is called when nothing of the
// run lives any more. A full disk is no reason to lose it: it is written over
// blocks that the run's folder has had since its start.
func WriteExit(dir string, e *Exit) error {
	e.V = format
	if err := writeRoom(dir, e); err == nil || !errors.Is(err, fs.ErrNotExist) && !isFull(err) {
		return err
	}
	return writeJSON(dir, fileExit, e, true) // there is no such room (any more), or it was not kept
}

// roomSize holds every exit record whose error is no longer than roomError.
const (
	roomSize  = 4096
	roomError = 1024
)

// makeRoom takes the blocks of an exit record from the disk. They are written,
// not only promised: a promise is not kept by every file system.
func makeRoom(dir string) error {
	return writeAtomic(dir, fileRoom, bytes.Repeat([]byte(" "), roomSize), false)
}

// writeRoom writes a record over the room and gives it its name: after a crash
// there is the whole record, or none.
func writeRoom(dir string, e *Exit) error {
	short := *e
	short.Error = strings.ToValidUTF8(short.Error[:min(len(short.Error), roomError)], "")
	b, err := json.Marshal(&short)
	if err != nil {
		return err
	}
	path := filepath.Join(dir, fileRoom)
	f, err := os.OpenFile(path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	if len(b) < roomSize { // what stood there before goes
		b = append(b, bytes.Repeat([]byte("\n"), roomSize-len(b))...)
	}
	_, err = f.WriteAt(b, 0)
	if err == nil {
		err = f.Sync()
	}
	if err = errors.Join(err, f.Close()); err != nil {
		return err
	}
	if err := os.Rename(path, filepath.Join(dir, fileExit)); err != nil {
		return err
	}
	return syncDir(dir)
}

// isFull tells that a disk, or a user's part of it, is used up: it may pass.
func isFull(err error) bool { return errors.Is(err, unix.ENOSPC) || errors.Is(err, unix.EDQUOT) }

// isVoid tells that the launch of this folder has been declared dead.
func isVoid(dir string) bool { return exists(filepath.Join(dir, fileVoid)) }

// writeVoid declares the launch dead; a keeper that comes later ends.
func writeVoid(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, fileVoid), os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(f.Sync(), f.Close(), syncDir(dir))
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}

// errHeld says that somebody else holds a run's folder.
var errHeld = errors.New("the run's folder is held by a keeper")

// takeLock takes the folder's lock without waiting, or answers errHeld. It is
// let go by closing the file, or by the death of its holder.
func takeLock(dir string) (*os.File, error) {
	f, err := os.OpenFile(filepath.Join(dir, fileLock), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		f.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errHeld
		}
		return nil, fmt.Errorf("lock of %s: %w", dir, err)
	}
	return f, nil
}

// Hold takes a run's folder as a keeper does, or answers an error when somebody
// holds it. Close the file to let go.
func Hold(dir string) (*os.File, error) { return takeLock(dir) }

// LastCheck is what a keeper looks at in a run's folder, last thing before exec.
func LastCheck(dir string, s *Spec, now lease.Instant) lease.LastCheck {
	c := lease.LastCheck{
		Void:  isVoid(dir),
		Estop: s.Estop != "" && exists(s.Estop),
		By:    s.StartBy,
		Now:   now,
	}
	if s.Boot != BootID() {
		c.By = 0 // moments of another boot mean nothing
	}
	return c
}

// Used tells that a run's folder has had its keeper: it gets no second one.
func Used(dir string) bool {
	return exists(filepath.Join(dir, fileProc)) || exists(filepath.Join(dir, fileExit))
}

package launcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"muster/board"
)

// A session writes its log itself, at the end of a file, and no limit stops it. So
// its keeper takes the middle out of a log that has grown too long: its beginning
// says how it started, its newest part how it stands. Where the file system can
// give back a part of a file (a hole), not a byte of what is kept is touched and
// every byte stays where it is; elsewhere the file begins anew.
const (
	logHead = 1 << 20             // kept of the beginning
	logTail = 15 << 20            // kept of the newest, at least
	logMost = logHead + 2*logTail // on disk, and what is written until the keeper looks
	logRest = 250 * time.Millisecond
)

// A cut says what was taken out of a log: the bytes from From to To, counted as the
// session wrote them. Base is what has to be taken off to find a later byte in the file.
type cut struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
	Base int64 `json:"base,omitempty"`
	At   int64 `json:"at,omitempty"` // when it was taken out last, ms since the epoch
}

// readCut reads what was taken out of a run's log: nothing, as a rule.
func readCut(dir string) (c cut, err error) {
	b, err := os.ReadFile(dir + "/" + fileCut)
	if errors.Is(err, fs.ErrNotExist) {
		return c, nil
	}
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	return c, err
}

// mark is what a reader is told in place of what was taken out.
func (c cut) mark() []byte {
	when := ""
	if c.At != 0 {
		when = ", the last of them at " + time.UnixMilli(c.At).UTC().Format(time.RFC3339)
	}
	return fmt.Appendf(nil, "\n[muster: %.1f MB of output were dropped here%s: of a log, the first %d and at least the newest %d MB are kept]\n",
		float64(c.To-c.From)/1e6, when, logHead>>20, logTail>>20)
}

// capLog takes the middle out of a log that is too long. punch gives back a part of
// a file; an error of it means that this file system does not.
func capLog(dir string, punch func(f *os.File, from, n int64) error) error {
	f, err := os.OpenFile(dir+"/"+fileLog, os.O_RDWR, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	c, err := readCut(dir)
	if err != nil {
		return err
	}
	if st.Size()+c.Base-max(c.To, logHead) <= logMost-logHead {
		return nil
	}
	next := cut{From: logHead, To: (st.Size() - logTail) &^ 4095, At: time.Now().UnixMilli()}
	if c.Base == 0 {
		if err := writeJSON(dir, fileCut, next, false); err != nil { // first: a hole must never be read as output
			return err
		}
		if err := punch(f, next.From, next.To-next.From); err == nil {
			return nil
		}
	}
	next = cut{To: st.Size() + c.Base, Base: st.Size() + c.Base, At: next.At}
	return errors.Join(f.Truncate(0), writeJSON(dir, fileCut, next, false))
}

// boundLog keeps the log of the session in this folder bounded until stop is
// closed. It waits for the session to write something, and looks a moment later; so
// does look, which may be about what was written.
func boundLog(stop <-chan struct{}, look func()) {
	tick := time.NewTimer(0)
	defer tick.Stop()
	for {
		wrote, closeWatch, err := written(fileLog) // before the look: nothing is missed between the two
		if err == nil {
			err = capLog(".", punchHole)
			look()
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "log is not bounded:", err) // into keeper.log
		}
		select {
		case <-wrote:
		case <-stop:
			closeWatch()
			return
		}
		closeWatch()
		tick.Reset(logRest)
		select {
		case <-tick.C:
		case <-stop:
			return
		}
	}
}

// bound is boundLog beside the caller; what it returns ends it, with a last look.
func bound(look func()) (end func()) {
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { boundLog(stop, look) })
	return func() {
		close(stop)
		wg.Wait()
		if err := capLog(".", punchHole); err != nil {
			fmt.Fprintln(os.Stderr, "log is not bounded:", err)
		}
	}
}

// readOutput reads a session's output from a byte on, as the session counted it. In
// place of what was dropped it gives the mark, and next is behind it. more says that
// something follows, however little b is.
func readOutput(dir string, from int64, max int) (b []byte, next int64, more bool, err error) {
	c, err := readCut(dir)
	if err != nil {
		return nil, from, false, err
	}
	if from >= c.From && from < c.To {
		b = c.mark()
		return b[:min(len(b), max)], c.To, true, nil
	}
	if more = from < c.From; more {
		max = int(min(int64(max), c.From-from))
	}
	b, err = readAt(dir+"/"+fileLog, from-c.Base, max)
	if again, cerr := readCut(dir); err == nil && cerr == nil && again != c {
		return readOutput(dir, from, max) // it was cut while it was read
	}
	return b, from + int64(len(b)), more || len(b) == max, err
}

// tailOf is the newest output of a run.
func tailOf(dir string, max int64) []byte {
	c, err := readCut(dir)
	st, serr := os.Stat(dir + "/" + fileLog)
	if err != nil || serr != nil {
		return nil
	}
	end := st.Size() + c.Base
	b, _, _, _ := readOutput(dir, end-min(max, end), int(max))
	return b
}

// noLog is the answer for a run whose folder is gone.
func (r *Reconciler) noLog(run string) error {
	return board.Errorf(board.NotFound, "%s has no log of run %q: its folder is not there (any more)", r.cfg.Name, run).
		WithHint("the newest %d runs of a node keep theirs", r.cfg.KeepRuns)
}

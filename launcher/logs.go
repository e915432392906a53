package launcher

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"muster/board"
)

// ReadLog reads a run's output from a byte on, at most max bytes; what a log that
// grew too long has lost is told by a mark in its place. next is where to go on, eof says that nothing will come any more. With wait it comes back
// when there is something new, when the run has ended, or when ctx ends (with
// nothing, which is no error).
func (r *Reconciler) ReadLog(ctx context.Context, run string, from int64, max int, wait bool) (b []byte, next int64, eof bool, err error) {
	dir := r.runDir(run)
	if dir == "" || !exists(dir) {
		return nil, from, false, r.noLog(run)
	}
	if from < 0 || max <= 0 {
		return nil, from, false, board.Errorf(board.Invalid, "log of run %s: from byte %d, at most %d bytes", run, from, max)
	}
	if s, err := ReadSpec(dir); err == nil {
		dir = carrierDir(dir, s) // of a session that was kept, all that it printed
	}
	var w *watcher
	for {
		ended := exists(filepath.Join(dir, fileExit)) // before the log is read: what was written is then all
		b, next, more, err := readOutput(dir, from, max)
		if err != nil {
			return nil, from, false, board.Errorf(board.Internal, "log of run %s: %v", run, err)
		}
		if len(b) > 0 || ended || !wait || ctx.Err() != nil {
			return b, next, ended && !more, nil
		}
		if w == nil { // watch first, then look once more
			if w, err = watch(dir); err != nil {
				return nil, from, false, board.Errorf(board.Internal, "log of run %s cannot be watched: %v", run, err)
			}
			defer w.close()
			continue
		}
		w.wait(ctx)
	}
}

func readAt(path string, from int64, max int) ([]byte, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil // not started yet
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b := make([]byte, max)
	n, err := f.ReadAt(b, from)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return b[:n], err
}

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

// ReadLog reads a run's output from a byte on, at most max bytes. next is where
// to go on, eof says that nothing will come any more. With wait it comes back
// when there is something new, when the run has ended, or when ctx ends (with
// nothing, which is no error).
func (r *Reconciler) ReadLog(ctx context.Context, run string, from int64, max int, wait bool) (b []byte, next int64, eof bool, err error) {
	dir := r.runDir(run)
	if dir == "" || !exists(dir) {
		return nil, from, false, board.Errorf(board.NotFound, "%s has no log of run %q (any more)", r.cfg.Name, run).
			WithHint("the newest %d runs of a node keep theirs", r.cfg.KeepRuns)
	}
	if from < 0 || max <= 0 {
		return nil, from, false, board.Errorf(board.Invalid, "log of run %s: from byte %d, at most %d bytes", run, from, max)
	}
	var w *watcher
	for {
		ended := exists(filepath.Join(dir, fileExit)) // before the log is read: what was written is then all
		b, err := readAt(filepath.Join(dir, fileLog), from, max)
		if err != nil {
			return nil, from, false, board.Errorf(board.Internal, "log of run %s: %v", run, err)
		}
		next := from + int64(len(b))
		if len(b) > 0 || ended || !wait || ctx.Err() != nil {
			return b, next, ended && len(b) < max, nil
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

func readTail(path string, max int64) []byte {
	st, err := os.Stat(path)
	if err != nil {
		return nil
	}
	b, _ := readAt(path, st.Size()-min(max, st.Size()), int(max))
	return b
}

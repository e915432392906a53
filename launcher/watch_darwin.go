package launcher

import (
	"context"
	"time"
)

// watcher looks again, at intervals, while somebody follows a log.
type watcher struct{}

func watch(dir string) (*watcher, error) { return &watcher{}, nil }

func (w *watcher) wait(ctx context.Context) {
	t := time.NewTimer(250 * time.Millisecond)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}

func (w *watcher) close() {}

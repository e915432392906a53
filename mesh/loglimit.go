package mesh

import (
	"bytes"
	"context"
	"log/slog"
	"sync"
	"time"
)

// logLimit lets one line per key and period through, so that a stranger who
// keeps knocking costs one line, not a full disk.
type logLimit struct {
	period time.Duration
	max    int // keys kept; more are not logged at all until old ones leave

	mu      sync.Mutex
	last    map[string]time.Time
	skipped uint64
}

func newLogLimit(period time.Duration) *logLimit {
	return &logLimit{period: period, max: 64, last: make(map[string]time.Time)}
}

// allow reports whether to log about key now, and how many lines were kept back
// since the last one that was let through.
func (l *logLimit) allow(key string, now time.Time) (ok bool, skipped uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if t, known := l.last[key]; known && now.Sub(t) < l.period {
		l.skipped++
		return false, 0
	}
	if len(l.last) >= l.max {
		for k, t := range l.last {
			if now.Sub(t) >= l.period {
				delete(l.last, k)
			}
		}
		if len(l.last) >= l.max {
			l.skipped++
			return false, 0
		}
	}
	l.last[key] = now
	skipped, l.skipped = l.skipped, 0
	return true, skipped
}

// gossipLog turns the gossip library's lines into ours. What it calls an error
// is, to us, a peer out of reach: a hint, so it is logged one level lower and at
// a limited rate.
type gossipLog struct {
	log   *slog.Logger
	limit *logLimit
}

func (w *gossipLog) Write(line []byte) (int, error) {
	n := len(line)
	level := slog.LevelDebug
	line = bytes.TrimSpace(line)
	if bytes.HasPrefix(line, []byte("[ERR]")) {
		level = slog.LevelInfo
	}
	if i := bytes.IndexByte(line, ']'); len(line) > 0 && line[0] == '[' && i > 0 {
		line = bytes.TrimSpace(line[i+1:])
	}
	line = bytes.TrimPrefix(line, []byte("memberlist: "))
	key := string(line[:min(len(line), 24)])
	if ok, skipped := w.limit.allow(key, time.Now()); ok {
		w.log.Log(context.Background(), level, "gossip", "text", string(line), "skipped", skipped)
	}
	return n, nil
}

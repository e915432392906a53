package launcher

import (
	"bytes"
	"time"

	"muster/board"
	"muster/board/lease"
)

// leastLeave is the time a session has after the last word of its work, at least.
const leastLeave = time.Second

// newestJSON is the newest line of a session's output that is a JSON object: none
// within what is searched, or while it is being written, is the zero line.
func newestJSON(dir string) outputLine {
	for max := int64(8 << 10); ; max *= 8 {
		tail := tailOf(dir, max)
		whole := int64(len(tail)) < max
		for len(tail) > 0 {
			i := bytes.LastIndexByte(bytes.TrimRight(tail, "\n"), '\n')
			if i < 0 && !whole {
				break // its beginning may be further up
			}
			if l := splitLines(tail[i+1:]); len(l) > 0 && l[0].json != nil {
				return l[0]
			}
			tail = tail[:i+1]
		}
		if whole || max >= meansMost {
			return outputLine{}
		}
	}
}

// isFinal tells whether the newest word of a session is one of the last of its work.
func isFinal(dir string, final []board.SpecLine) bool {
	l := newestJSON(dir)
	for _, want := range final {
		if l.is(want) {
			return true
		}
	}
	return false
}

// watchFinal tells the keeper's loop, after each look at the log, whether the session
// has said the last word of its work. It is called by one goroutine.
func (k *keeper) watchFinal() func() {
	if len(k.spec.Final) == 0 {
		return func() {}
	}
	last := false
	return func() {
		now := isFinal(".", k.spec.Final)
		if now == last {
			return
		}
		last = now
		select {
		case <-k.final: // not taken yet, and no longer so
		default:
		}
		k.final <- now
	}
}

// hangAt is when the session is to be ended because it has said its last word and goes
// on all the same; 0: not.
func (k *keeper) hangAt() lease.Instant {
	if k.finalAt == 0 || k.main != nil {
		return 0
	}
	return k.finalAt.Add(max(k.spec.Leave, leastLeave))
}

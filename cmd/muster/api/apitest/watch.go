package apitest

import (
	"context"

	"muster/board"
	"muster/cmd/muster/api"
)

// sub is a one-slot signal.
type sub struct {
	f      *Fleet
	c      chan struct{}
	filter func(board.Table, string) bool
	keys   []api.Change
}

// Subscribe implements api.Backend.
func (f *Fleet) Subscribe(filter func(board.Table, string) bool) api.Sub {
	f.mu.Lock()
	defer f.mu.Unlock()
	s := &sub{f: f, c: make(chan struct{}, 1), filter: filter}
	f.subs[s] = true
	return s
}

// Subs is the number of open subscriptions.
func (f *Fleet) Subs() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return len(f.subs)
}

func (s *sub) C() <-chan struct{} { return s.c }

func (s *sub) Close() {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	delete(s.f.subs, s)
}

func (s *sub) tell(t *board.Txn) {
	for _, op := range t.Ops {
		if s.filter(op.Table, op.Key) {
			s.keys = append(s.keys, api.Change{Table: op.Table, Key: op.Key})
			select {
			case s.c <- struct{}{}:
			default:
			}
		}
	}
}

// Take implements api.Taker.
func (s *sub) Take() (keys []api.Change, all bool) {
	s.f.mu.Lock()
	defer s.f.mu.Unlock()
	keys, s.keys = s.keys, nil
	return keys, false
}

// runLog is a run's log, as far as it is written.
type runLog struct {
	text []byte
	over bool
	more chan struct{} // closed at the next change
}

// Log adds to a run's log; over ends it.
func (f *Fleet) Log(run, text string, over bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.logs[run]
	if l == nil {
		l = &runLog{more: make(chan struct{})}
		f.logs[run] = l
	}
	l.text, l.over = append(l.text, text...), over
	close(l.more)
	l.more = make(chan struct{})
}

// ReadLog implements api.Backend.
func (f *Fleet) ReadLog(ctx context.Context, run string, from int64, most int, wait bool) (api.LogChunk, error) {
	for {
		f.mu.Lock()
		l := f.logs[run]
		if l == nil {
			f.mu.Unlock()
			return api.LogChunk{}, board.Errorf(board.NotFound, "run %s has no log here (yet)", run)
		}
		piece := l.text[min(from, int64(len(l.text))):]
		piece = piece[:min(len(piece), most)]
		next, more := from+int64(len(piece)), l.more
		over := l.over && next == int64(len(l.text))
		out := api.LogChunk{Chunk: append([]byte(nil), piece...), Next: next, EOF: over}
		f.mu.Unlock()
		if len(piece) > 0 || over || !wait {
			return out, nil
		}
		select {
		case <-more:
		case <-ctx.Done():
			return out, nil
		}
	}
}

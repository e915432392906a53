package raftstore

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/hashicorp/raft"
)

// told sends messages so far apart, entry by entry, and counts how often a new commit is told.
func told(t *testing.T, p *honestPipeline, to *recording, n int, every time.Duration) (times int) {
	t.Helper()
	for range n {
		time.Sleep(every) // of the bubble's clock
		was, next := to.commit, to.next+1
		q := &raft.AppendEntriesRequest{LeaderCommitIndex: next - 1, Entries: []*raft.Log{{Index: next}}}
		if _, err := p.AppendEntries(q, nil); err != nil || to.commit > next-1 || to.commit < was {
			t.Fatalf("entry %d tells of commit %d after %d (%v)", next, to.commit, was, err)
		}
		if to.next = next; to.commit > was {
			times++
		}
	}
	return times
}

type recording struct {
	raft.AppendPipeline
	next, commit uint64
}

func (r *recording) AppendEntries(q *raft.AppendEntriesRequest, _ *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	r.commit = q.LeaderCommitIndex
	return nil, nil
}

// A follower of a stream applies some entries at once: it is told of commits now and then. What
// comes alone, or in a short burst, is told of by the next message, and the end of a stream by Raft's own.
func TestCommitsOfAStreamAreToldInGroups(t *testing.T) {
	t.Parallel()
	synctest.Test(t, tellsInGroups)
}

func tellsInGroups(t *testing.T) {
	to := &recording{}
	p := &honestPipeline{AppendPipeline: to, commit: func(i uint64) uint64 { return i }, hold: func() error { return nil }}
	if n := told(t, p, to, streamFrom, time.Millisecond); n < streamFrom-1 {
		t.Errorf("a burst of %d messages told of %d commits", streamFrom, n)
	}
	if n := told(t, p, to, 1000, time.Millisecond); n < 190 || n > 210 {
		t.Errorf("1,000 messages of a stream, a millisecond apart, told %d times", n)
	}
	q := &raft.AppendEntriesRequest{LeaderCommitIndex: to.next}
	if _, err := p.AppendEntries(q, nil); err != nil || to.commit != to.next {
		t.Errorf("a message without entries told of %d, not of %d (%v)", to.commit, to.next, err)
	}
	if n := told(t, p, to, 100, 10*time.Millisecond); n < 99 { // the first is of what was told already
		t.Errorf("100 messages 10 ms apart told %d times", n)
	}
	if n := told(t, p, to, 100, time.Second); n != 100 {
		t.Errorf("100 messages a second apart told %d times", n)
	}
	p.commit = func(i uint64) uint64 { return i - 1 } // the leader's disk has not the last one
	if _, err := p.AppendEntries(&raft.AppendEntriesRequest{LeaderCommitIndex: 5000}, nil); err != nil || to.commit != 4999 {
		t.Errorf("told %d of what the leader's disk has up to 4999 (%v)", to.commit, err)
	}
}

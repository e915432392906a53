package raftstore

import (
	"testing"
	"time"

	"github.com/hashicorp/raft"
)

// told sends messages so far apart, entry by entry, and counts how often a new commit is told.
func told(t *testing.T, p *honestPipeline, to *recording, n int, every time.Duration, now *time.Time) (times int) {
	t.Helper()
	for range n {
		*now = now.Add(every)
		was, next := to.commit, to.next+1
		got := p.tell.index(p.commit(next-1), true, *now)
		if got > next-1 || got < was {
			t.Fatalf("entry %d tells of commit %d after %d", next, got, was)
		}
		if to.next, to.commit = next, got; got > was {
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
	to := &recording{}
	p := &honestPipeline{AppendPipeline: to, commit: func(i uint64) uint64 { return i }}
	now := time.Unix(1000, 0)
	if n := told(t, p, to, streamFrom, time.Millisecond, &now); n < streamFrom-1 {
		t.Errorf("a burst of %d messages told of %d commits", streamFrom, n)
	}
	if n := told(t, p, to, 1000, time.Millisecond, &now); n < 190 || n > 210 {
		t.Errorf("1,000 messages of a stream, a millisecond apart, told %d times", n)
	}
	q := &raft.AppendEntriesRequest{LeaderCommitIndex: to.next}
	if _, err := p.AppendEntries(q, nil); err != nil || to.commit != to.next {
		t.Errorf("a message without entries told of %d, not of %d (%v)", to.commit, to.next, err)
	}
	if n := told(t, p, to, 100, 10*time.Millisecond, &now); n < 99 { // the first is of what was told already
		t.Errorf("100 messages 10 ms apart told %d times", n)
	}
	if n := told(t, p, to, 100, time.Second, &now); n != 100 {
		t.Errorf("100 messages a second apart told %d times", n)
	}
	p.commit = func(i uint64) uint64 { return i - 1 } // the leader's disk has not the last one
	if _, err := p.AppendEntries(&raft.AppendEntriesRequest{LeaderCommitIndex: 5000}, nil); err != nil || to.commit != 4999 {
		t.Errorf("told %d of what the leader's disk has up to 4999 (%v)", to.commit, err)
	}
}

package raftstore

import (
	"time"

	"github.com/hashicorp/raft"
)

// transport is what this store needs of one.
type transport interface {
	raft.Transport
	raft.WithPreVote
	raft.WithClose
}

// honest tells others of a commit index only what [ahead.commit] lets out, and nothing while this disk is late ([yield]).
type honest struct {
	transport
	commit func(index uint64) uint64
	hold   func() error // returns when something may be sent
}

// AppendEntries implements raft.Transport.
func (h *honest) AppendEntries(id raft.ServerID, to raft.ServerAddress, q *raft.AppendEntriesRequest, a *raft.AppendEntriesResponse) error {
	if err := h.hold(); err != nil {
		return err
	}
	q.LeaderCommitIndex = h.commit(q.LeaderCommitIndex)
	return h.transport.AppendEntries(id, to, q, a)
}

// AppendEntriesPipeline implements raft.Transport.
func (h *honest) AppendEntriesPipeline(id raft.ServerID, to raft.ServerAddress) (raft.AppendPipeline, error) {
	p, err := h.transport.AppendEntriesPipeline(id, to)
	if err != nil {
		return nil, err
	}
	return &honestPipeline{AppendPipeline: p, commit: h.commit, hold: h.hold}, nil
}

type honestPipeline struct {
	raft.AppendPipeline
	commit func(index uint64) uint64
	hold   func() error
	tell   grouped
}

// AppendEntries implements raft.AppendPipeline. Raft calls it from one goroutine.
func (p *honestPipeline) AppendEntries(q *raft.AppendEntriesRequest, a *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	if err := p.hold(); err != nil {
		return nil, err
	}
	q.LeaderCommitIndex = p.tell.index(p.commit(q.LeaderCommitIndex), len(q.Entries) > 0, time.Now())
	return p.AppendPipeline.AppendEntries(q, a)
}

// In a stream of entries, one every moment, each would tell of the commit of the one before, and
// the follower would apply them one by one, each in a transaction of the state of its own.
const (
	streamGap  = 20 * time.Millisecond // the most between two messages of a stream
	streamFrom = 16                    // so many in a row make one
	groupFor   = 5 * time.Millisecond  // the least between two commits that are told in a stream
)

// grouped holds commits back in a stream, so that a follower applies some entries at once.
// Where the stream ends, Raft's message after CommitTimeout tells of the rest, as it does of
// the last entry anyway. No answer waits for it: a leader answers from its own state.
type grouped struct {
	told       uint64 // the last index that was told
	last, when time.Time
	streak     int
}

// index is what a message of now tells of a commit.
func (g *grouped) index(commit uint64, entries bool, now time.Time) uint64 {
	if entries && now.Sub(g.last) < streamGap {
		g.streak++
	} else {
		g.streak = 0
	}
	g.last = now
	if g.streak < streamFrom || now.Sub(g.when) >= groupFor {
		g.told, g.when = commit, now
	}
	return g.told
}

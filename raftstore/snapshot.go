package raftstore

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	"github.com/zeebo/xxh3"
	"go.etcd.io/bbolt"

	"muster/board"
)

// A snapshot on disk and on the wire is a header and a whole bbolt file: it is
// written in one stream and put in place by a rename, with no key inserted again.
type header struct {
	Era    uint64
	EraTag uint64 // hash of the era's random half
	Meta   meta
	Size   int64 // of the file that follows
}

const (
	headerMagic = "mustersnap1\n"
	headerSize  = len(headerMagic) + 8*3 + metaSize + 4
)

func (h *header) encode() []byte {
	b := []byte(headerMagic)
	for _, v := range []uint64{h.Era, h.EraTag, uint64(h.Size)} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = append(b, h.Meta.encode()...)
	return binary.LittleEndian.AppendUint32(b, crc32.Checksum(b, castagnoli))
}

func readHeader(r io.Reader) (header, error) {
	b := make([]byte, headerSize)
	if _, err := io.ReadFull(r, b); err != nil {
		return header{}, fmt.Errorf("%w: snapshot header: %w", ErrDamaged, err)
	}
	body := b[:headerSize-4]
	if string(b[:len(headerMagic)]) != headerMagic || crc32.Checksum(body, castagnoli) != binary.LittleEndian.Uint32(b[headerSize-4:]) {
		return header{}, fmt.Errorf("%w: not a snapshot of this format", ErrDamaged)
	}
	n := func(i int) uint64 { return binary.BigEndian.Uint64(body[len(headerMagic)+8*i:]) }
	m, err := decodeMeta(body[len(headerMagic)+24:])
	return header{Era: n(0), EraTag: n(1), Size: int64(n(2)), Meta: m}, err
}

// eraOf is the era that stands in a state; 0 before the fleet was made.
func eraOf(v board.View) (era, tag uint64) {
	if f := board.GetFleet(v); f != nil {
		return f.Era, xxh3.HashString(f.EraTag)
	}
	return 0, 0
}

// A snapshot is a read transaction, opened by Raft's FSM goroutine and written
// by another. It may be cancelled at any moment, because a restore must not
// wait for it: Raft releases it only after the restore.
type snapshot struct {
	s     *state
	g     *generation
	tx    *bbolt.Tx
	head  header
	rate  int64           // bytes/s, 0 = as fast as it goes
	begun func()          // tests: told when writing begins
	bad   func(error)     // told when the state does not match its own hash
	ctx   context.Context // made in begin, ends with cancel
	stop  context.CancelFunc

	mu      sync.Mutex
	running bool
	ended   bool
	done    chan struct{} // closed when the transaction is over
}

// snapshot opens a reading that lasts: the only one that does.
func (s *state) snapshot(rate int64, bad func(error)) (*snapshot, error) {
	g, err := s.acquire()
	if err != nil {
		return nil, err
	}
	p := &snapshot{s: s, g: g, rate: rate, bad: bad, done: make(chan struct{})}
	err = guarded(func() error {
		if p.tx, err = g.db.Begin(false); err != nil {
			return err
		}
		v, err := newView(p.tx)
		if err != nil {
			return err
		}
		p.head = header{Meta: v.m, Size: p.tx.Size()}
		p.head.Era, p.head.EraTag = eraOf(v)
		return v.err
	})
	if err != nil {
		if p.tx != nil {
			_ = p.tx.Rollback()
		}
		s.release(g)
		return nil, err
	}
	p.ctx, p.stop = context.WithCancel(s.ctx)
	s.mu.Lock()
	s.live[p] = struct{}{}
	s.mu.Unlock()
	return p, nil
}

// cancelSnapshots ends all snapshots; with wait, it returns when no transaction of them is open.
func (s *state) cancelSnapshots(wait bool) {
	s.mu.Lock()
	var list []*snapshot
	for p := range s.live {
		list = append(list, p)
	}
	s.mu.Unlock()
	for _, p := range list {
		p.cancel()
		if wait {
			<-p.done
		}
	}
}

func (p *snapshot) cancel() {
	p.stop()
	p.mu.Lock()
	running := p.running
	p.mu.Unlock()
	if !running {
		p.end()
	}
}

// end closes the transaction, once. It is called by the writer itself while it
// runs, else by whoever is first.
func (p *snapshot) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	p.ended = true
	p.stop()
	_ = p.tx.Rollback()
	p.s.release(p.g)
	p.s.mu.Lock()
	delete(p.s.live, p)
	p.s.mu.Unlock()
	close(p.done)
}

// begin takes the transaction for writing; false if the snapshot was cancelled.
func (p *snapshot) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.ctx.Err() != nil {
		return false
	}
	p.running = true
	return true
}

// Persist implements raft.FSMSnapshot: it counts the hash anew, and discards
// the snapshot if it differs.
func (p *snapshot) Persist(sink raft.SnapshotSink) error {
	err := p.persist(sink)
	if err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

func (p *snapshot) persist(w io.Writer) error {
	if !p.begin() {
		return errCancelled
	}
	defer p.end()
	if p.begun != nil {
		p.begun()
	}
	return guarded(func() error {
		if err := p.verify(); err != nil {
			return err
		}
		if _, err := w.Write(p.head.encode()); err != nil {
			return err
		}
		_, err := p.tx.WriteTo(&throttled{w: w, ctx: p.ctx, rate: p.rate, since: time.Now()})
		if err != nil && p.ctx.Err() != nil {
			err = errCancelled // bbolt does not wrap what its writer said
		}
		return err
	})
}

func (p *snapshot) verify() error {
	got, err := sumAll(p.ctx, p.tx)
	if err == nil && got != p.head.Meta.Sum {
		err = fmt.Errorf("%w: its hash at Seq %d is not the one it was counted to", ErrDamaged, p.head.Meta.Seq)
	}
	if errors.Is(err, ErrDamaged) && p.bad != nil {
		p.bad(err)
	}
	return err
}

// Release implements raft.FSMSnapshot.
func (p *snapshot) Release() { p.cancel() }

// sumAll counts the hash of a whole state, and checks every value on the way.
func sumAll(ctx context.Context, tx *bbolt.Tx) (sum, error) {
	var total sum
	for t := board.Table(1); t <= maxTable; t++ {
		b := tx.Bucket(tableName(t))
		if b == nil {
			continue // a table of a newer version is added when the file is used
		}
		c, n := b.Cursor(), 0
		for k, stored := c.First(); k != nil; k, stored = c.Next() {
			_, h, ok := open(t, string(k), stored)
			if !ok {
				return sum{}, fmt.Errorf("%w: checksum of %s %q does not hold", ErrDamaged, t, k)
			}
			total.add(h)
			if n++; n%1024 == 0 && ctx.Err() != nil {
				return sum{}, errCancelled
			}
		}
	}
	return total, nil
}

// throttled writes no faster than rate on average, and not at all once ctx is done.
type throttled struct {
	w     io.Writer
	ctx   context.Context
	rate  int64
	since time.Time
	n     int64
}

func (t *throttled) Write(b []byte) (int, error) {
	if t.ctx.Err() != nil {
		return 0, errCancelled
	}
	n, err := t.w.Write(b)
	t.n += int64(n)
	if err != nil || t.rate <= 0 {
		return n, err
	}
	ahead := time.Duration(float64(t.n)/float64(t.rate)*float64(time.Second)) - time.Since(t.since)
	if ahead > time.Millisecond {
		select {
		case <-time.After(ahead):
		case <-t.ctx.Done():
			return n, errCancelled
		}
	}
	return n, nil
}

package node

import (
	"context"
	"errors"
	"fmt"

	"muster/raftstore"
)

// spawn runs fn in a goroutine that the node's end waits for; false, and fn does
// not run, when the node is stopping.
func (n *Node) spawn(fn func()) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopping {
		return false
	}
	n.tasks.Go(fn)
	return true
}

// task spawns what runs as long as the node does; its failure is the node's.
func (n *Node) task(what string, fn func(context.Context) error) {
	n.spawn(func() {
		if err := fn(n.ctx); err != nil && n.ctx.Err() == nil {
			n.fail(fmt.Errorf("%s: %w", what, err))
		}
	})
}

// background starts what runs as long as the node does.
func (n *Node) background() {
	n.task("leader watch", n.watchLeader)
	n.task("contact", n.contacts)
	n.task("leading", n.lease.run)
	n.task("node list", n.watchNodes)
	n.task("orders", n.watchOrders)
	n.task("sleep watch", n.watchSleep)
	n.task("terminals", n.terms)
	n.task("mirrors", n.mirrors)
	n.task("directories", n.directories)
	n.task("store", func(ctx context.Context) error {
		select {
		case <-ctx.Done():
			return nil
		case <-n.store.Failed():
			if err := n.store.Err(); errors.Is(err, raftstore.ErrDiverged) {
				n.diverged(err)
				return nil
			}
			return fmt.Errorf("this node is unfit: %w (sessions go on; free space or repair the disk, then start it again)", n.store.Err())
		}
	})
}

// finish waits, once the node was told to stop, until nothing acts any more, and
// then says so to who waits on Done. The doors and the files are still Close's.
func (n *Node) finish() {
	<-n.ctx.Done()
	n.mu.Lock()
	n.stopping = true
	n.mu.Unlock()
	n.tasks.Wait()
	n.finished.Do(func() { close(n.done) })
}

// fail stops the node because it is unfit: others must not count on it.
func (n *Node) fail(err error) {
	n.mu.Lock()
	if n.err == nil {
		n.err = err
		n.full.Store(isFull(err))
	}
	n.mu.Unlock()
	n.cancel(err)
}

// Done is closed when the node has stopped acting: by itself, by Close, or because Open failed. Err says why.
func (n *Node) Done() <-chan struct{} { return n.done }

// Err is why the node stopped by itself, nil after Close.
func (n *Node) Err() error {
	n.mu.Lock()
	defer n.mu.Unlock()
	if errors.Is(n.err, errClosed) || errors.Is(n.err, context.Canceled) {
		return nil
	}
	return n.err
}

// Again tells that the node was asked to start anew (muster restart).
func (n *Node) Again() bool { return n.again.Load() }

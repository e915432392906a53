package launcher

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"muster/launcher/tmux"
)

// A pane with a keeper that has no folder yet waits for the next run, once a first one was started: a pane and a
// process are made before anybody waits for them. It is nobody's: it has no key, so no list of panes has it, and it
// ends with the connection to its node.

// sparePane is a keeper that waits in a pane.
type sparePane struct {
	conn net.Conn
	pane *tmux.Pane
}

// fileSpare is the socket in the tmux server's folder at which such a keeper calls.
const fileSpare = "spare.sock"

// sparePaneName begins the name of its tmux session.
const sparePaneName = "spare-"

// takePane makes the pane that waits a run's; nil where there is none, or it is gone.
func (k *Keepers) takePane(ctx context.Context, dir string, spec *Spec) Session {
	s := k.nextPane(ctx)
	if s == nil {
		return nil
	}
	// First the name, so that whatever dies from here on, a session is found by it.
	err := k.Panes.Give(ctx, s.pane, spec.Run, spec.Run)
	if err == nil {
		err = writeMessage(s.conn, message{Op: opTake, Dir: dir})
	}
	if err != nil {
		s.conn.Close() // its keeper ends by that
		k.Log.Info("the pane that was made in advance is gone", "err", err)
		return nil
	}
	return newLink(s.conn, bufio.NewReader(s.conn), s.pane.PID)
}

// nextPane takes the pane that waits. One that is being made is there before another could be: the first start that
// meets it waits for it, those beside it have panes of their own.
func (k *Keepers) nextPane(ctx context.Context) *sparePane {
	k.mu.Lock()
	defer k.mu.Unlock()
	if w := k.warmed; k.sparePane == nil && w != nil && !k.awaited {
		k.awaited = true
		k.mu.Unlock()
		wait := time.NewTimer(paneWait / 4)
		select {
		case <-w:
		case <-wait.C:
		case <-ctx.Done():
		}
		wait.Stop()
		k.mu.Lock()
		k.awaited = false
	}
	s := k.sparePane
	k.sparePane = nil
	return s
}

// warmPane makes, beside the caller, the pane that waits for the next run.
func (k *Keepers) warmPane() {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.closed || k.sparePane != nil || k.warmed != nil {
		return
	}
	k.warmed = make(chan struct{})
	k.wg.Go(func() {
		s, err := k.openSpare()
		k.mu.Lock()
		defer k.mu.Unlock()
		close(k.warmed)
		k.warmed = nil
		switch {
		case k.closed && s != nil:
			s.conn.Close()
		case k.closed:
		case err != nil:
			k.Log.Warn("no pane in advance", "err", err)
		default:
			k.sparePane = s
		}
	})
}

// openSpare opens a pane whose keeper calls this process and waits to hear whose it is.
func (k *Keepers) openSpare() (*sparePane, error) {
	ctx, cancel := context.WithTimeout(context.Background(), paneWait)
	defer cancel()
	if err := k.Panes.Open(ctx); err != nil { // makes the folder, too
		return nil, err
	}
	dir := k.Panes.Dir()
	if err := os.Remove(filepath.Join(dir, fileSpare)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err // one that an earlier life of this node left
	}
	l, err := listenFolder(dir, fileSpare)
	if err != nil {
		return nil, err
	}
	defer l.Close()
	var b [6]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	p, err := k.Panes.New(ctx, sparePaneName+hex.EncodeToString(b[:]), "", []string{k.Binary, KeepVerb, "-", dir})
	if err != nil {
		return nil, err
	}
	c, err := acceptKeeper(l)
	if err == nil && c.keeper != p.PID {
		err = fmt.Errorf("process %d called, and %d was started", c.keeper, p.PID)
		c.Close()
	}
	if err != nil {
		return nil, errors.Join(err, k.Panes.Kill(ctx, p.ID))
	}
	return &sparePane{conn: c.Conn, pane: p}, nil
}

// called is a keeper that has called, and its process.
type called struct {
	net.Conn
	keeper int
}

// acceptKeeper waits for the keeper of a pane that was just opened.
func acceptKeeper(l *net.UnixListener) (called, error) {
	_ = l.SetDeadline(time.Now().Add(paneWait))
	c, err := l.Accept()
	if err != nil {
		return called{}, errNoCall // voided next, under the folder's lock: one that comes late ends
	}
	pid, ok := keeperOf(c)
	if !ok || !samePeer(c) {
		c.Close()
		return called{}, errNoCall
	}
	return called{c, pid}, nil
}

// waitForRun is a keeper's wait for its folder; false when nobody has a use for it any more: its node ended, or its
// pane did.
func (k *keeper) waitForRun(c net.Conn, r *bufio.Reader) bool {
	over := make(chan struct{})
	hung := make(chan bool, 1)
	go func() {
		for {
			select {
			case s := <-k.sigs:
				if s == syscall.SIGHUP || s == syscall.SIGTERM {
					hung <- true
					c.Close()
					return
				}
			case <-over:
				hung <- false
				return
			}
		}
	}()
	m, err := readMessage(r)
	close(over)
	if <-hung || err != nil || m.Op != opTake || m.Dir == "" {
		c.Close()
		return false
	}
	k.dir = m.Dir
	return true
}

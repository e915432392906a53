package node

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/mirror"
)

// Boards are mirrored into git repositories by the machines that have them, by their
// own file (node.yaml's `mirrors`): no leader is needed, and nothing of it is state.
// How far a mirror came stands in the repository.

const (
	mirrorSoon   = 2 * time.Second // the wait after a first failure; each one doubles it
	mirrorLatest = 10 * time.Minute
)

// mirroring is one board's mirror on this machine.
type mirroring struct {
	m   *mirror.Mirror
	ask chan chan error // who waits for all that is there now to be pushed
}

// mirrors runs those of this machine's file, as it was at the node's start.
func (n *Node) mirrors(ctx context.Context) error {
	for slug, x := range n.mirroring {
		x.m.Source = n.store
		n.spawn(func() { n.mirror(ctx, slug, x) })
	}
	return nil
}

// readMirrors takes the mirrors of this machine's file; what cannot be stops the start.
func (n *Node) readMirrors() error {
	o, err := n.own()
	if err != nil {
		return err
	}
	n.mirroring = map[string]*mirroring{}
	for slug, c := range o.Mirrors {
		sum := sha256.Sum256([]byte(slug + "\n" + c.Repo + "\n" + c.Branch + "\n" + c.Folder))
		n.mirroring[slug] = &mirroring{ask: make(chan chan error),
			m: &mirror.Mirror{Board: slug, Dir: n.dir.path("mirrors/" + hex.EncodeToString(sum[:8])), Config: c}}
	}
	return nil
}

// mirror follows one board: what happens is committed here at once, and pushed. While the remote cannot be reached it goes on
// committing, and tries to push again at growing times; a push that was asked for is tried at once.
func (n *Node) mirror(ctx context.Context, slug string, x *mirroring) {
	sub := n.store.Subscribe(func(t board.Table, _ string) bool { return t == board.TEvent })
	defer sub.Close()
	var waiting []chan error
	failures, opened := 0, false
	retry := time.NewTimer(0)
	defer retry.Stop()
	push := true
	for {
		err, made := error(nil), x.m.Commits
		if !opened {
			err = x.m.Open(ctx)
			opened = err == nil
		}
		if err == nil && (push || failures == 0 || x.m.Begun()) { // where it begins, the remote says
			err = x.m.Commit(ctx)
		}
		if err == nil && (push || failures == 0 && x.m.Commits > made) {
			if err = x.m.Push(ctx); err == nil && failures > 0 {
				n.log.Info("the mirror is pushed again", "board", slug, "failures", failures)
				failures = 0
			}
		}
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			err = x.bare(err)
			if failures++; failures == 1 {
				n.warn("the mirror of board %s to %s fails, and is tried again: %v", slug, x.where(), err)
			}
			retry.Reset(min(mirrorSoon<<min(failures-1, 12), mirrorLatest))
		}
		for _, c := range waiting {
			c <- err
		}
		waiting, push = nil, false
		select {
		case <-ctx.Done():
			return
		case <-sub.C:
			sub.Take()
		case c := <-x.ask:
			waiting, push = append(waiting, c), true
		case <-retry.C:
			push = true
		}
	}
}

// where is the repository as it may be shown: its address may hold a password.
func (x *mirroring) where() string {
	u, err := url.Parse(x.m.Repo)
	if err != nil || u.User == nil {
		return x.m.Repo
	}
	u.User = url.User(u.User.Username())
	return u.String()
}

func (x *mirroring) bare(err error) error {
	e := board.Errorf(board.Unavailable, "%s", strings.ReplaceAll(err.Error(), x.m.Repo, x.where())).WithCheck("mirror")
	return e.WithHint("it is tried again by itself; what is not pushed yet is kept")
}

// Mirror waits until all that this machine knows of a board is in its repository.
func (b backend) Mirror(ctx context.Context, slug string) (api.Mirror, error) {
	x := b.n.mirroring[slug]
	if x == nil {
		hint := "in node.yaml in its data folder: mirrors: {" + slug + ": {repo: URL}}, then muster restart"
		return api.Mirror{}, board.Errorf(board.NotFound, "%s mirrors no board %q; it mirrors: %s", b.n.cfg.Name, slug, strings.Join(b.n.mirrored(), ", ")).WithHint("%s", hint)
	}
	out := api.Mirror{Board: slug, Repo: x.where(), Branch: x.m.Branch, Folder: x.m.Folder}
	done := make(chan error, 1)
	late := board.Errorf(board.Unavailable, "board %s: the mirror is still being pushed to %s", slug, x.where()).WithCheck("mirror").WithHint("it goes on; wait longer with --timeout")
	select {
	case x.ask <- done:
	case <-ctx.Done():
		return out, late
	case <-b.n.ctx.Done():
		return out, errClosed
	}
	select {
	case err := <-done:
		return out, err
	case <-ctx.Done():
		return out, late
	case <-b.n.ctx.Done():
		return out, errClosed
	}
}

func (n *Node) mirrored() (list []string) {
	for slug := range n.mirroring {
		list = append(list, slug)
	}
	slices.Sort(list)
	if list == nil {
		return []string{"none"}
	}
	return list
}

package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"golang.org/x/sys/unix"
)

// clone is this node's copy of a repository: bare, with what is on the remote
// under refs/remotes/origin and the cards' branches under refs/heads. Branches
// are never deleted from it, and nothing it has is ever pruned: it is the last
// place where work can be that a remote has lost.
type clone struct {
	dir    string
	url    string
	folder string // of a repository on this machine: its folder, for the files that git ignores; "" otherwise
}

var repoName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// repo finds out what a repository is called on this machine: a URL, a path, or
// a name that this machine maps to one of these.
func (s *Store) repo(arg string) (*clone, error) {
	url := arg
	if repoName.MatchString(arg) {
		known, err := s.cfg.Repos()
		if err != nil {
			return nil, err
		}
		if url = known[arg]; url == "" {
			return nil, fmt.Errorf("this machine does not know a repository %q: start its node with --repo %s=PATH-OR-URL, or write it into node.yaml of its data folder", arg, arg)
		}
	}
	if url == "" || strings.HasPrefix(url, "-") || strings.ContainsAny(url, "\x00\n\r") || strings.Contains(url, "::") {
		return nil, fmt.Errorf("repository %q is no URL, path or name", url)
	}
	c := &clone{url: url}
	if rest, ok := strings.CutPrefix(url, "~/"); ok {
		c.url = filepath.Join(envOf(s.cfg.Env, "HOME"), rest)
	}
	path := strings.TrimPrefix(c.url, "file://")
	switch {
	case filepath.IsAbs(path):
		if st, err := os.Stat(path); err != nil || !st.IsDir() {
			return nil, fmt.Errorf("repository %s is no folder on this machine", path)
		}
		c.folder = path
	case !strings.Contains(c.url, "://") && !remotePath.MatchString(c.url):
		return nil, fmt.Errorf("repository %q: use a URL, an absolute path, or a name that this machine maps", arg)
	}
	sum := sha256.Sum256([]byte(c.url))
	name := strings.TrimSuffix(filepath.Base(c.url), ".git")
	if _, after, ok := strings.Cut(name, ":"); ok {
		name = after
	}
	if !repoName.MatchString(name) {
		name = "repo"
	}
	c.dir = filepath.Join(s.clones(), fmt.Sprintf("%s-%s.git", name[:min(len(name), 40)], hex.EncodeToString(sum[:6])))
	return c, nil
}

// remotePath is ssh's short form, [user@]host:path.
var remotePath = regexp.MustCompile(`^([A-Za-z0-9._-]+@)?[A-Za-z0-9._-]+:[^:]`)

// lockClone takes a clone for what changes it. The lock is handed to git, so
// that what a killed node's git still does is waited for; what that git left half done is taken away.
func (s *Store) lockClone(ctx context.Context, dir string) (*os.File, error) {
	f, err := os.OpenFile(dir+".lock", os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	took := make(chan error, 1)
	go func() {
		err := unix.Flock(int(f.Fd()), unix.LOCK_EX)
		for errors.Is(err, unix.EINTR) {
			err = unix.Flock(int(f.Fd()), unix.LOCK_EX)
		}
		took <- err
	}()
	select {
	case err := <-took:
		if err != nil {
			f.Close()
			return nil, fmt.Errorf("lock of %s: %w", dir, err)
		}
		if err := dropHalves(dir); err != nil {
			f.Close()
			return nil, err
		}
		return f, nil
	case <-ctx.Done():
		go func() { <-took; f.Close() }()
		return nil, fmt.Errorf("%s is in use: %w", dir, context.Cause(ctx))
	}
}

// update makes the clone, or brings it up to date; the caller holds its lock.
func (s *Store) update(ctx context.Context, c *clone, lock *os.File) error {
	if _, err := os.Lstat(c.dir); err == nil {
		return s.fetch(ctx, c.dir, lock)
	}
	tmp := c.dir + ".new"
	if err := os.RemoveAll(tmp); err != nil { // of a node that died before it had a name
		return err
	}
	if _, err := s.git(ctx, call{lock: lock}, "init", "--quiet", "--bare", "--", tmp); err != nil {
		return err
	}
	s.cfg.Failpoint("clone begun")
	for _, kv := range [][2]string{{"remote.origin.url", c.url}, {"remote.origin.fetch", "+refs/heads/*:refs/remotes/origin/*"},
		{"gc.pruneExpire", "never"}, {"gc.worktreePruneExpire", "never"}, {"push.default", "current"}} {
		if _, err := s.git(ctx, call{dir: tmp, lock: lock}, "config", kv[0], kv[1]); err != nil {
			return err
		}
	}
	if _, err := s.git(ctx, call{dir: tmp, limit: limitClone, lock: lock}, "fetch", "--quiet", "--prune", "origin"); err != nil {
		return fmt.Errorf("repository %s: %w", password.ReplaceAllString(c.url, "://"), err)
	}
	s.cfg.Failpoint("cloned")
	if err := os.Rename(tmp, c.dir); err != nil {
		return err
	}
	return syncDir(s.clones())
}

// fetch learns what the remote has now. A branch that is gone there counts as
// on no remote from then on; its commits stay in the clone.
func (s *Store) fetch(ctx context.Context, dir string, lock *os.File) error {
	_, err := s.git(ctx, call{dir: dir, limit: limitFetch, lock: lock}, "fetch", "--quiet", "--prune", "origin")
	return err
}

// commit is the commit that a revision names, "" when there is none.
func (s *Store) commit(ctx context.Context, dir, rev string) string {
	id, err := s.line(ctx, call{dir: dir}, "rev-parse", "--verify", "--quiet", "--end-of-options", rev+"^{commit}")
	if err != nil {
		return ""
	}
	return id
}

// base finds what a new branch starts from; ref is how it is called in the clone.
func (s *Store) base(ctx context.Context, c *clone, base string, lock *os.File) (ref, commit string, err error) {
	if base != "" {
		if strings.HasPrefix(base, "-") {
			return "", "", fmt.Errorf("base %q is no branch, tag or commit", base)
		}
		for _, ref := range []string{"refs/remotes/origin/" + strings.TrimPrefix(base, "origin/"), "refs/tags/" + base, base} {
			if id := s.commit(ctx, c.dir, ref); id != "" {
				return ref, id, nil
			}
		}
		return "", "", fmt.Errorf("repository %s has no branch, tag or commit %q", c.url, base)
	}
	out, err := s.line(ctx, call{dir: c.dir, limit: limitFetch, lock: lock}, "ls-remote", "--symref", "origin", "HEAD")
	if err != nil {
		return "", "", err
	}
	for line := range strings.Lines(out) {
		w := strings.Fields(line)
		if len(w) == 3 && w[0] == "ref:" {
			ref := "refs/remotes/origin/" + strings.TrimPrefix(w[1], "refs/heads/")
			if id := s.commit(ctx, c.dir, ref); id != "" {
				return ref, id, nil
			}
		} else if len(w) == 2 {
			if id := s.commit(ctx, c.dir, w[0]); id != "" {
				return w[0], id, nil
			}
		}
	}
	return "", "", fmt.Errorf("repository %s has no commit to start from; name a base, or make its first commit", c.url)
}

package mirror

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	gitTime = 2 * time.Minute // for one command that talks to the remote
	remote  = "refs/remotes/far"
)

// git is a bare repository of this machine's own, in its data folder.
type git struct{ dir string }

// open makes the repository if need be, and takes away the locks of a git that was killed: nobody else works here.
func (g git) open(ctx context.Context) error {
	if _, err := os.Stat(filepath.Join(g.dir, "HEAD")); errors.Is(err, fs.ErrNotExist) {
		if err := os.MkdirAll(g.dir, 0o700); err != nil {
			return err
		}
		if _, err := g.run(ctx, nil, "init", "--quiet", "--bare", "."); err != nil {
			return err
		}
	}
	return filepath.WalkDir(g.dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".lock") {
			return err
		}
		return os.Remove(path)
	})
}

// run gives a command's output. It asks nobody for a password.
func (g git) run(ctx context.Context, in []byte, args ...string) (string, error) {
	c := exec.CommandContext(ctx, "git", args...)
	c.Dir = g.dir
	c.Env = append(os.Environ(), "GIT_DIR="+g.dir, "GIT_TERMINAL_PROMPT=0", "GIT_ASKPASS=true", "SSH_ASKPASS=true", "LC_ALL=C", "GIT_OPTIONAL_LOCKS=0")
	if os.Getenv("GIT_SSH_COMMAND") == "" {
		c.Env = append(c.Env, "GIT_SSH_COMMAND=ssh -oBatchMode=yes")
	}
	c.Stdin = bytes.NewReader(in)
	c.WaitDelay = 5 * time.Second
	var out, bad bytes.Buffer
	c.Stdout, c.Stderr = &out, &bad
	if err := c.Run(); err != nil {
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		}
		return "", fmt.Errorf("git %s: %w: %s", args[0], err, lastLine(bad.String()+out.String()))
	}
	return strings.TrimSpace(out.String()), nil
}

func lastLine(s string) string {
	s = strings.TrimSpace(s)
	if len(s) > 300 {
		s = "..." + s[len(s)-300:]
	}
	return strings.ToValidUTF8(strings.ReplaceAll(s, "\n", "; "), "?")
}

// at is the commit of a ref, "" without one.
func (g git) at(ctx context.Context, ref string) string {
	s, err := g.run(ctx, nil, "rev-parse", "--verify", "--quiet", ref+"^{commit}")
	if err != nil {
		return ""
	}
	return s
}

// fetch learns where the remote's branch is.
func (g git) fetch(ctx context.Context, url, branch string) error {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	list, err := g.run(ctx, nil, "ls-remote", "--", url, "refs/heads/"+branch)
	if err != nil {
		return err
	}
	if list == "" {
		if g.at(ctx, remote) == "" {
			return nil
		}
		_, err := g.run(ctx, nil, "update-ref", "-d", remote)
		return err
	}
	_, err = g.run(ctx, nil, "fetch", "--quiet", "--no-tags", "--", url, "+refs/heads/"+branch+":"+remote)
	return err
}

// within tells whether a commit is in the history of another.
func (g git) within(ctx context.Context, old, young string) bool {
	_, err := g.run(ctx, nil, "merge-base", "--is-ancestor", old, young)
	return err == nil
}

package mirror

import (
	"context"
	"fmt"
	"path"
	"regexp"
	"strings"

	"muster/board"
)

// Config says where a board is mirrored to, by the machine that has the repository.
type Config struct {
	Repo   string `yaml:"repo"`   // URL or path of the repository
	Branch string `yaml:"branch"` // default: muster
	Folder string `yaml:"folder"` // in the repository; default: its top
}

var branchRE = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._/-]*$`)

// Check fills what has a default and says what cannot be.
func (c *Config) Check() error {
	if c.Branch == "" {
		c.Branch = "muster"
	}
	switch {
	case c.Repo == "" || strings.HasPrefix(c.Repo, "-"):
		return fmt.Errorf("repo: %q is no repository: give a URL or a path", c.Repo)
	case !branchRE.MatchString(c.Branch) || strings.Contains(c.Branch, "..") || strings.HasSuffix(c.Branch, ".lock") || strings.HasSuffix(c.Branch, "/"):
		return fmt.Errorf("branch: %q is no branch's name", c.Branch)
	case c.Folder != "" && (path.IsAbs(c.Folder) || path.Clean(c.Folder) != c.Folder || strings.HasPrefix(c.Folder, "..") || strings.ContainsAny(c.Folder, "\n\"\\") || strings.HasPrefix(c.Folder, ".git")):
		return fmt.Errorf("folder: %q is no folder in the repository", c.Folder)
	}
	return nil
}

// Source is the replicated state.
type Source interface {
	View(fn func(board.View) error) error
}

// Mirror keeps one board in one repository. It is used by one goroutine.
type Mirror struct {
	Board string
	Dir   string // the bare repository of its own
	Config
	Source Source

	git     git
	begun   bool   // it knows where the remote is, or has commits of its own
	walked  string // key of the newest event that was looked at; "": the repository tells
	Commits int    // made since it was opened
}

// Open makes its repository if need be.
func (m *Mirror) Open(ctx context.Context) error {
	m.git = git{m.Dir}
	return m.git.open(ctx)
}

// Begun tells whether a commit needs no word of the remote any more.
func (m *Mirror) Begun() bool { return m.begun }

func (m *Mirror) ref() string { return "refs/heads/" + m.Branch }

// Commit makes commits of the events behind the newest that is in the repository. It talks to nobody once it has begun.
func (m *Mirror) Commit(ctx context.Context) error {
	if !m.begun {
		if m.git.at(ctx, m.ref()) == "" { // where the remote is decides where the history begins
			if err := m.git.fetch(ctx, m.Repo, m.Branch); err != nil {
				return err
			}
			if far := m.git.at(ctx, remote); far != "" {
				if _, err := m.git.run(ctx, nil, "update-ref", m.ref(), far); err != nil {
					return err
				}
			}
		}
		m.begun = true
	}
	for {
		more, err := m.page(ctx)
		if err != nil || !more {
			return err
		}
	}
}

// Push brings the commits to the remote: forward only. Where another has pushed before, what is here and not there gives way
// and is made anew behind it, without what that other has mirrored.
func (m *Mirror) Push(ctx context.Context) error {
	var err error
	for range 3 {
		mine := m.git.at(ctx, m.ref())
		if mine == "" || mine == m.git.at(ctx, remote) {
			return nil
		}
		if err = m.push(ctx, mine); err == nil {
			_, err = m.git.run(ctx, nil, "update-ref", remote, mine)
			return err
		}
		if ferr := m.git.fetch(ctx, m.Repo, m.Branch); ferr != nil {
			return ferr // nobody is there
		}
		far := m.git.at(ctx, remote)
		switch {
		case far == mine:
			return nil // it came through, and the answer was lost
		case far == "" || m.git.within(ctx, far, mine):
			continue
		}
		m.walked = ""
		if _, rerr := m.git.run(ctx, nil, "update-ref", m.ref(), far); rerr != nil {
			return rerr
		}
		if cerr := m.Commit(ctx); cerr != nil {
			return cerr
		}
	}
	return err
}

func (m *Mirror) push(ctx context.Context, commit string) error {
	ctx, cancel := context.WithTimeout(ctx, gitTime)
	defer cancel()
	_, err := m.git.run(ctx, nil, "push", "--quiet", "--porcelain", "--", m.Repo, commit+":"+m.ref())
	return err
}

// Cursor is the key of the newest event that the repository has of a fleet's board; "" of none.
func (m *Mirror) cursor(ctx context.Context, fleet string) (string, error) {
	tip := m.git.at(ctx, m.ref())
	if tip == "" {
		return "", nil
	}
	out, err := m.git.run(ctx, nil, "log", "-1", "--extended-regexp", "--all-match", "--grep=^Muster-Board: "+regexp.QuoteMeta(fleet+"/"+m.Board)+"$", "--grep=^Muster-Event: [0-9]+\\.[0-9]+$",
		"--format=%(trailers:key=Muster-Event,valueonly)", tip)
	if err != nil || out == "" {
		return "", err
	}
	return board.ParseEventID(strings.TrimSpace(out))
}

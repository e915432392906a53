package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// The kinds of workspaces (WSP-01).
const (
	Scratch  = "scratch"  // a folder of the card's own
	Dir      = "dir"      // a folder that is there: dir:PATH
	Worktree = "worktree" // a git worktree of its own: worktree:REPO
)

// Config is what a store needs of its node.
type Config struct {
	Dir    string   // the node's data folder
	Env    []string // what git and scripts get of the node's environment
	Logger *slog.Logger

	// Repos maps names of repositories to what they are on this machine: a URL
	// or a path. It is asked at each use; nil: no names.
	Repos func() (map[string]string, error)
	// Run runs a script to its end in a tree of its own that ends with its
	// limit, or with ctx.
	Run func(context.Context, Script) error
	// Live tells whether a run of the card is being started or lives here.
	Live func(card string) bool
	// Ports are the first and the last port given to cards; 0: [FirstPort] and [LastPort].
	Ports [2]int

	// Failpoint is told each step of what changes the disk; tests end the process there. nil: nobody.
	Failpoint func(string)
}

// Script is a set-up or tear-down command of a workspace.
type Script struct {
	Card  string
	Name  string // setup or teardown
	Text  string // for sh -c
	Dir   string
	Env   []string // complete
	Limit time.Duration
}

// Want is the workspace that a start asks for.
type Want struct {
	Card  string
	Board string
	Spec  string // scratch, dir:PATH, worktree:REPO; "" is scratch

	Branch string // of a worktree
	Base   string // what a new branch starts from: a branch, tag or commit; "" is the repository's own default
	Head   string // commit that the card's work was last seen at; it must be there, "": none
	Push   string // where the branch goes when a run has ended by its own word: origin, a URL, path or name; "" nowhere

	Setup, Teardown string        // for sh -c, in the workspace; "" nothing
	Limit           time.Duration // of each; 0: ten minutes
	Bring           []string      // files that git ignores, brought along from the repository's folder
	Env             []string      // of the set-up, beside the node's
}

// Place is a workspace that is ready for a session.
type Place struct {
	Kind   string
	Path   string // resolved: no symbolic link leads to it
	Branch string
	Port   int // first of [PortsPerCard]
}

// Store is the workspaces of one node.
type Store struct {
	cfg Config

	mu      sync.Mutex
	locks   map[string]*cardLock
	holders map[string]string // dir: resolved path -> card

	changed atomic.Int64 // records written or dropped
	useMu   sync.Mutex
	use     use
}

// New makes a store. The disk is not touched before Open.
func New(cfg Config) *Store {
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if cfg.Repos == nil {
		cfg.Repos = func() (map[string]string, error) { return nil, nil }
	}
	if cfg.Live == nil {
		cfg.Live = func(string) bool { return false }
	}
	if cfg.Failpoint == nil {
		cfg.Failpoint = func(string) {}
	}
	if cfg.Ports == [2]int{} {
		cfg.Ports = [2]int{FirstPort, LastPort}
	}
	return &Store{cfg: cfg, locks: map[string]*cardLock{}, holders: map[string]string{}}
}

// Open makes the folders. Nothing of an earlier life is touched before its card
// is asked for.
func (s *Store) Open() error {
	for _, dir := range []string{s.dir(Scratch), s.dir(Worktree), s.records(), s.trash(), s.clones()} {
		if err := os.MkdirAll(dir, 0o700); err != nil {
			return err
		}
	}
	return nil
}

// dir is where the workspaces of a kind are: a card's folder is named by its id.
func (s *Store) dir(kind string) string {
	if kind == Worktree {
		return filepath.Join(s.cfg.Dir, "worktrees")
	}
	return filepath.Join(s.cfg.Dir, "workspaces")
}

func (s *Store) records() string { return filepath.Join(s.cfg.Dir, "workspaces.d") }
func (s *Store) clones() string  { return filepath.Join(s.cfg.Dir, "repos") }

// trash is beside the worktrees and at the same depth: relative paths inside of
// a folder stay good when it is moved there.
func (s *Store) trash() string { return filepath.Join(s.cfg.Dir, "leaving") }

// cardLock is held by one caller; it is forgotten when nobody holds it or waits for it.
type cardLock struct {
	c    chan struct{}
	uses int
}

// lock takes a card's workspaces for the caller; call the answer to let go.
func (s *Store) lock(ctx context.Context, card string) (func(), error) {
	s.mu.Lock()
	l := s.locks[card]
	if l == nil {
		l = &cardLock{c: make(chan struct{}, 1)}
		s.locks[card] = l
	}
	l.uses++
	s.mu.Unlock()
	leave := func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if l.uses--; l.uses == 0 {
			delete(s.locks, card)
		}
	}
	select {
	case l.c <- struct{}{}:
		return func() { <-l.c; leave() }, nil
	case <-ctx.Done():
		leave()
		return nil, context.Cause(ctx)
	}
}

// Make finds or makes the workspace of a start, and answers when a session may
// begin in it. An error is the start's: it names the folder and what to do.
func (s *Store) Make(ctx context.Context, w Want) (Place, error) {
	if err := checkCard(w.Card); err != nil {
		return Place{}, err
	}
	unlock, err := s.lock(ctx, w.Card)
	if err != nil {
		return Place{}, err
	}
	defer unlock()
	kind, arg, _ := strings.Cut(w.Spec, ":")
	var r *record
	switch kind {
	case "", Scratch:
		r, err = s.makeScratch(&w)
	case Dir:
		r, err = s.makeDir(&w, arg)
	case Worktree:
		r, err = s.makeWorktree(ctx, &w, arg)
	default:
		err = fmt.Errorf("workspace %q: use scratch, dir:PATH or worktree:REPO", w.Spec)
	}
	if err != nil {
		return Place{}, err
	}
	if err := s.prepare(ctx, r, &w); err != nil {
		return Place{}, err
	}
	return Place{Kind: r.Kind, Path: r.Path, Branch: r.Branch, Port: r.Port}, nil
}

// checkCard refuses an id that would name another folder: it comes from another machine.
func checkCard(card string) error {
	if card == "" || card != filepath.Base(card) || strings.HasPrefix(card, ".") || strings.HasPrefix(card, "-") || strings.ContainsRune(card, 0) {
		return fmt.Errorf("card id %q cannot name a folder", card)
	}
	return nil
}

// prepare runs the set-up of a workspace that was just made, once; one that was
// cut off is run again.
func (s *Store) prepare(ctx context.Context, r *record, w *Want) error {
	r.Push, r.Teardown, r.Limit, r.At = w.Push, w.Teardown, w.Limit, time.Now().UTC()
	if r.State == stateReady {
		return s.save(r)
	}
	if w.Setup != "" && r.Kind != Dir {
		if err := s.save(r); err != nil {
			return err
		}
		s.cfg.Failpoint("setup")
		if err := s.script(ctx, r, "setup", w.Setup, append(s.env(w, r), w.Env...)); err != nil {
			return fmt.Errorf("set-up of workspace %s: %w", r.Path, err)
		}
	}
	s.cfg.Failpoint("set-up")
	r.State = stateReady
	return s.save(r)
}

// DefaultLimit is how long a set-up or tear-down may take.
const DefaultLimit = 10 * time.Minute

func (s *Store) script(ctx context.Context, r *record, name, text string, env []string) error {
	if s.cfg.Run == nil {
		return errors.New("scripts cannot be run here")
	}
	limit := r.Limit
	if limit <= 0 {
		limit = DefaultLimit
	}
	return s.cfg.Run(ctx, Script{Card: r.Card, Name: name, Text: text, Dir: r.Path, Env: env, Limit: limit})
}

// env is the environment of a script.
func (s *Store) env(w *Want, r *record) []string {
	env := append([]string{}, s.cfg.Env...)
	return append(env, "MUSTER_CARD="+w.Card, "MUSTER_BOARD="+w.Board, "MUSTER_WORKSPACE="+r.Path, "MUSTER_BRANCH="+r.Branch,
		fmt.Sprintf("MUSTER_PORT_BASE=%d", r.Port), "PWD="+r.Path)
}

// Find is the workspace of a card that a session has worked in, at path. It makes
// nothing: an error says that it is not there, or not what was made.
func (s *Store) Find(card, path string) (Place, error) {
	if err := checkCard(card); err != nil {
		return Place{}, err
	}
	list, err := s.ofCard(card)
	if err != nil {
		return Place{}, err
	}
	for _, r := range list {
		if r.Path == path && r.State == stateReady {
			return Place{Kind: r.Kind, Path: r.Path, Branch: r.Branch, Port: r.Port}, standing(r)
		}
	}
	switch err := checkFolder(path); {
	case errors.Is(err, fs.ErrNotExist):
		return Place{}, &MissingError{Card: card, Path: path}
	case err != nil:
		return Place{}, err
	}
	return Place{Path: path}, nil // of a session that was attached: nobody made it
}

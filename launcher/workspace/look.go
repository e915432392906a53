package workspace

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// What a workspace holds, as the board knows it (M-05).
const (
	Saved       = "saved"       // everything in it is on a remote
	Uncommitted = "uncommitted" // something in it is in no commit
	Unpushed    = "unpushed"    // a commit in it is on no remote
)

// Left is what a workspace holds that is nowhere else.
type Left struct {
	Work string // Saved, Uncommitted, Unpushed; "" when it is not known, or of no kind that says
	Why  string // what it is, for people
	Head string // commit that a start elsewhere has to find; "" when the branch has nothing of its own
}

// halfway are files in a worktree's administrative folder that say that an
// operation is under way: what it holds is in no branch yet.
var halfway = []string{"rebase-merge", "rebase-apply", "MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "sequencer"}

// look finds out what a worktree holds that is nowhere else. dir is where it
// stands: its path, or the trash, where submodules are not asked by their parent.
// Ignored files are what can be made again, by the repository's own word.
func (s *Store) look(ctx context.Context, r *record, dir string) (Left, error) {
	admin, err := adminOf(r, dir)
	if err != nil {
		return Left{Work: Uncommitted, Why: err.Error()}, nil
	}
	for _, name := range halfway {
		if _, err := os.Lstat(filepath.Join(admin, name)); err == nil {
			return Left{Work: Uncommitted, Why: "git is in the middle of something (" + name + ")"}, nil
		}
	}
	at := call{dir: dir}
	tree := []string{"--git-dir=" + admin, "--work-tree=" + dir}
	if why, err := s.uncommitted(ctx, at, tree, dir, dir != r.Path, r.Brought); why != "" || err != nil {
		return Left{Work: Uncommitted, Why: why}, err
	}
	if name := changed(dir, r.Brought); name != "" {
		return Left{Work: Uncommitted, Why: name + " was brought along and has changed"}, nil
	}
	if why, err := s.stashed(ctx, at, tree, r); why != "" || err != nil {
		return Left{Work: Uncommitted, Why: why}, err
	}
	unpushed, err := s.unpushed(ctx, at, tree, r, admin)
	if err != nil {
		return Left{}, err
	}
	nested, err := s.nested(ctx, dir, admin)
	if err != nil || nested.Work == Uncommitted {
		return nested, err
	}
	if unpushed != "" {
		return Left{Work: Unpushed, Why: unpushed}, nil
	}
	if nested.Work != "" {
		return nested, nil
	}
	out := Left{Work: Saved}
	if head := s.commit(ctx, dir, "HEAD"); head != r.Base {
		out.Head = head
	}
	return out, nil
}

// uncommitted names what a work tree holds that is in no commit, "" if nothing.
// moved lets a parent leave out its submodules: they are looked at by themselves.
func (s *Store) uncommitted(ctx context.Context, at call, tree []string, dir string, moved bool, brought map[string]string) (string, error) {
	subs := "--ignore-submodules=none"
	if moved {
		subs = "--ignore-submodules=all"
	}
	out, err := s.git(ctx, at, append(tree[:2:2], "status", "--porcelain", "-z", "--untracked-files=no", subs)...)
	if err != nil {
		return "", err
	}
	if len(out) > 0 {
		return counted("changed file", out, nil), nil
	}
	// Only what the repository itself calls ignored is: what this user or this
	// clone leaves out of sight may be somebody's work.
	out, err = s.git(ctx, at, append(tree[:2:2], "ls-files", "--others", "--exclude-per-directory=.gitignore", "-z")...)
	if err != nil {
		return "", err
	}
	if why := counted("file that git does not have", out, brought); why != "" {
		return why, nil
	}
	out, err = s.git(ctx, at, append(tree[:2:2], "ls-files", "-v", "-z")...)
	if err != nil {
		return "", err
	}
	for entry := range bytes.SplitSeq(out, []byte{0}) {
		if len(entry) < 3 || entry[0] == 'H' {
			continue
		}
		if _, err := os.Lstat(filepath.Join(dir, string(entry[2:]))); err == nil {
			return "git was told not to look at " + printable(string(entry[2:])), nil
		}
	}
	return "", nil
}

// counted says how many names there are and shows one; those in known do not count.
func counted(what string, names []byte, known map[string]string) string {
	n, first := 0, ""
	for name := range bytes.SplitSeq(bytes.TrimSuffix(names, []byte{0}), []byte{0}) {
		if _, ok := known[string(name)]; ok || len(name) == 0 {
			continue
		}
		if n++; first == "" {
			first = string(name)
		}
	}
	switch n {
	case 0:
		return ""
	case 1:
		return fmt.Sprintf("1 %s: %s", what, printable(first))
	}
	return fmt.Sprintf("%d %ss, %s among them", n, what, printable(first))
}

func printable(s string) string {
	s = strings.Map(func(c rune) rune {
		if c < ' ' || c == 0x7f {
			return '?'
		}
		return c
	}, strings.ToValidUTF8(s, "?"))
	return s[:min(len(s), 120)]
}

// stashed says that work of this workspace is in the clone's stash, which has one list for all.
func (s *Store) stashed(ctx context.Context, at call, tree []string, r *record) (string, error) {
	if s.commit(ctx, r.Clone, "refs/stash") == "" {
		return "", nil
	}
	out, err := s.git(ctx, at, append(tree[:2:2], "reflog", "show", "--format=%gs", "refs/stash")...)
	if err != nil {
		return "", err
	}
	on, _ := s.line(ctx, at, append(tree[:2:2], "symbolic-ref", "--quiet", "--short", "HEAD")...)
	for line := range strings.Lines(string(out)) {
		_, of, ok := strings.Cut(strings.ToLower(line), "on ")
		name, _, _ := strings.Cut(of, ": ")
		if !ok || slices.Contains([]string{strings.ToLower(r.Branch), strings.ToLower(on), "(no branch)"}, name) {
			return "git's stash holds " + printable(strings.TrimSpace(line)), nil
		}
	}
	return "", nil
}

// unpushed names the commit that is on no remote, "" when there is none. The
// workspace's own references count beside its branch and what is checked out.
func (s *Store) unpushed(ctx context.Context, at call, tree []string, r *record, admin string) (string, error) {
	for _, own := range []string{"refs/bisect", "refs/worktree", "refs/rewritten"} {
		if names, _ := os.ReadDir(filepath.Join(admin, own)); len(names) > 0 {
			return "references of its own under " + own, nil
		}
	}
	var tips []string
	for _, rev := range []string{"HEAD", "refs/heads/" + r.Branch} {
		if id, err := s.line(ctx, at, append(tree[:2:2], "rev-parse", "--verify", "--quiet", rev+"^{commit}")...); err == nil && id != "" {
			tips = append(tips, id)
		}
	}
	if len(tips) == 0 {
		return "", nil
	}
	args := append(append(tree[:2:2], "rev-list", "--count"), append(tips, "--not", "--remotes")...)
	n, err := s.line(ctx, at, args...)
	if err != nil || n == "0" {
		return "", err
	}
	return "commits that are on no remote: " + n, nil
}

// nested looks at every repository below a folder, and at what a worktree keeps
// of submodules that are not checked out: all of it goes with the folder.
func (s *Store) nested(ctx context.Context, dir, admin string) (Left, error) {
	var found Left
	see := func(name string, l Left) {
		if l.Work != "" && found.Work != Uncommitted {
			found = Left{Work: l.Work, Why: printable(name) + ": " + l.Why}
		}
	}
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if d.Name() != ".git" || p == filepath.Join(dir, ".git") {
			return nil
		}
		l, err := s.lookNested(ctx, filepath.Dir(p))
		if name, rerr := filepath.Rel(dir, filepath.Dir(p)); err == nil && rerr == nil {
			see(name, l)
		}
		if err == nil && d.IsDir() {
			err = fs.SkipDir
		}
		return err
	})
	if err != nil || admin == "" {
		return found, err
	}
	err = filepath.WalkDir(filepath.Join(admin, "modules"), func(p string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil || !d.IsDir() || !isRepo(p) {
			return err
		}
		l, err := s.lost(ctx, p)
		see(filepath.Base(p), l)
		if err == nil {
			err = fs.SkipDir
			if names, _ := os.ReadDir(filepath.Join(p, "modules")); len(names) > 0 {
				err = nil
			}
		}
		return err
	})
	return found, err
}

func isRepo(dir string) bool {
	for _, name := range []string{"HEAD", "objects", "refs"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err != nil {
			return false
		}
	}
	return true
}

// lookNested looks at a repository that stands inside of a workspace. Its place
// may not be where it thinks it is, so it is told.
func (s *Store) lookNested(ctx context.Context, dir string) (Left, error) {
	gitDir := filepath.Join(dir, ".git")
	if b, err := os.ReadFile(gitDir); err == nil {
		to, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "gitdir: ")
		if !ok {
			return Left{Work: Uncommitted, Why: "a file .git that is none of git's"}, nil
		}
		if gitDir = to; !filepath.IsAbs(to) {
			gitDir = filepath.Join(dir, to)
		}
	}
	if st, err := os.Stat(gitDir); err != nil || !st.IsDir() {
		return Left{Work: Uncommitted, Why: "a repository that cannot be read"}, nil
	}
	why, err := s.uncommitted(ctx, call{dir: dir}, []string{"--git-dir=" + gitDir, "--work-tree=" + dir}, dir, true, nil)
	if err != nil {
		return Left{Work: Uncommitted, Why: "it cannot be looked at: " + err.Error()}, nil
	}
	if why != "" {
		return Left{Work: Uncommitted, Why: why}, nil
	}
	return s.lost(ctx, gitDir)
}

// lost says what would go with a repository: commits of any reference that are on no remote.
func (s *Store) lost(ctx context.Context, gitDir string) (Left, error) {
	out, err := s.line(ctx, call{dir: gitDir}, "--git-dir="+gitDir, "--work-tree="+gitDir, "rev-list", "--count", "--all", "--not", "--remotes")
	switch {
	case ctx.Err() != nil:
		return Left{}, context.Cause(ctx)
	case err != nil:
		return Left{Work: Unpushed, Why: "it cannot be looked at: " + err.Error()}, nil
	case out != "0":
		return Left{Work: Unpushed, Why: "commits that are on no remote: " + out}, nil
	}
	return Left{}, nil
}

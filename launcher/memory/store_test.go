package memory

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	p := filepath.Join(dir, name)
	if err := os.MkdirAll(filepath.Dir(p), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(p, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func take(t *testing.T, s *Store, dir string) Ref {
	t.Helper()
	ref, err := s.Take(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

// M-29: a folder that was taken on one machine is the same on another, which asks for each content once; what is the
// same has the same name, and links are left out.
func TestAFolderMovesByItsContent(t *testing.T) {
	from, to, dir := &Store{t.TempDir()}, &Store{t.TempDir()}, t.TempDir()
	write(t, dir, "notes.md", "one")
	write(t, dir, "deep/er/copy.md", "one")
	write(t, dir, "b", "two")
	if err := os.Symlink("/etc/passwd", filepath.Join(dir, "link")); err != nil {
		t.Fatal(err)
	}
	ref := take(t, from, dir)
	if ref.Files != 3 || ref.Bytes != 9 || take(t, from, dir) != ref {
		t.Fatalf("taken: %+v", ref)
	}
	asked := 0
	for {
		missing, err := to.Missing(ref.Hash)
		if err != nil {
			t.Fatal(err)
		}
		if len(missing) == 0 {
			break
		}
		for _, h := range missing {
			f, err := from.Open(h)
			if err != nil {
				t.Fatal(err)
			}
			if err := to.Put(h, f); err != nil {
				t.Fatal(err)
			}
			f.Close()
			asked++
		}
	}
	if asked != 3 {
		t.Errorf("%d objects were asked for, want the list and two contents", asked)
	}
	there := filepath.Join(t.TempDir(), "home")
	write(t, there, "stale", "x")
	if err := to.Restore(context.Background(), ref.Hash, there); err != nil {
		t.Fatal(err)
	}
	if again := take(t, to, there); again != ref {
		t.Errorf("on the other machine it is %+v, want %+v", again, ref)
	}
}

// M-29: what came from elsewhere counts only if it is what it is called, and a list names nothing outside its folder.
func TestWhatComesIsChecked(t *testing.T) {
	s := &Store{t.TempDir()}
	ref := take(t, s, t.TempDir())
	if err := s.Put(strings.Repeat("a", 64), strings.NewReader("forged")); err == nil || s.Has(strings.Repeat("a", 64)) {
		t.Errorf("forged content is taken: %v", err)
	}
	if err := s.Put("../../x", strings.NewReader("")); err == nil {
		t.Error("a path is taken for a hash")
	}
	hash, _, err := s.put(strings.NewReader(`{"v":1,"files":[{"path":"../out","size":0,"sha256":"`+ref.Hash+`"}]}`), "", maxList)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Restore(context.Background(), hash, filepath.Join(t.TempDir(), "home")); err == nil {
		t.Error("a list that names a file outside its folder is laid out")
	}
}

// A folder beyond the bound is refused whole.
func TestTooMuchIsRefused(t *testing.T) {
	s, dir := &Store{t.TempDir()}, t.TempDir()
	f, err := os.Create(filepath.Join(dir, "big"))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Truncate(MaxBytes + 1); err != nil {
		t.Fatal(err)
	}
	f.Close()
	if _, err := s.Take(context.Background(), dir); !errors.Is(err, ErrTooLarge) {
		t.Errorf("%v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.Dir, "new-*")); len(left) > 0 {
		t.Errorf("left behind: %v", left)
	}
}

// A snapshot that is not here is told as such, and the folder stays as it was.
func TestMissingIsTold(t *testing.T) {
	s, dir := &Store{t.TempDir()}, filepath.Join(t.TempDir(), "home")
	write(t, dir, "kept", "x")
	if err := s.Restore(context.Background(), strings.Repeat("b", 64), dir); !errors.Is(err, ErrMissing) {
		t.Errorf("%v", err)
	}
	if b, err := os.ReadFile(filepath.Join(dir, "kept")); err != nil || string(b) != "x" {
		t.Errorf("the folder is %q, %v", b, err)
	}
}

// What a snapshot to keep is made of stays, whatever its age; what no snapshot needs goes when it is old.
func TestSweepKeepsWhatIsNamed(t *testing.T) {
	s, dir := &Store{t.TempDir()}, t.TempDir()
	write(t, dir, "a", "shared")
	write(t, dir, "b", "first")
	first := take(t, s, dir)
	write(t, dir, "b", "second")
	second := take(t, s, dir)
	if err := s.Sweep(nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	if missing, err := s.Missing(first.Hash); err != nil || len(missing) > 0 {
		t.Errorf("what is young went: %v, %v", missing, err)
	}
	if err := s.Sweep([]string{second.Hash}, -time.Hour); err != nil {
		t.Fatal(err)
	}
	if missing, err := s.Missing(second.Hash); err != nil || len(missing) > 0 {
		t.Errorf("the one to keep lacks %v, %v", missing, err)
	}
	if s.Has(first.Hash) {
		t.Error("the other one stays")
	}
}

// What is taken again is young again, however old it is here: a sweep meanwhile leaves it to who takes it.
func TestTakenAgainIsYoung(t *testing.T) {
	s, dir := &Store{t.TempDir()}, t.TempDir()
	write(t, dir, "a", "said before")
	ref := take(t, s, dir)
	old := time.Now().Add(-48 * time.Hour)
	if err := filepath.WalkDir(s.Dir, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Chtimes(path, old, old)
	}); err != nil {
		t.Fatal(err)
	}
	take(t, s, dir)
	if err := s.Sweep(nil, time.Hour); err != nil {
		t.Fatal(err)
	}
	if missing, err := s.Missing(ref.Hash); err != nil || len(missing) > 0 {
		t.Errorf("what was just taken lacks %v, %v", missing, err)
	}
}

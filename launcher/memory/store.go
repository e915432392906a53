package memory

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// Bounds of a snapshot.
const (
	MaxBytes = 256 << 20
	MaxFiles = 10_000
	maxList  = 8 << 20 // bytes of the list of files
)

// ErrTooLarge is what a folder is that passes a bound; nothing of it counts.
var ErrTooLarge = errors.New("memory: too large")

// ErrMissing is what an object is that this machine does not have.
var ErrMissing = errors.New("memory: not on this machine")

var hashRE = regexp.MustCompile(`^[0-9a-f]{64}$`)

// Ref names a snapshot.
type Ref struct {
	Hash         string
	Bytes, Files int64
}

// File is one file of a snapshot.
type File struct {
	Path   string `json:"path"` // with slashes, below the folder
	Exec   bool   `json:"exec,omitempty"`
	Size   int64  `json:"size"`
	SHA256 string `json:"sha256"`
}

// list is the content of a snapshot's own object, in the order of paths.
type list struct {
	V     int    `json:"v"`
	Files []File `json:"files"`
}

// Store is the objects of a machine, in a folder of its own.
type Store struct{ Dir string }

func (s *Store) path(hash string) (string, error) {
	if !hashRE.MatchString(hash) {
		return "", fmt.Errorf("memory: %q is no hash", hash)
	}
	return filepath.Join(s.Dir, hash[:2], hash), nil
}

// Has tells whether an object is here.
func (s *Store) Has(hash string) bool {
	p, err := s.path(hash)
	if err == nil {
		_, err = os.Stat(p)
	}
	return err == nil
}

// Open reads an object; [ErrMissing] when it is not here.
func (s *Store) Open(hash string) (*os.File, error) {
	p, err := s.path(hash)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(p)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: %s", ErrMissing, hash[:12])
	}
	return f, err
}

// put writes an object of at most so many bytes and gives its name; with want only one of that name counts.
func (s *Store) put(r io.Reader, want string, most int64) (hash string, n int64, err error) {
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return "", 0, err
	}
	f, err := os.CreateTemp(s.Dir, "new-*")
	if err != nil {
		return "", 0, err
	}
	defer func() {
		f.Close()
		_ = os.Remove(f.Name()) // it has another name by then, or does not count
	}()
	h := sha256.New()
	if n, err = io.Copy(io.MultiWriter(f, h), io.LimitReader(r, most+1)); err != nil {
		return "", 0, err
	}
	hash = hex.EncodeToString(h.Sum(nil))
	switch {
	case n > most:
		return "", 0, fmt.Errorf("%w: more than %d MB", ErrTooLarge, most>>20)
	case want != "" && hash != want:
		return "", 0, fmt.Errorf("memory: what came for %s is something else", want[:12])
	}
	p, err := s.path(hash)
	if err == nil && os.Chtimes(p, time.Time{}, time.Now()) == nil { // it is here, and young again: [Store.Sweep] leaves it to who is taking it
		return hash, n, nil
	}
	if err == nil {
		err = os.MkdirAll(filepath.Dir(p), 0o700)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		err = os.Rename(f.Name(), p)
	}
	if err == nil {
		err = syncDir(filepath.Dir(p))
	}
	return hash, n, err
}

// Put takes in an object that came from another machine, if it is what it is called.
func (s *Store) Put(hash string, r io.Reader) error {
	if _, err := s.path(hash); err != nil {
		return err
	}
	_, _, err := s.put(r, hash, MaxBytes)
	return err
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	return d.Sync()
}

// Take makes a snapshot of a folder. One that is not there is an empty one. What
// changes meanwhile is in it as it was read.
func (s *Store) Take(ctx context.Context, dir string) (Ref, error) {
	l, ref := list{V: 1, Files: []File{}}, Ref{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			if errors.Is(err, fs.ErrNotExist) { // it went while it was read
				return nil
			}
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		case !d.Type().IsRegular():
			return nil
		}
		if ref.Files++; ref.Files > MaxFiles {
			return fmt.Errorf("%w: more than %d files", ErrTooLarge, MaxFiles)
		}
		x, err := s.takeFile(dir, path, MaxBytes-ref.Bytes)
		if err != nil || x == nil {
			return err
		}
		ref.Bytes += x.Size
		l.Files = append(l.Files, *x)
		return nil
	})
	if err != nil {
		return Ref{}, err
	}
	b, err := json.Marshal(l)
	if err != nil {
		return Ref{}, err
	}
	ref.Files = int64(len(l.Files))
	ref.Hash, _, err = s.put(strings.NewReader(string(b)), "", maxList)
	return ref, err
}

func (s *Store) takeFile(dir, path string, most int64) (*File, error) {
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil || !st.Mode().IsRegular() {
		return nil, err
	}
	hash, n, err := s.put(f, "", most)
	if errors.Is(err, ErrTooLarge) {
		return nil, fmt.Errorf("%w: more than %d MB in all", ErrTooLarge, MaxBytes>>20)
	}
	if err != nil {
		return nil, err
	}
	rel, err := filepath.Rel(dir, path)
	return &File{Path: filepath.ToSlash(rel), Exec: st.Mode()&0o100 != 0, Size: n, SHA256: hash}, err
}

// Files are the files of a snapshot; [ErrMissing] when its list is not here.
func (s *Store) Files(hash string) ([]File, error) {
	f, err := s.Open(hash)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxList+1))
	if err != nil {
		return nil, err
	}
	var l list
	if err := json.Unmarshal(b, &l); err != nil || l.V != 1 || len(l.Files) > MaxFiles {
		return nil, fmt.Errorf("memory: %s is no list of files that this version knows", hash[:12])
	}
	total := int64(0)
	for _, x := range l.Files {
		if total += x.Size; !filepath.IsLocal(filepath.FromSlash(x.Path)) || !hashRE.MatchString(x.SHA256) || x.Size < 0 || total > MaxBytes {
			return nil, fmt.Errorf("memory: %s names a file that no snapshot may have: %q", hash[:12], x.Path)
		}
	}
	return l.Files, nil
}

// Missing are the objects of a snapshot that are not here; its list comes first, alone.
func (s *Store) Missing(hash string) ([]string, error) {
	if !s.Has(hash) {
		return []string{hash}, nil
	}
	files, err := s.Files(hash)
	if err != nil {
		return nil, err
	}
	var out []string
	seen := map[string]bool{}
	for _, x := range files {
		if !seen[x.SHA256] && !s.Has(x.SHA256) {
			out = append(out, x.SHA256)
		}
		seen[x.SHA256] = true
	}
	return out, nil
}

// Restore makes a folder what a snapshot says: made beside, on the disk, then put
// in its place. A crash, of the machine too, leaves the folder of before, none, or the new one, whole.
func (s *Store) Restore(ctx context.Context, hash, dir string) error {
	files, err := s.Files(hash)
	if err != nil {
		return err
	}
	fresh, old := dir+".new", dir+".old"
	for _, d := range []string{fresh, old} {
		if err := os.RemoveAll(d); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(fresh, 0o700); err != nil {
		return err
	}
	for _, x := range files {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		if err := s.lay(x, filepath.Join(fresh, filepath.FromSlash(x.Path))); err != nil {
			return err
		}
	}
	if err := syncDirs(fresh); err != nil {
		return err
	}
	if err := os.Rename(dir, old); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := os.Rename(fresh, dir); err != nil {
		return err
	}
	if err := syncDir(filepath.Dir(dir)); err != nil {
		return err
	}
	return os.RemoveAll(old)
}

// syncDirs syncs a folder and those below it.
func syncDirs(dir string) error {
	return filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.IsDir() {
			return err
		}
		return syncDir(path)
	})
}

func (s *Store) lay(x File, path string) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	from, err := s.Open(x.SHA256)
	if err != nil {
		return err
	}
	defer from.Close()
	mode := fs.FileMode(0o600)
	if x.Exec {
		mode = 0o700
	}
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	_, err = io.Copy(to, from)
	return errors.Join(err, to.Sync(), to.Close())
}

package cli

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"muster/board"
	"muster/cmd/muster/document"
)

// Files of a folder beside those of the board.
const (
	nextFile  = ".muster/next.json"  // base of an update that is under way
	applyFile = ".muster/apply.json" // steps of an apply that is under way
	tempFile  = ".muster/.new"
)

// folder is a board's folder on disk, held by this process alone. Nothing in it leads out of it, and no link is followed.
type folder struct {
	dir      string
	root     *os.Root
	lock     *os.File
	files    map[string][]byte
	problems []document.Problem
	base     *document.Base // nil: nothing was exported here yet
	next     *document.Base // of an update that was broken off
}

// openFolder opens the folder and reads it. With fresh it may hold none of ours yet.
func openFolder(dir string, fresh bool) (*folder, error) {
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, err
	}
	f := &folder{dir: dir, root: root, files: map[string][]byte{}}
	if err := f.open(fresh); err != nil {
		f.close()
		return nil, err
	}
	return f, nil
}

func (f *folder) open(fresh bool) (err error) {
	if fresh {
		if err := f.root.MkdirAll(document.SchemaFolder, 0o777); err != nil {
			return err
		}
	}
	if f.lock, err = f.root.Open(".muster"); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return board.Errorf(board.Invalid, "%s is no board's folder: it has no %s", f.dir, document.BaseFile).WithHint("make one: muster board export BOARD --dir %s", f.dir)
		}
		return err
	}
	if err := unix.Flock(int(f.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		return board.Errorf(board.Conflict, "%s: another export or apply is at work in this folder", f.dir).WithHint("try again when it has ended")
	}
	if f.base, err = f.readBase(document.BaseFile); err != nil {
		return err
	}
	if f.next, err = f.readBase(nextFile); err != nil {
		return err
	}
	if f.base == nil && !fresh {
		return board.Errorf(board.Invalid, "%s is no board's folder: it has no %s", f.dir, document.BaseFile).WithHint("make one: muster board export BOARD --dir %s", f.dir)
	}
	return f.read()
}

func (f *folder) close() {
	if f.lock != nil {
		f.lock.Close() // with its lock
	}
	f.root.Close()
}

func (f *folder) readBase(name string) (*document.Base, error) {
	raw, err := f.content(name, 256<<20)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return document.ParseBase(raw)
}

// content is a file's; anything but a plain file is refused, and so is one beyond the bound.
func (f *folder) content(name string, most int64) ([]byte, error) {
	st, err := f.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	switch {
	case !st.Mode().IsRegular():
		return nil, board.Errorf(board.Invalid, "%s is no plain file (links are not followed)", name)
	case st.Size() > most:
		return nil, board.Errorf(board.Exhausted, "%s has %d bytes; the bound is %d", name, st.Size(), most)
	}
	file, err := f.root.OpenFile(name, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, most+1))
	if err == nil && int64(len(raw)) > most {
		err = board.Errorf(board.Exhausted, "%s is longer than %d bytes", name, most)
	}
	return raw, err
}

// read reads what may be a board's; what cannot be is a problem with its name.
func (f *folder) read() error {
	for _, name := range []string{document.BoardFile, document.WorkflowFile, document.ProfilesFile} {
		f.take(name, document.MaxOtherFile)
	}
	for _, name := range document.SchemaNames() {
		f.take(name, document.MaxOtherFile)
	}
	st, err := f.root.Lstat(document.CardsFolder)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return err
	case !st.IsDir():
		f.problem(document.CardsFolder, "it is no folder (links are not followed)")
		return nil
	}
	list, err := fs.ReadDir(f.root.FS(), document.CardsFolder)
	if err != nil {
		return err
	}
	for _, e := range list {
		name := document.CardsFolder + "/" + e.Name()
		switch {
		case strings.HasPrefix(e.Name(), ".") || strings.HasSuffix(e.Name(), "~") || strings.HasSuffix(e.Name(), ".swp"):
			continue // of an editor or a file browser
		case e.IsDir() || !strings.HasSuffix(e.Name(), ".md"):
			f.problem(name, "a card is a file whose name ends in .md")
		case !utf8.ValidString(e.Name()):
			f.problem(name, "its name is no text")
		default:
			f.take(name, document.MaxCardFile)
		}
	}
	return nil
}

func (f *folder) take(name string, most int64) {
	raw, err := f.content(name, most)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return
	case err != nil:
		f.problem(name, err.Error())
	case !utf8.Valid(raw):
		f.problem(name, "it holds bytes that are no UTF-8")
	}
	f.files[name] = raw // a problem's too: it is there, and is not ours to replace
}

func (f *folder) problem(name, text string) {
	text = strings.TrimPrefix(strings.TrimPrefix(text, name), " ")
	f.problems = append(f.problems, document.Problem{File: name, Text: text})
}

// effective is the base that the files are held against, also after an update that was broken off.
func (f *folder) effective() *document.Base {
	if f.next == nil || f.base == nil {
		return f.base
	}
	return f.base.Over(f.next, f.files)
}

// known are contents that may be replaced: what an export or a broken-off update wrote.
func (f *folder) known(name, hash string) bool {
	for _, b := range []*document.Base{f.base, f.next} {
		if b != nil && b.Files[name] == hash {
			return true
		}
	}
	return false
}

// update writes what is planned. It says first what the folder is going to be, so that a run that was killed on the way
// is mended by the next; what stands in no file yet is never the only copy of anything.
func (f *folder) update(u *document.Update) error {
	if err := f.write(nextFile, u.Files[document.BaseFile]); err != nil {
		return err
	}
	if err := f.root.MkdirAll(document.CardsFolder, 0o777); err != nil {
		return err
	}
	for _, name := range u.Write {
		if err := f.root.MkdirAll(path.Dir(name), 0o777); err != nil {
			return err
		}
		if err := f.write(name, u.Files[name]); err != nil {
			return err
		}
	}
	for _, name := range u.Remove {
		if err := reach(name); err != nil {
			return err
		}
		if err := f.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := reach(document.BaseFile); err != nil {
		return err
	}
	if err := f.root.Rename(nextFile, document.BaseFile); err != nil {
		return err
	}
	return f.sync()
}

// write makes a file that is there whole or not at all.
func (f *folder) write(name string, raw []byte) error {
	if err := reach(name); err != nil {
		return err
	}
	file, err := f.root.OpenFile(tempFile, os.O_CREATE|os.O_WRONLY|os.O_TRUNC|unix.O_NOFOLLOW, 0o666)
	if err != nil {
		return err
	}
	_, err = file.Write(raw)
	if err == nil {
		err = file.Sync()
	}
	if cerr := file.Close(); err == nil {
		err = cerr
	}
	if err == nil {
		err = f.root.Rename(tempFile, name)
	}
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Join(f.dir, name), err)
	}
	return nil
}

// failAt ends the work on a folder where it comes to a file, for tests; nil ends none.
var failAt func(name string) error

func reach(name string) error {
	if failAt == nil {
		return nil
	}
	return failAt(name)
}

func (f *folder) sync() error {
	for _, name := range []string{".", ".muster", document.CardsFolder} {
		d, err := f.root.Open(name)
		if err != nil {
			return err
		}
		err = d.Sync()
		d.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

// freshFolder makes a folder that is there whole or not at all: where nothing is yet, or an empty folder.
func freshFolder(dir string, files map[string][]byte) (made bool, err error) {
	dir = filepath.Clean(dir)
	if list, err := os.ReadDir(dir); err == nil && len(list) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return false, err
	}
	temp, err := os.MkdirTemp(filepath.Dir(dir), "."+filepath.Base(dir)+"-")
	if err != nil {
		return false, err
	}
	defer os.RemoveAll(temp) // no longer there when all went well
	if err := os.Chmod(temp, 0o755); err != nil {
		return false, err
	}
	f, err := openFolder(temp, true)
	if err != nil {
		return false, err
	}
	u := &document.Update{Files: files}
	for name := range files {
		if name != document.BaseFile {
			u.Write = append(u.Write, name)
		}
	}
	slices.Sort(u.Write)
	err = f.update(u)
	f.close()
	if err != nil {
		return false, err
	}
	return true, os.Rename(temp, dir)
}

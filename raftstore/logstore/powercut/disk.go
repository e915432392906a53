package powercut

import (
	"errors"
	"os"
	"path/filepath"
	"sync"
	"syscall"
)

const (
	pageSize   = 4096
	sectorSize = 512
	rootIno    = 1
	versions   = 6 // of one page that are remembered until a sync
)

// ErrUnavailable is returned by Mount where FUSE cannot be used; the text says why.
var ErrUnavailable = errors.New("powercut: no FUSE here")

// Disk is a file system in memory. The zero value is not usable; see New.
type Disk struct {
	mu     sync.Mutex
	off    bool // the power is gone
	dead   chan struct{}
	left   int  // changes until the power goes, 0 for never
	ripe   bool // it goes before the next sync
	before bool
	next   uint64
	inodes map[uint64]*inode
	// names that are not durable yet, oldest first; each is all or nothing
	loose []nameChange
	trace *Trace
	syncs int
}

type inode struct {
	dir  bool
	mode uint32

	// of a folder
	names   map[string]uint64
	durable map[string]uint64

	// of a file. A page is never changed in place: a new version is a new slice; nil is zeros.
	size, durableSize   int64
	pages, durablePages map[int64][]byte
	loosePages          map[int64][][]byte
	looseSizes          []int64
}

type nameChange []nameEntry

type nameEntry struct {
	dir  uint64
	name string
	ino  uint64 // 0 removes the name
}

// New returns an empty disk.
func New() *Disk {
	return &Disk{dead: make(chan struct{}), next: rootIno + 1, inodes: map[uint64]*inode{rootIno: newDir(0o755)}}
}

func newDir(mode uint32) *inode {
	return &inode{dir: true, mode: mode, names: map[string]uint64{}, durable: map[string]uint64{}}
}

func newFile(mode uint32) *inode {
	return &inode{mode: mode, pages: map[int64][]byte{}, durablePages: map[int64][]byte{},
		loosePages: map[int64][][]byte{}}
}

// Load copies a plain folder onto the disk, all of it durable.
func (d *Disk) Load(dir string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.load(dir, rootIno)
}

func (d *Disk) load(dir string, into uint64) error {
	files, err := os.ReadDir(dir)
	if err != nil {
		return err
	}
	for _, f := range files {
		path := filepath.Join(dir, f.Name())
		info, err := f.Info()
		if err != nil {
			return err
		}
		ino := d.apply(Op{Kind: opCreate, Dir: into, Name: f.Name(), Mode: uint32(info.Mode().Perm()), IsDir: f.IsDir()})
		if f.IsDir() {
			if err := d.load(path, ino); err != nil {
				return err
			}
			continue
		}
		b, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		d.apply(Op{Kind: opWrite, Ino: ino, Data: b})
		d.apply(Op{Kind: opSync, Ino: ino})
	}
	d.apply(Op{Kind: opSync, Ino: into})
	return nil
}

// Syncs is the number of syncs so far, of files and folders.
func (d *Disk) Syncs() int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.syncs
}

// StopAfter lets the power go by itself after n more changes of the disk (writes, sizes, names, syncs), or, with
// beforeSync, in place of the first sync after them: moments that the clock meets rarely, because a sync takes no time
// here. The channel is closed then. Cut takes what the disk holds.
func (d *Disk) StopAfter(n int, beforeSync bool) <-chan struct{} {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.left, d.before = n, beforeSync
	return d.dead
}

// Stopped reports whether the power is gone.
func (d *Disk) Stopped() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.off
}

func (d *Disk) stop() {
	if !d.off {
		d.off = true
		close(d.dead)
	}
}

// apply is the only way to change the disk. It returns the inode of a create. Callers hold the lock and have checked
// that what they name is there.
func (d *Disk) apply(op Op) uint64 {
	if d.left > 0 {
		if d.left--; d.left == 0 {
			d.ripe = d.before
			if !d.before {
				defer d.stop()
			}
		}
	}
	if d.trace != nil {
		op.Data = append([]byte(nil), op.Data...)
		d.trace.Ops = append(d.trace.Ops, op)
	}
	switch op.Kind {
	case opCreate:
		ino := d.next
		d.next++
		d.inodes[ino] = newFile(op.Mode)
		if op.IsDir {
			d.inodes[ino] = newDir(op.Mode)
		}
		d.rename(nameEntry{op.Dir, op.Name, ino})
		return ino
	case opUnlink:
		d.rename(nameEntry{op.Dir, op.Name, 0})
	case opRename:
		ino := d.inodes[op.Dir].names[op.Name]
		d.rename(nameEntry{op.Dir, op.Name, 0}, nameEntry{op.Dir2, op.Name2, ino})
	case opWrite:
		d.inodes[op.Ino].write(op.Off, op.Data)
	case opSize:
		d.inodes[op.Ino].resize(op.Off)
	case opSync:
		d.syncs++
		d.sync(op.Ino)
	}
	return 0
}

func (d *Disk) rename(change ...nameEntry) {
	for _, e := range change {
		set(d.inodes[e.dir].names, e)
	}
	d.loose = append(d.loose, change)
}

func set(names map[string]uint64, e nameEntry) {
	if e.ino == 0 {
		delete(names, e.name)
		return
	}
	names[e.name] = e.ino
}

func (n *inode) write(off int64, data []byte) {
	for len(data) > 0 {
		at, in := off/pageSize, int(off%pageSize)
		page := make([]byte, pageSize)
		copy(page, n.pages[at])
		done := copy(page[in:], data)
		n.put(at, page)
		off, data = off+int64(done), data[done:]
	}
	if off > n.size {
		n.size = off
		n.looseSizes = append(n.looseSizes, off)
	}
}

func (n *inode) put(at int64, page []byte) {
	n.pages[at] = page
	if page == nil {
		delete(n.pages, at)
	}
	old := n.loosePages[at]
	if len(old) == versions {
		old = old[1:]
	}
	n.loosePages[at] = append(old, page)
}

func (n *inode) resize(size int64) {
	for at := range n.pages {
		if at*pageSize >= size {
			n.put(at, nil)
		}
	}
	if in := size % pageSize; in != 0 && size < n.size && n.pages[size/pageSize] != nil {
		page := make([]byte, pageSize)
		copy(page, n.pages[size/pageSize][:in])
		n.put(size/pageSize, page)
	}
	n.size = size
	n.looseSizes = append(n.looseSizes, size)
}

func (n *inode) read(off int64, buf []byte) int {
	if off >= n.size {
		return 0
	}
	buf = buf[:min(int64(len(buf)), n.size-off)]
	for done := 0; done < len(buf); {
		at, in := (off+int64(done))/pageSize, int((off+int64(done))%pageSize)
		part := buf[done:min(len(buf), done+pageSize-in)]
		clear(part)
		if page := n.pages[at]; page != nil {
			copy(part, page[in:])
		}
		done += len(part)
	}
	return len(buf)
}

func (d *Disk) sync(ino uint64) {
	n := d.inodes[ino]
	if !n.dir {
		for at := range n.loosePages {
			if page := n.pages[at]; page != nil {
				n.durablePages[at] = page
			} else {
				delete(n.durablePages, at)
			}
		}
		n.durableSize = n.size
		n.loosePages, n.looseSizes = map[int64][][]byte{}, nil
		return
	}
	kept := d.loose[:0]
	for _, change := range d.loose {
		touches := false
		for _, e := range change {
			touches = touches || e.dir == ino
		}
		if !touches {
			kept = append(kept, change)
			continue
		}
		for _, e := range change {
			set(d.inodes[e.dir].durable, e)
		}
	}
	d.loose = kept
}

// on runs fn under the lock, or fails with EIO when the power is gone.
func (d *Disk) on(fn func() syscall.Errno) syscall.Errno {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.off {
		return syscall.EIO
	}
	return fn()
}

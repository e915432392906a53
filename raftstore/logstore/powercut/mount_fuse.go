//go:build linux && (amd64 || arm64)

package powercut

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"slices"
	"syscall"
	"time"

	"github.com/hanwen/go-fuse/v2/fuse"
)

const maxWrite = 1 << 17

const forEver = uint64(24 * time.Hour / time.Second) // nobody but the kernel changes the disk

// Mount serves the disk at dir, an existing folder, until unmount. It needs root and /dev/fuse: else ErrUnavailable.
func (d *Disk) Mount(dir string) (unmount func() error, err error) {
	return mount(dir, &bridge{RawFileSystem: fuse.NewDefaultRawFileSystem(), d: d})
}

// mount is made here and not by go-fuse, which lets children inherit its descriptor: then the mount would outlive
// a test that dies, and the children in it could not even be killed.
func mount(dir string, disk fuse.RawFileSystem) (unmount func() error, err error) {
	if os.Geteuid() != 0 {
		return nil, fmt.Errorf("%w: mounting needs root", ErrUnavailable)
	}
	fd, err := syscall.Open("/dev/fuse", syscall.O_RDWR|syscall.O_CLOEXEC, 0)
	if err != nil {
		return nil, fmt.Errorf("%w: /dev/fuse: %w", ErrUnavailable, err)
	}
	options := fmt.Sprintf("fd=%d,rootmode=%o,user_id=0,group_id=0,max_read=%d", fd, syscall.S_IFDIR, maxWrite)
	if err := syscall.Mount("powercut", dir, "fuse.powercut", syscall.MS_NOSUID|syscall.MS_NODEV, options); err != nil {
		syscall.Close(fd)
		return nil, fmt.Errorf("%w: mount: %w", ErrUnavailable, err)
	}
	detach := func() error { return syscall.Unmount(dir, syscall.MNT_FORCE|syscall.MNT_DETACH) }
	server, err := fuse.NewServer(disk, fmt.Sprintf("/dev/fd/%d", fd), &fuse.MountOptions{Name: "powercut", DisableXAttrs: true, MaxWrite: maxWrite})
	if err != nil {
		syscall.Close(fd)
		return nil, errors.Join(err, detach())
	}
	go server.Serve()
	return func() error {
		defer server.Wait()
		return detach()
	}, nil
}

// bridge answers the kernel from the disk. A node id is an inode number.
type bridge struct {
	fuse.RawFileSystem
	d *Disk
}

func (b *bridge) String() string { return "powercut" }

func (b *bridge) do(fn func() syscall.Errno) fuse.Status { return fuse.Status(b.d.on(fn)) }

func (b *bridge) attr(ino uint64, out *fuse.Attr) {
	n := b.d.inodes[ino]
	out.Ino, out.Nlink, out.Blksize = ino, 1, pageSize
	out.Mode = syscall.S_IFREG | n.mode
	out.Size = uint64(n.size)
	out.Blocks = uint64(len(n.pages)) * pageSize / 512
	if n.dir {
		out.Mode, out.Nlink = syscall.S_IFDIR|n.mode, 2
	}
}

func (b *bridge) entry(ino uint64, out *fuse.EntryOut) {
	out.NodeId, out.EntryValid, out.AttrValid = ino, forEver, forEver
	b.attr(ino, &out.Attr)
}

func (b *bridge) Lookup(_ <-chan struct{}, h *fuse.InHeader, name string, out *fuse.EntryOut) fuse.Status {
	return b.do(func() syscall.Errno {
		ino, ok := b.d.inodes[h.NodeId].names[name]
		if !ok {
			return syscall.ENOENT
		}
		b.entry(ino, out)
		return 0
	})
}

func (b *bridge) Forget(uint64, uint64) {}

func (b *bridge) GetAttr(_ <-chan struct{}, in *fuse.GetAttrIn, out *fuse.AttrOut) fuse.Status {
	return b.do(func() syscall.Errno {
		out.AttrValid = forEver
		b.attr(in.NodeId, &out.Attr)
		return 0
	})
}

func (b *bridge) SetAttr(_ <-chan struct{}, in *fuse.SetAttrIn, out *fuse.AttrOut) fuse.Status {
	return b.do(func() syscall.Errno {
		if size, ok := in.GetSize(); ok {
			b.d.apply(Op{Kind: opSize, Ino: in.NodeId, Off: int64(size)})
		}
		if mode, ok := in.GetMode(); ok {
			b.d.inodes[in.NodeId].mode = mode & 0o777
		}
		out.AttrValid = forEver
		b.attr(in.NodeId, &out.Attr)
		return 0
	})
}

func (b *bridge) make(dir uint64, name string, mode uint32, isDir bool, out *fuse.EntryOut) fuse.Status {
	return b.do(func() syscall.Errno {
		if _, ok := b.d.inodes[dir].names[name]; ok {
			return syscall.EEXIST
		}
		ino := b.d.apply(Op{Kind: opCreate, Dir: dir, Name: name, Mode: mode & 0o777, IsDir: isDir})
		b.entry(ino, out)
		return 0
	})
}

func (b *bridge) Mkdir(_ <-chan struct{}, in *fuse.MkdirIn, name string, out *fuse.EntryOut) fuse.Status {
	return b.make(in.NodeId, name, in.Mode, true, out)
}

func (b *bridge) Mknod(_ <-chan struct{}, in *fuse.MknodIn, name string, out *fuse.EntryOut) fuse.Status {
	return b.make(in.NodeId, name, in.Mode, false, out)
}

func (b *bridge) Create(_ <-chan struct{}, in *fuse.CreateIn, name string, out *fuse.CreateOut) fuse.Status {
	return b.make(in.NodeId, name, in.Mode, false, &out.EntryOut)
}

func (b *bridge) remove(dir uint64, name string, isDir bool) fuse.Status {
	return b.do(func() syscall.Errno {
		ino, ok := b.d.inodes[dir].names[name]
		switch {
		case !ok:
			return syscall.ENOENT
		case b.d.inodes[ino].dir != isDir && isDir:
			return syscall.ENOTDIR
		case b.d.inodes[ino].dir != isDir:
			return syscall.EISDIR
		case isDir && len(b.d.inodes[ino].names) > 0:
			return syscall.ENOTEMPTY
		}
		b.d.apply(Op{Kind: opUnlink, Dir: dir, Name: name})
		return 0
	})
}

func (b *bridge) Unlink(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return b.remove(h.NodeId, name, false)
}

func (b *bridge) Rmdir(_ <-chan struct{}, h *fuse.InHeader, name string) fuse.Status {
	return b.remove(h.NodeId, name, true)
}

func (b *bridge) Rename(_ <-chan struct{}, in *fuse.RenameIn, from, to string) fuse.Status {
	return b.do(func() syscall.Errno {
		if in.Flags != 0 {
			return syscall.ENOTSUP
		}
		if _, ok := b.d.inodes[in.NodeId].names[from]; !ok {
			return syscall.ENOENT
		}
		old, ok := b.d.inodes[in.Newdir].names[to]
		if ok && b.d.inodes[old].dir && len(b.d.inodes[old].names) > 0 {
			return syscall.ENOTEMPTY
		}
		b.d.apply(Op{Kind: opRename, Dir: in.NodeId, Name: from, Dir2: in.Newdir, Name2: to})
		return 0
	})
}

func (b *bridge) Open(_ <-chan struct{}, in *fuse.OpenIn, out *fuse.OpenOut) fuse.Status {
	return b.do(func() syscall.Errno {
		if in.Flags&syscall.O_TRUNC != 0 {
			b.d.apply(Op{Kind: opSize, Ino: in.NodeId})
		}
		out.OpenFlags = fuse.FOPEN_KEEP_CACHE
		return 0
	})
}

func (b *bridge) Read(_ <-chan struct{}, in *fuse.ReadIn, buf []byte) (fuse.ReadResult, fuse.Status) {
	n := 0
	status := b.do(func() syscall.Errno {
		n = b.d.inodes[in.NodeId].read(int64(in.Offset), buf)
		return 0
	})
	return fuse.ReadResultData(buf[:n]), status
}

func (b *bridge) Write(_ <-chan struct{}, in *fuse.WriteIn, data []byte) (uint32, fuse.Status) {
	return uint32(len(data)), b.do(func() syscall.Errno {
		b.d.apply(Op{Kind: opWrite, Ino: in.NodeId, Off: int64(in.Offset), Data: data})
		return 0
	})
}

func (b *bridge) Fallocate(_ <-chan struct{}, in *fuse.FallocateIn) fuse.Status {
	return b.do(func() syscall.Errno {
		if in.Mode != 0 {
			return syscall.ENOTSUP
		}
		if size := int64(in.Offset + in.Length); size > b.d.inodes[in.NodeId].size {
			b.d.apply(Op{Kind: opSize, Ino: in.NodeId, Off: size})
		}
		return 0
	})
}

func (b *bridge) Fsync(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status { return b.sync(in.NodeId) }

func (b *bridge) FsyncDir(_ <-chan struct{}, in *fuse.FsyncIn) fuse.Status { return b.sync(in.NodeId) }

func (b *bridge) sync(ino uint64) fuse.Status {
	return b.do(func() syscall.Errno {
		if b.d.ripe {
			b.d.stop()
			return syscall.EIO
		}
		b.d.apply(Op{Kind: opSync, Ino: ino})
		return 0
	})
}

func (b *bridge) Flush(<-chan struct{}, *fuse.FlushIn) fuse.Status { return fuse.OK }

func (b *bridge) Access(<-chan struct{}, *fuse.AccessIn) fuse.Status { return fuse.OK }

func (b *bridge) OpenDir(<-chan struct{}, *fuse.OpenIn, *fuse.OpenOut) fuse.Status { return fuse.OK }

func (b *bridge) ReadDir(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return b.list(in, func(e fuse.DirEntry) bool { return out.AddDirEntry(e) })
}

func (b *bridge) ReadDirPlus(_ <-chan struct{}, in *fuse.ReadIn, out *fuse.DirEntryList) fuse.Status {
	return b.list(in, func(e fuse.DirEntry) bool {
		entry := out.AddDirLookupEntry(e)
		if entry != nil {
			b.entry(e.Ino, entry)
		}
		return entry != nil
	})
}

// list goes by sorted name; names that come or go between two calls may be missed, as POSIX allows.
func (b *bridge) list(in *fuse.ReadIn, add func(fuse.DirEntry) bool) fuse.Status {
	return b.do(func() syscall.Errno {
		dir := b.d.inodes[in.NodeId].names
		names := slices.Sorted(maps.Keys(dir))
		for i := int(in.Offset); i < len(names); i++ {
			mode := uint32(syscall.S_IFREG)
			if b.d.inodes[dir[names[i]]].dir {
				mode = syscall.S_IFDIR
			}
			if !add(fuse.DirEntry{Mode: mode, Name: names[i], Ino: dir[names[i]], Off: uint64(i + 1)}) {
				break
			}
		}
		return 0
	})
}

func (b *bridge) StatFs(_ <-chan struct{}, _ *fuse.InHeader, out *fuse.StatfsOut) fuse.Status {
	out.Bsize, out.Frsize, out.Blocks, out.Bfree, out.Bavail = pageSize, pageSize, 1<<20, 1<<20, 1<<20
	out.NameLen = 255
	return fuse.OK
}

package node

import (
	"fmt"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// wandering are file systems whose inode numbers may be others after the next mount.
var wandering = []int64{unix.FUSE_SUPER_MAGIC, unix.V9FS_MAGIC, unix.MSDOS_SUPER_MAGIC, unix.EXFAT_SUPER_MAGIC}

func bornOf(path string) (b born, err error) {
	var s unix.Statx_t
	if err := unix.Statx(unix.AT_FDCWD, path, unix.AT_SYMLINK_NOFOLLOW, unix.STATX_INO|unix.STATX_BTIME, &s); err != nil {
		return b, fmt.Errorf("%s: %w", path, err)
	}
	if s.Mask&unix.STATX_BTIME != 0 {
		b.At = s.Btime.Sec*1e9 + int64(s.Btime.Nsec)
	}
	var on unix.Statfs_t
	if err := unix.Statfs(filepath.Dir(path), &on); err != nil {
		return b, fmt.Errorf("%s: %w", path, err)
	}
	if !slices.Contains(wandering, int64(on.Type)) {
		b.Inode = s.Ino
	}
	return b, nil
}

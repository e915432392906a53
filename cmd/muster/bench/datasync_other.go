//go:build !linux

package bench

import "os"

// datasync waits until the file's data is on the disk. On macOS os.File.Sync
// is F_FULLFSYNC, which is dearer than fdatasync on Linux and what bbolt does.
func datasync(f *os.File) error { return f.Sync() }

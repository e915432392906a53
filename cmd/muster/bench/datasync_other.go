//go:build !linux

package bench

import "os"

// Datasync waits until the file's data is on the disk. On macOS os.File.Sync
// is F_FULLFSYNC, which is dearer than fdatasync on Linux and what bbolt does.
func Datasync(f *os.File) error { return f.Sync() }

//go:build !linux

package powercut

import (
	"fmt"
	"runtime"
)

// Mount needs Linux.
func (d *Disk) Mount(string) (unmount func() error, err error) {
	return nil, fmt.Errorf("%w: it is used on Linux only, this is %s", ErrUnavailable, runtime.GOOS)
}

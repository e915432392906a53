//go:build !linux || !(amd64 || arm64)

package powercut

import (
	"fmt"
	"runtime"
)

// Mount needs Linux on amd64 or arm64.
func (d *Disk) Mount(string) (unmount func() error, err error) { return nil, elsewhere() }

// Mount needs Linux on amd64 or arm64.
func (h *Hang) Mount(string) (unmount func() error, err error) { return nil, elsewhere() }

func elsewhere() error {
	return fmt.Errorf("%w: it is used on linux/amd64 and linux/arm64 only, this is %s/%s", ErrUnavailable, runtime.GOOS,
		runtime.GOARCH)
}

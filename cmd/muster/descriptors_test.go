package main

import (
	"testing"

	"golang.org/x/sys/unix"
)

// What was open when a node started, a shell's lock for one, is not passed on to what it starts.
func TestDescriptorsAreSealed(t *testing.T) {
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		t.Fatal(err)
	}
	defer unix.Close(p[0])
	defer unix.Close(p[1])
	sealDescriptors()
	for _, fd := range p {
		if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err != nil || flags&unix.FD_CLOEXEC == 0 {
			t.Errorf("descriptor %d would be passed on: flags %d, %v", fd, flags, err)
		}
	}
}

package launcher

import (
	"os"
	"strings"
	"sync"

	"muster/board/lease"

	"golang.org/x/sys/unix"
)

func bootNow() lease.Instant {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0 // never on a kernel since 2.6.39; 0 is in the past, so nothing is started by it
	}
	return lease.Instant(ts.Nano())
}

var bootID = sync.OnceValue(func() string {
	b, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return "unknown"
	}
	return strings.TrimSpace(string(b))
})

// bootTimer fires at a moment of the boot clock, also when the moment went by
// in the machine's sleep. C has one slot.
type bootTimer struct {
	C chan struct{}
	f *os.File
}

func newBootTimer() (*bootTimer, error) {
	fd, err := unix.TimerfdCreate(unix.CLOCK_BOOTTIME, unix.TFD_CLOEXEC|unix.TFD_NONBLOCK)
	if err != nil {
		return nil, os.NewSyscallError("timerfd_create", err)
	}
	t := &bootTimer{C: make(chan struct{}, 1), f: os.NewFile(uintptr(fd), "timerfd")}
	go t.read()
	return t, nil
}

func (t *bootTimer) read() {
	var b [8]byte
	for {
		if _, err := t.f.Read(b[:]); err != nil {
			return
		}
		select {
		case t.C <- struct{}{}:
		default:
		}
	}
}

// Set arms the timer for a moment; 0 disarms it.
func (t *bootTimer) Set(at lease.Instant) error {
	raw, err := t.f.SyscallConn()
	if err != nil {
		return err
	}
	spec := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(at))}
	var serr error
	err = raw.Control(func(fd uintptr) { serr = unix.TimerfdSettime(int(fd), unix.TFD_TIMER_ABSTIME, &spec, nil) })
	if err == nil {
		err = serr
	}
	return os.NewSyscallError("timerfd_settime", err)
}

func (t *bootTimer) Close() error { return t.f.Close() }

package launcher

import (
	"os"

	"golang.org/x/sys/unix"
)

// makeRaw has every byte of a terminal passed on as it is, in both directions.
func makeRaw(f *os.File) error {
	tio, err := unix.IoctlGetTermios(int(f.Fd()), getTermios)
	if err != nil {
		return os.NewSyscallError("ioctl", err)
	}
	tio.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	tio.Oflag &^= unix.OPOST
	tio.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	tio.Cflag = tio.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	tio.Cc[unix.VMIN], tio.Cc[unix.VTIME] = 1, 0
	return os.NewSyscallError("ioctl", unix.IoctlSetTermios(int(f.Fd()), setTermios, tio))
}

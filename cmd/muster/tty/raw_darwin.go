package tty

import "golang.org/x/sys/unix"

const getTermios, setTermios, setTermiosFlush = unix.TIOCGETA, unix.TIOCSETA, unix.TIOCSETAF

package tty

import "golang.org/x/sys/unix"

const getTermios, setTermios, setTermiosFlush = unix.TCGETS, unix.TCSETS, unix.TCSETSF

package tty

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// Terminal is the person's own, with every byte passed on as it is until Close.
type Terminal struct {
	in, out *os.File
	was     unix.Termios
	sizes   chan os.Signal
	guard   io.Closer
	once    sync.Once
}

// What leaves a terminal as people know it: their screen, a cursor, no reports of mouse, focus or paste, plain keys.
const (
	enterScreen = "\x1b[?1049h\x1b[2J\x1b[H"
	leaveScreen = "\x1b[?2004l\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?1004l\x1b[?1l\x1b>\x1b[r\x1b(B\x0f\x1b[0m\x1b[?25h\x1b[?1049l"
)

// ErrNoTerminal: what one types, or what is shown, is no terminal.
var ErrNoTerminal = errors.New("it is no terminal")

// Take takes over the person's terminal.
func Take(in, out *os.File) (*Terminal, error) {
	tio, err := unix.IoctlGetTermios(int(in.Fd()), getTermios)
	if err != nil {
		return nil, ErrNoTerminal
	}
	if _, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ); err != nil {
		return nil, ErrNoTerminal
	}
	t := &Terminal{in: in, out: out, was: *tio, sizes: make(chan os.Signal, 1)}
	t.guard = t.watchOver()
	raw := *tio
	raw.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	raw.Oflag &^= unix.OPOST
	raw.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	raw.Cflag = raw.Cflag&^(unix.CSIZE|unix.PARENB) | unix.CS8
	raw.Cc[unix.VMIN], raw.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(int(in.Fd()), setTermios, &raw); err != nil {
		return nil, fmt.Errorf("this terminal: %w", err)
	}
	signal.Notify(t.sizes, syscall.SIGWINCH)
	_, err = io.WriteString(out, enterScreen)
	return t, err
}

// Size is the terminal's now.
func (t *Terminal) Size() Size { return SizeOf(t.out) }

// SizeOf is the size of a terminal, a common one when it does not say.
func SizeOf(out *os.File) Size {
	w, err := unix.IoctlGetWinsize(int(out.Fd()), unix.TIOCGWINSZ)
	if err != nil || w.Col == 0 || w.Row == 0 {
		return Size{80, 24}
	}
	return Size{w.Col, w.Row}
}

// Resized has something when the size has changed.
func (t *Terminal) Resized() <-chan os.Signal { return t.sizes }

// Close gives the terminal back as it was. It is idempotent.
func (t *Terminal) Close() {
	t.once.Do(func() {
		signal.Stop(t.sizes)
		_, _ = io.WriteString(t.out, leaveScreen)
		_ = unix.IoctlSetTermios(int(t.in.Fd()), setTermiosFlush, &t.was)
		if t.guard != nil {
			_ = t.guard.Close()
		}
	})
}

// guarding gives the terminal back when this process was killed and could not: it ends
// of the end of its input, and does nothing when it was told that all is well.
const guarding = `trap '' HUP INT QUIT TERM TSTP TTOU TTIN
read -r word; [ "$word" = well ] && exit
stty "$1" <&3 && printf '%b' "$2" >&3`

// guard is the process that does it.
type guard struct {
	cmd *exec.Cmd
	in  io.WriteCloser
}

// watchOver starts the guard, if this machine has what it takes.
func (t *Terminal) watchOver() io.Closer {
	was := exec.Command("stty", "-g")
	was.Stdin = t.in
	state, err := was.Output()
	if err != nil {
		return nil
	}
	cmd := exec.Command("sh", "-c", guarding, "muster-attach", string(trimLine(state)), escaped(leaveScreen))
	cmd.ExtraFiles = []*os.File{t.in}
	in, err := cmd.StdinPipe()
	if err != nil || cmd.Start() != nil {
		return nil
	}
	return &guard{cmd, in}
}

func (g *guard) Close() error {
	_, err := io.WriteString(g.in, "well\n")
	return errors.Join(err, g.in.Close(), g.cmd.Wait())
}

func trimLine(b []byte) []byte {
	for len(b) > 0 && b[len(b)-1] == '\n' {
		b = b[:len(b)-1]
	}
	return b
}

// escaped writes control characters as printf's %b reads them.
func escaped(s string) string {
	var b []byte
	for i := range len(s) {
		if s[i] < 0x20 {
			b = fmt.Appendf(b, `\0%03o`, s[i])
		} else {
			b = append(b, s[i])
		}
	}
	return string(b)
}

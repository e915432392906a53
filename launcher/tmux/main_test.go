package tmux

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"muster/launcher/orphantest"
)

// The test binary is also the program in the panes.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "raw" {
		if err := raw(os.Args[2], os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	if len(os.Args) > 1 && os.Args[1] == "drive" {
		s := New(Config{Dir: os.Args[2]})
		if err := s.Open(context.Background()); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		fmt.Println("drives")
		select {}
	}
	os.Exit(orphantest.Run(m.Run))
}

// raw writes every byte that it reads from its terminal to a file, and the
// words it was started with to another. It asks for bracketed paste when the
// first word is "bracketed".
func raw(file string, words []string) error {
	tio, err := unix.IoctlGetTermios(0, getTermios)
	if err != nil {
		return err
	}
	tio.Iflag &^= unix.IGNBRK | unix.BRKINT | unix.PARMRK | unix.ISTRIP | unix.INLCR | unix.IGNCR | unix.ICRNL | unix.IXON
	tio.Lflag &^= unix.ECHO | unix.ECHONL | unix.ICANON | unix.ISIG | unix.IEXTEN
	tio.Cc[unix.VMIN], tio.Cc[unix.VTIME] = 1, 0
	if err := unix.IoctlSetTermios(0, setTermios, tio); err != nil {
		return err
	}
	if err := os.WriteFile(file+".words", []byte(strings.Join(words, "\x00")), 0o600); err != nil {
		return err
	}
	f, err := os.OpenFile(file, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	if len(words) > 0 && words[0] == "bracketed" {
		fmt.Print("\x1b[?2004h")
	}
	fmt.Print("ready")
	b := make([]byte, 4096)
	for {
		n, err := os.Stdin.Read(b)
		if _, werr := f.Write(b[:n]); werr != nil || err != nil {
			return werr
		}
	}
}

const slow = 20 * time.Second

func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	tick := time.NewTicker(3 * time.Millisecond)
	defer tick.Stop()
	end := time.After(slow)
	for !ok() {
		select {
		case <-tick.C:
		case <-end:
			t.Fatalf("after %s still not: %s", slow, what)
		}
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// newServer is a tmux server of this test's own.
func newServer(t *testing.T) *Server {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Skip("needs tmux: to show what a terminal does with it")
	}
	s := New(Config{Dir: filepath.Join(t.TempDir(), "tmux")})
	t.Cleanup(func() {
		_, _ = s.do(context.Background(), "kill-server")
		s.Close()
	})
	return s
}

// reader is a pane whose program keeps what it reads.
type reader struct {
	*Pane
	t    *testing.T
	s    *Server
	file string
}

func newReader(t *testing.T, s *Server, name string, words ...string) *reader {
	t.Helper()
	exe, err := os.Executable()
	must(t, err)
	r := &reader{t: t, s: s, file: filepath.Join(t.TempDir(), "read")}
	r.Pane, err = s.New(t.Context(), name, name, append([]string{exe, "raw", r.file}, words...))
	must(t, err)
	eventually(t, "the program of "+name, func() bool {
		screen, err := s.Screen(t.Context(), r.ID)
		must(t, err)
		return strings.Contains(screen, "ready")
	})
	return r
}

// reads waits until the program has read exactly this.
func (r *reader) reads(want string) {
	r.t.Helper()
	var got []byte
	defer func() {
		if string(got) != want {
			r.t.Errorf("read %d bytes (%.200q), want %d (%.200q)", len(got), got, len(want), want)
		}
	}()
	eventually(r.t, "what was sent", func() bool {
		var err error
		got, err = os.ReadFile(r.file)
		return err == nil && len(got) >= len(want)
	})
}

package bench

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// pane is P4b: the start of a session in a pane, beside a bare window of tmux.
func pane(ctx context.Context, env Env) (_ []Result, err error) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		return nil, &Missing{"tmux", "it is what a pane's start is measured against"}
	}
	f, err := StartFleet(ctx, env, 3)
	if err != nil {
		return nil, err
	}
	defer func() {
		for _, n := range f.Nodes {
			_ = exec.Command(tmux, "-S", filepath.Join(n.Data, "tmux", "s"), "kill-server").Run() // it may have none
		}
		err = errors.Join(err, f.Close())
	}()
	s, err := newStarter(ctx, f)
	if err != nil {
		return nil, err
	}
	defer s.pipe.Close()
	s.who = "pane"
	bare, err := newWindows(ctx, tmux, f.dir)
	if err != nil {
		return nil, err
	}
	defer bare.close()
	a := s.side()
	a.Name = "card add -> the first word of its session in a pane, on a non-leader of three idle nodes"
	r, err := Pair(ctx, env.Config("pane", "ms", Goal{Name: "gate", AtMost: 3}, Goal{Name: "target", AtMost: 1.5}, Goal{Name: "moonshot", AtMost: 1}), a, bare.side())
	return []Result{r}, err
}

// windows is a plain tmux server whose windows say a word.
type windows struct {
	tmux, socket, fifo string
	pipe               *os.File
	words              *bufio.Reader
}

func newWindows(ctx context.Context, tmux, dir string) (*windows, error) {
	w := &windows{tmux: tmux, socket: filepath.Join(dir, "bare"), fifo: filepath.Join(dir, "bare-words")}
	if err := syscall.Mkfifo(w.fifo, 0o600); err != nil {
		return nil, fmt.Errorf("pipe for the windows' words: %w", err)
	}
	var err error
	if w.pipe, err = os.OpenFile(w.fifo, os.O_RDWR, 0); err != nil {
		return nil, fmt.Errorf("pipe for the windows' words: %w", err)
	}
	w.words = bufio.NewReader(w.pipe)
	if out, err := exec.CommandContext(ctx, tmux, "-f", os.DevNull, "-S", w.socket, "new-session", "-d", "-s", "bare", "--", "tail", "-f", os.DevNull).CombinedOutput(); err != nil {
		return nil, errors.Join(fmt.Errorf("tmux: %w: %s", err, out), w.pipe.Close())
	}
	return w, nil
}

func (w *windows) close() {
	_ = exec.Command(w.tmux, "-S", w.socket, "kill-server").Run() // it may have ended
	w.pipe.Close()
}

// side measures from the call of tmux to the first word of the window's program.
func (w *windows) side() Side {
	return Side{Name: "tmux new-window of the same shell -> its first word", Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		var took []time.Duration
		for end := time.Now().Add(window); len(took) == 0 || time.Now().Before(end); {
			if err := w.pipe.SetReadDeadline(time.Now().Add(20 * time.Second)); err != nil {
				return Sample{}, err
			}
			began := time.Now()
			cmd := exec.CommandContext(ctx, w.tmux, "-S", w.socket, "new-window", "-d", "-t", "=bare:", "--", "sh", "-c", `echo started >"$0"`, w.fifo)
			if err := cmd.Start(); err != nil {
				return Sample{}, fmt.Errorf("tmux: %w", err)
			}
			_, err := w.words.ReadString('\n')
			took = append(took, time.Since(began))
			if err = errors.Join(err, cmd.Wait()); err != nil {
				return Sample{}, fmt.Errorf("tmux new-window: %w", err)
			}
		}
		return sampleOf(LatencyOf(took)), nil
	}}
}

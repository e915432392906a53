package bench

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/creack/pty"

	"muster/board"
	"muster/cmd/muster/api"
	panes "muster/launcher/tmux"
)

// echoBoard is the workflow of a board whose sessions echo what is typed, in a pane.
const echoBoard = `
version: 1
name: default
extends: default
profiles:
  echo: {harness: command, surface: pane, args: [sh, -c, 'stty raw -echo; printf "here "; exec cat']}
`

// A typist is a person's terminal with a program in it that shows an echo.
type typist struct {
	tty  *os.File
	cmd  *exec.Cmd
	seen chan []byte
}

// sitDown starts a program in a terminal and waits until it shows a sign.
func sitDown(ctx context.Context, cmd *exec.Cmd, sign string) (*typist, error) {
	cmd.Env = append(os.Environ(), "TERM=xterm-256color")
	f, err := pty.StartWithSize(cmd, &pty.Winsize{Cols: 100, Rows: 30})
	if err != nil {
		return nil, fmt.Errorf("terminal: %w", err)
	}
	t := &typist{tty: f, cmd: cmd, seen: make(chan []byte, 1024)}
	go func() {
		defer close(t.seen)
		for {
			b := make([]byte, 4096)
			n, err := f.Read(b)
			if n > 0 {
				t.seen <- b[:n]
			}
			if err != nil {
				return
			}
		}
	}()
	if err := t.sees(ctx, sign); err != nil {
		return nil, errors.Join(err, t.close())
	}
	for { // until it is quiet: what is drawn at first is no echo
		select {
		case <-t.seen:
		case <-time.After(300 * time.Millisecond):
			return t, nil
		}
	}
}

func (t *typist) sees(ctx context.Context, sign string) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	var all []byte
	for {
		select {
		case b, ok := <-t.seen:
			if !ok {
				return fmt.Errorf("the terminal ended without %q: %q", sign, all)
			}
			if all = append(all, b...); bytes.Contains(all, []byte(sign)) {
				return nil
			}
		case <-ctx.Done():
			return fmt.Errorf("the terminal does not show %q: %q", sign, all)
		}
	}
}

func (t *typist) close() error {
	err := t.cmd.Process.Kill()
	t.tty.Close()
	for range t.seen { // until its reader has ended
	}
	_ = t.cmd.Wait() // killed
	return err
}

// side measures from a key to its echo, one after the other.
func (t *typist) side(name string) Side {
	return Side{Name: name, Run: func(ctx context.Context, window time.Duration) (Sample, error) {
		var took []time.Duration
		for end := time.Now().Add(window); len(took) == 0 || time.Now().Before(end); {
			key := string(rune('a' + len(took)%26))
			at := time.Now()
			if _, err := t.tty.WriteString(key); err != nil {
				return Sample{}, fmt.Errorf("key: %w", err)
			}
			if err := t.sees(ctx, key); err != nil {
				return Sample{}, err
			}
			took = append(took, time.Since(at))
			select { // keys of a person: what comes closer together counts as pasted
			case <-time.After(5 * time.Millisecond):
			case <-ctx.Done():
				return Sample{}, ctx.Err()
			}
		}
		return sampleOf(LatencyOf(took)), nil
	}}
}

// attach measures a key's echo through two hops beside an attach of tmux itself to the same kind of pane:
// once a plain one with the same program, once one of muster's own, so that the cost of the keeper shows apart.
func attach(ctx context.Context, env Env) ([]Result, error) {
	tmux, err := exec.LookPath("tmux")
	if err != nil {
		return nil, &Missing{"tmux", "it is what an attach is measured against"}
	}
	f, err := StartFleet(ctx, env, 3)
	if err != nil {
		return nil, err
	}
	results, err := attachPairs(ctx, env, f, tmux)
	for _, n := range f.Nodes {
		_ = exec.Command(tmux, "-S", filepath.Join(n.Data, "tmux", "s"), "kill-server").Run() // it may have none
	}
	return results, errors.Join(err, f.Close())
}

func attachPairs(ctx context.Context, env Env, f *Fleet, tmux string) ([]Result, error) {
	_, far, err := f.Sort(ctx)
	if err != nil {
		return nil, err
	}
	near := f.Nodes[0]
	for _, n := range f.Nodes {
		if n != far {
			near = n
		}
	}
	card, _, err := echoCard(ctx, f, far)
	if err != nil {
		return nil, err
	}
	_, run, err := echoCard(ctx, f, far) // of two who look at one pane, each sees what the other types
	if err != nil {
		return nil, err
	}
	ours, err := sitDown(ctx, exec.CommandContext(ctx, env.Program, "--data", near.Data, "attach", card), "here")
	if err != nil {
		return nil, err
	}
	defer ours.close()
	plain := filepath.Join(env.Dir, "plain")
	open := exec.CommandContext(ctx, tmux, "-f", os.DevNull, "-S", plain, "new-session", "-d", "-x", "100", "-y", "30", "--", "sh", "-c", `stty raw -echo; printf "here "; exec cat`)
	if out, err := open.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("tmux: %w: %s", err, out)
	}
	defer func() { _ = exec.Command(tmux, "-S", plain, "kill-server").Run() }()
	bare, err := sitDown(ctx, exec.CommandContext(ctx, tmux, "-S", plain, "attach-session"), "here")
	if err != nil {
		return nil, err
	}
	defer bare.close()
	same, err := sitDown(ctx, exec.CommandContext(ctx, tmux, "-S", filepath.Join(far.Data, "tmux", "s"), "attach-session", "-t", "="+panes.Name(run)+":"), "here")
	if err != nil {
		return nil, err
	}
	defer same.close()
	a := ours.side("muster attach at a node, of a pane on another: a key -> its echo")
	one, err := Pair(ctx, env.Config("attach", "ms", Goal{Name: "gate", AtMost: 3}), a, bare.side("tmux attach to a plain tmux with the same program, here"))
	if err != nil {
		return []Result{one}, err
	}
	two, err := Pair(ctx, env.Config("attach-same", "ms"), a, same.side("tmux attach to another such pane, on its machine"))
	return []Result{one, two}, err
}

// echoCard starts a session with a pane that echoes.
func echoCard(ctx context.Context, f *Fleet, at *FleetNode) (card, run string, err error) {
	if _, err := f.Do(ctx, at, board.VBoardApply, board.BoardApply{Board: "default", YAML: echoBoard}); err != nil {
		return "", "", err
	}
	title, who := "echo", "echo"
	ans, err := api.Decode[struct{ ID string }](at.api.Do(ctx, board.VCardAdd, board.CardAdd{CardFields: board.CardFields{Title: &title, Assignee: &who, Machine: &at.Name}}, "", false))
	if err != nil {
		return "", "", err
	}
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	for {
		runs, err := api.Decode[[]api.Run](at.api.Get(ctx, "/v1/cards/"+url.PathEscape(ans.ID)+"/runs", nil))
		if err == nil && len(runs) > 0 && runs[0].State == "running" {
			return ans.ID, runs[0].ID, nil
		}
		select {
		case <-ctx.Done():
			return "", "", fmt.Errorf("card %s does not run (%v): %+v", ans.ID, err, runs)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

package tmux

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Pane is a session's terminal. Each is the only one of a tmux session of its
// own, so that people who look at different ones do not move each other's.
type Pane struct {
	ID      string // %n; never used again by the same server
	Session string // $n
	Key     string // whose it is, as [Server.New] was told
	PID     int    // of its first process
}

// Width and height of a pane that nobody has looked at yet, in characters.
const (
	Width  = 200
	Height = 50
)

// New opens a pane and runs argv in it, without a shell. name is what people see
// and attach to (see [Name]); key is what [Server.Panes] tells it by: one without is in no
// list, see [Server.Give]. A name that is taken is an error.
func (s *Server) New(ctx context.Context, name, key string, argv []string) (*Pane, error) {
	if len(argv) < 2 {
		return nil, errors.New("tmux: a program of one word would be read by a shell")
	}
	words := []string{"new-session", "-d", "-P", "-F", "#{session_id} #{pane_id} #{pane_pid}", "-s", Name(name), "-n", Name(name),
		"-x", strconv.Itoa(Width), "-y", strconv.Itoa(Height), "--"}
	out, err := s.do(ctx, append(words, argv...)...)
	if err != nil {
		return nil, err
	}
	p := &Pane{Key: key}
	if _, err := fmt.Sscan(out, &p.Session, &p.ID, &p.PID); err != nil {
		return nil, fmt.Errorf("tmux new-session answered %q", out)
	}
	if key == "" { // nobody's yet
		return p, nil
	}
	// A pane that is gone again is no error here: its program says how it ended.
	_, err = s.do(ctx, "set-option", "-t", p.Session, "@muster", key)
	if err != nil && !s.has(ctx, p.ID) {
		err = nil
	}
	return p, err
}

// Panes are the sessions' terminals that there are, in no order.
func (s *Server) Panes(ctx context.Context) ([]Pane, error) {
	out, err := s.do(ctx, "list-panes", "-a", "-F", "#{pane_id} #{session_id} #{pane_pid} #{@muster}")
	if err != nil {
		return nil, err
	}
	var list []Pane
	for l := range strings.Lines(out) {
		f := strings.SplitN(strings.TrimSuffix(l, "\n"), " ", 4)
		if len(f) < 4 || f[3] == "" {
			continue // the hold session, or one that a person made
		}
		pid, err := strconv.Atoi(f[2])
		if err != nil {
			return nil, fmt.Errorf("tmux list-panes answered %q", l)
		}
		list = append(list, Pane{ID: f[0], Session: f[1], PID: pid, Key: f[3]})
	}
	return list, nil
}

func (s *Server) has(ctx context.Context, id string) bool {
	list, err := s.do(ctx, "list-panes", "-a", "-F", "#{pane_id}")
	return err == nil && strings.Contains("\n"+list+"\n", "\n"+id+"\n")
}

// Kill closes a pane: its program loses its terminal.
func (s *Server) Kill(ctx context.Context, id string) error {
	_, err := s.do(ctx, "kill-pane", "-t", id)
	return err
}

// Screen is what a pane shows now, as text.
func (s *Server) Screen(ctx context.Context, id string) (string, error) {
	return s.do(ctx, "capture-pane", "-p", "-t", id)
}

// Paste gives bytes to the program of a pane as one block: between the marks of a
// bracketed paste where it has asked for them, and every byte as it is. A caller
// that passes on what somebody wrote passes on its [Text].
func (s *Server) Paste(ctx context.Context, id string, block []byte) error {
	return s.give(ctx, id, block, "-p")
}

// Enter gives the program of a pane the byte of the Enter key. No key is
// pressed: a person who has scrolled back is not disturbed.
func (s *Server) Enter(ctx context.Context, id string) error { return s.give(ctx, id, []byte("\r")) }

// give brings bytes into a pane by a file and a buffer: they stand in no command.
func (s *Server) give(ctx context.Context, id string, block []byte, flags ...string) error {
	if len(block) == 0 {
		return nil // to tmux there is no empty buffer
	}
	var b [8]byte
	_, _ = rand.Read(b[:]) // never fails: crypto/rand ends the process instead
	buffer := "muster-" + hex.EncodeToString(b[:])
	if err := ownFolder(s.cfg.Dir); err != nil {
		return err
	}
	path := s.path(buffer)
	if err := os.WriteFile(path, block, 0o600); err != nil {
		return fmt.Errorf("tmux: %w", err)
	}
	defer os.Remove(path)
	if _, err := s.do(ctx, "load-buffer", "-b", buffer, path); err != nil {
		return err
	}
	words := append([]string{"paste-buffer", "-d", "-r"}, flags...)
	_, err := s.do(ctx, append(words, "-b", buffer, "-t", id)...)
	if err != nil {
		_, derr := s.do(ctx, "delete-buffer", "-b", buffer)
		err = errors.Join(err, derr)
	}
	return err
}

// Give makes a pane somebody else's: another name and key, in one wait.
func (s *Server) Give(ctx context.Context, p *Pane, name, key string) error {
	err := s.doAll(ctx, [][]string{
		{"rename-session", "-t", p.Session, Name(name)},
		{"rename-window", "-t", p.ID, Name(name)},
		{"set-option", "-t", p.Session, "@muster", key},
	})
	if err == nil {
		p.Key = key
	}
	return err
}

// Rename gives the session of a pane another name and key. One that has them is no error.
func (s *Server) Rename(ctx context.Context, name, key string) error {
	if !s.is(ctx, key) { // else whoever renamed it may have ended before the key followed
		if _, err := s.do(ctx, "rename-session", "-t", "="+Name(name)+":", Name(key)); err != nil {
			return err
		}
	}
	_, err := s.do(ctx, "set-option", "-t", "="+Name(key)+":", "@muster", key)
	return err
}

// is tells whether a session has this name.
func (s *Server) is(ctx context.Context, name string) bool {
	_, err := s.do(ctx, "has-session", "-t", "="+Name(name)+":")
	return err == nil
}

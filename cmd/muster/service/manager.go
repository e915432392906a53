package service

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"

	"muster/board"
)

// Manager is the machine's manager of services, as one user reaches it.
type Manager struct {
	OS     string // linux or darwin
	UID    int    // of who calls
	Home   string // of the user whose services they are
	Config string // XDG_CONFIG_HOME; "" is the default
	Root   string // before paths of the system; "" outside of tests
	Run    func(ctx context.Context, name string, args ...string) (string, error)
}

// State is a service as its manager sees it.
type State struct {
	Manager   string `json:"manager"` // systemd or launchd
	Name      string `json:"name"`
	File      string `json:"file"`
	System    bool   `json:"system"`
	Installed bool   `json:"installed"`
	Enabled   bool   `json:"enabled"`
	Active    string `json:"active"` // as the manager says: active, failed, inactive
	PID       string `json:"pid,omitempty"`
	Linger    string `json:"linger,omitempty"` // of a user's unit: yes or no
}

// Command runs a program of the machine and gives what it said; its error says it too.
func Command(ctx context.Context, name string, args ...string) (string, error) {
	var out, fault bytes.Buffer
	c := exec.CommandContext(ctx, name, args...)
	c.Stdout, c.Stderr = &out, &fault
	err := c.Run()
	if err != nil {
		err = fmt.Errorf("%s %s: %w: %s", name, strings.Join(args, " "), err, strings.TrimSpace(fault.String()))
	}
	return out.String(), err
}

// File is where a service's file stands.
func (m *Manager) File(s Spec) string {
	switch {
	case m.OS == "darwin" && s.System:
		return m.Root + "/Library/LaunchDaemons/" + s.Name + ".plist"
	case m.OS == "darwin":
		return filepath.Join(m.Home, "Library", "LaunchAgents", s.Name+".plist")
	case s.System:
		return m.Root + "/etc/systemd/system/" + s.Name + ".service"
	case m.Config != "":
		return filepath.Join(m.Config, "systemd", "user", s.Name+".service")
	}
	return filepath.Join(m.Home, ".config", "systemd", "user", s.Name+".service")
}

func (m *Manager) text(s Spec) string {
	if m.OS == "darwin" {
		return s.Plist()
	}
	return s.Unit()
}

// may refuses what this caller cannot do.
func (m *Manager) may(s Spec) error {
	if m.OS != "linux" && m.OS != "darwin" {
		return board.Errorf(board.Invalid, "services are installed on Linux with systemd and on macOS with launchd, not on %s", m.OS)
	}
	if s.System && m.UID != 0 && m.Root == "" {
		return board.Errorf(board.Refused, "a service of the system is installed by root").WithHint("with sudo; or without --system, for yourself")
	}
	return nil
}

// systemctl speaks to the manager of the user or of the system.
func (m *Manager) systemctl(ctx context.Context, s Spec, args ...string) (string, error) {
	if !s.System {
		args = append([]string{"--user"}, args...)
	}
	return m.Run(ctx, "systemctl", args...)
}

func (m *Manager) domain(s Spec) string {
	if s.System {
		return "system"
	}
	return fmt.Sprintf("gui/%d", m.UID)
}

// Install writes the service's file and lets the manager start it with the
// machine (or its user's first login); with start, now too. When the manager
// refuses, what was there before is put back.
func (m *Manager) Install(ctx context.Context, s Spec, start bool) error {
	if err := m.may(s); err != nil {
		return err
	}
	file := m.File(s)
	before, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("service: %w", err)
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	if err := renameio.WriteFile(file, []byte(m.text(s)), 0o644); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	if err := m.load(ctx, s, file, start, before != nil); err != nil {
		return errors.Join(err, m.putBack(ctx, s, file, before))
	}
	return nil
}

func (m *Manager) load(ctx context.Context, s Spec, file string, start, known bool) error {
	if m.OS == "darwin" {
		if known {
			_, _ = m.Run(ctx, "launchctl", "bootout", m.domain(s)+"/"+s.Name) // it may not be loaded
		}
		if !start {
			return nil // it is loaded at the next login, or start of the machine
		}
		_, err := m.Run(ctx, "launchctl", "bootstrap", m.domain(s), file)
		return err
	}
	if _, err := m.systemctl(ctx, s, "daemon-reload"); err != nil {
		return err
	}
	if _, err := m.systemctl(ctx, s, "enable", s.Name+".service"); err != nil {
		return err
	}
	if !start {
		return nil
	}
	_, err := m.systemctl(ctx, s, "restart", s.Name+".service")
	return err
}

// putBack is what was there before an install.
func (m *Manager) putBack(ctx context.Context, s Spec, file string, before []byte) error {
	if before != nil {
		err := renameio.WriteFile(file, before, 0o644)
		if m.OS != "darwin" {
			_, rerr := m.systemctl(ctx, s, "daemon-reload")
			err = errors.Join(err, rerr)
		}
		return err
	}
	return m.Uninstall(ctx, s)
}

// Uninstall stops the service, so that it does not start again, and removes its
// file. Sessions go on. Of one that is not there nothing is done.
func (m *Manager) Uninstall(ctx context.Context, s Spec) error {
	if err := m.may(s); err != nil {
		return err
	}
	file := m.File(s)
	if _, err := os.Stat(file); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	var stopped error
	if m.OS == "darwin" {
		_, _ = m.Run(ctx, "launchctl", "bootout", m.domain(s)+"/"+s.Name) // it may not be loaded
	} else {
		_, stopped = m.systemctl(ctx, s, "disable", "--now", s.Name+".service")
	}
	if err := os.Remove(file); err != nil {
		return fmt.Errorf("service: %w", err)
	}
	if m.OS != "darwin" {
		if _, err := m.systemctl(ctx, s, "daemon-reload"); err != nil && stopped == nil {
			stopped = err
		}
	}
	return stopped
}

// Status is the service as its manager sees it; one that is not installed is no error.
func (m *Manager) Status(ctx context.Context, s Spec) (State, error) {
	x := State{Manager: "systemd", Name: s.Name, File: m.File(s), System: s.System, Active: "inactive"}
	if m.OS == "darwin" {
		x.Manager = "launchd"
	}
	if _, err := os.Stat(x.File); errors.Is(err, os.ErrNotExist) {
		return x, nil
	}
	x.Installed = true
	if m.OS == "darwin" {
		out, err := m.Run(ctx, "launchctl", "print", m.domain(s)+"/"+s.Name)
		if x.Enabled = err == nil; x.Enabled {
			x.PID = field(out, "pid = ")
			if x.Active = field(out, "state = "); x.Active == "running" {
				x.Active = "active"
			}
		}
		return x, nil
	}
	out, err := m.systemctl(ctx, s, "show", s.Name+".service", "--property=ActiveState,UnitFileState,MainPID")
	if err != nil {
		return x, err
	}
	x.Active, x.Enabled = field(out, "ActiveState="), field(out, "UnitFileState=") == "enabled"
	if x.PID = field(out, "MainPID="); x.PID == "0" {
		x.PID = ""
	}
	if !s.System {
		if out, err := m.Run(ctx, "loginctl", "show-user", fmt.Sprint(m.UID), "--property=Linger"); err == nil {
			x.Linger = field(out, "Linger=")
		}
	}
	return x, nil
}

// field is what follows a word at the beginning of a line.
func field(text, word string) string {
	for line := range strings.Lines(text) {
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), word); ok {
			return strings.TrimSpace(rest)
		}
	}
	return ""
}

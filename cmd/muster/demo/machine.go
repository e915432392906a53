package demo

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"muster/cmd/muster/api"
	"muster/launcher"
)

// machine is one node, a process of its own.
type machine struct {
	name, data, listen string
	binary, log        string
	cmd                *exec.Cmd
	ended              chan struct{} // closed when the process is over
	client             *api.Client
}

// newMachine takes a free port of loopback; nothing is started.
func newMachine(dir, name, binary string) (*machine, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	defer l.Close()
	m := &machine{name: name, data: filepath.Join(dir, name), listen: l.Addr().String(), binary: binary, log: filepath.Join(dir, name+".log")}
	m.client = &api.Client{Socket: filepath.Join(m.data, "muster.sock"), Timeout: 10 * time.Second}
	return m, nil
}

// start runs the node until it answers. It outlives the demo when it is kept.
func (m *machine) start(ctx context.Context, join string) error {
	args := []string{"up", "--data", m.data, "--name", m.name, "--listen", m.listen, "--slots", "4", "--label", "always-on=true"}
	if join != "" {
		args = append(args, "--join", "-") // a token in argv would be in everybody's process list
	}
	log, err := os.OpenFile(m.log, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer log.Close()
	cmd := exec.Command(m.binary, args...)
	cmd.Env = append(os.Environ(), "TMPDIR="+filepath.Dir(m.data)) // the list of ports that are given is the machine's: nothing of a demo stays in it
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(join), log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // Ctrl-C is for the demo, which then ends its nodes
	if err := cmd.Start(); err != nil {
		return err
	}
	ended := make(chan struct{})
	go func() {
		_ = cmd.Wait() // why it ended is in its log
		close(ended)
	}()
	m.cmd, m.ended = cmd, ended
	ctx, cancel := context.WithTimeout(ctx, 40*time.Second)
	defer cancel()
	for {
		if _, err := m.client.Get(ctx, "/v1/info", nil); err == nil {
			return nil
		}
		select {
		case <-ended:
			b, _ := os.ReadFile(m.log)
			return fmt.Errorf("node %s ended by itself:\n%s", m.name, b)
		case <-ctx.Done():
			return fmt.Errorf("node %s did not come up: %w; its log: %s", m.name, context.Cause(ctx), m.log)
		case <-time.After(30 * time.Millisecond):
		}
	}
}

func (m *machine) up() bool { return m.cmd != nil }

func (m *machine) pid() int { return m.cmd.Process.Pid }

// kill is kill -9 of the node alone.
func (m *machine) kill() {
	if !m.up() {
		return
	}
	_ = m.cmd.Process.Kill()
	<-m.ended
	m.cmd = nil
}

// stop ends the node in order; what runs is ended first.
func (m *machine) stop() {
	m.endSessions()
	if !m.up() {
		return
	}
	_ = m.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-m.ended:
		m.cmd = nil
	case <-time.After(10 * time.Second):
		m.kill()
	}
}

// endSessions asks the keepers of sessions that still run to end them; each is
// found by the socket in its folder.
func (m *machine) endSessions() {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	for _, dir := range m.folders() {
		if e, err := launcher.ReadExit(dir); err != nil || e != nil {
			continue
		}
		s, err := (&launcher.Keepers{}).Adopt(ctx, dir)
		if err != nil || s == nil {
			continue
		}
		_ = s.Stop(time.Second, "the demo is over")
		select {
		case <-s.Done():
		case <-ctx.Done():
		}
		s.Close()
	}
}

// folders are those of the runs this machine was given.
func (m *machine) folders() []string {
	list, _ := filepath.Glob(filepath.Join(m.data, "runs", "*"))
	return list
}

// sessions are the runs whose process was executed here.
func (m *machine) sessions(names map[string]string) (list []Started, err error) {
	for _, dir := range m.folders() {
		if _, err := launcher.ReadProc(dir); errors.Is(err, os.ErrNotExist) {
			continue // prepared or refused; nothing was executed
		}
		s, err := launcher.ReadSpec(dir)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
		node := names[s.Node]
		if node == "" || node != m.name {
			node = fmt.Sprintf("%s, for node %s", m.name, s.Node)
		}
		list = append(list, Started{Run: s.Run, Node: node, Key: s.Key, Seq: s.Epoch})
	}
	return list, nil
}

// muster runs the command line against this machine and gives what it says.
func (m *machine) muster(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, m.binary, append([]string{"--data", m.data}, args...)...)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return "", fmt.Errorf("muster %s: %s", strings.Join(args, " "), strings.TrimSpace(string(exit.Stderr)))
	}
	return strings.TrimSpace(string(out)), err
}

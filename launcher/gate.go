package launcher

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// gateScript waits for a line and becomes the session's program. Its end of
// file is the keeper's death: then nothing is executed. The program's words are
// the script's arguments, so no shell ever reads them.
const gateScript = `IFS= read -r go <&3 || exit 125; unset go; exec 3<&-; exec "$@"`

const shell = "/bin/sh"

// gate is a session's process before its program: it exists, so that it can be
// recorded, and does nothing until released.
type gate struct {
	pid  int
	leaf string
	mem  memLeaf
	w    *os.File
}

// openGate starts the process in the session's folder, environment and leaf,
// with nothing to read and its output in the log, or with a terminal when it is to
// have one. An error is one of the session's program or folder, and nothing has
// been executed.
func openGate(s *Spec, tty *os.File) (*gate, error) {
	program, err := findProgram(s)
	if err != nil {
		return nil, err
	}
	if st, err := os.Stat(s.Dir); err != nil || !st.IsDir() {
		return nil, fmt.Errorf("its workspace %s is no folder on this machine", s.Dir)
	}
	stdin, err := os.Open(cmp.Or(s.Stdin, os.DevNull)) // never a terminal, never open without end
	if err != nil {
		return nil, err
	}
	defer stdin.Close()
	log, err := os.OpenFile(fileLog, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
	if err != nil {
		return nil, err
	}
	defer log.Close()
	r, w, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer r.Close()

	path, leaf := makeCgroup(s.Nonce)
	mem := makeMemLeaf(s.Nonce, path)
	attr := &os.ProcAttr{Dir: s.Dir, Env: s.Env, Files: []*os.File{stdin, log, log, r}, Sys: sessionAttr(leaf, tty)}
	if tty != nil {
		attr.Files = []*os.File{tty, tty, tty, r}
	}
	argv := append([]string{"muster-session", "-c", gateScript, "muster-session", program}, s.Argv[1:]...)
	var p *os.Process
	begin := func() { p, err = os.StartProcess(shell, argv, attr) }
	mem.bear(begin)
	if err != nil && leaf != nil {
		// The machine may forbid a start inside of a leaf, and nothing else.
		leaf.Close()
		removeCgroup(path)
		path, leaf = "", nil
		attr.Sys = sessionAttr(nil, tty)
		mem.remove()
		mem = makeMemLeaf(s.Nonce, "")
		mem.bear(begin)
	}
	if leaf != nil {
		leaf.Close()
	}
	if err != nil {
		mem.remove()
		w.Close()
		return nil, fmt.Errorf("start of %s: %w", program, err)
	}
	g := &gate{pid: p.Pid, leaf: path, mem: mem, w: w}
	_ = p.Release() // reaped by tree.reap
	return g, nil
}

// release lets the program begin.
func (g *gate) release() error {
	_, err := g.w.Write([]byte("\n"))
	return errors.Join(err, g.w.Close())
}

// drop ends the process without a program.
func (g *gate) drop() { g.w.Close() }

// findProgram looks the program up on the session's own PATH and says in
// advance what exec would only say inside the session.
func findProgram(s *Spec) (string, error) {
	if len(s.Argv) == 0 || s.Argv[0] == "" {
		return "", errors.New("its command is empty")
	}
	name, path := s.Argv[0], ""
	if strings.Contains(name, "/") {
		path = name
		if !filepath.IsAbs(path) {
			path = filepath.Join(s.Dir, path)
		}
		if why := cannotRun(path); why != "" {
			return "", fmt.Errorf("%s %s", name, why)
		}
	} else {
		for _, dir := range filepath.SplitList(envOf(s.Env, "PATH")) {
			if p := filepath.Join(dir, name); filepath.IsAbs(p) && cannotRun(p) == "" {
				path = p
				break
			}
		}
		if path == "" {
			return "", fmt.Errorf("%s is not installed on this machine (looked in PATH=%s)", name, envOf(s.Env, "PATH"))
		}
	}
	return path, interpreter(path)
}

func cannotRun(path string) string {
	st, err := os.Stat(path)
	switch {
	case err != nil:
		return "is not there"
	case st.IsDir():
		return "is a folder"
	case st.Mode()&0o111 == 0 || syscall.Access(path, 1) != nil:
		return "may not be executed"
	}
	return ""
}

// interpreter looks for the program that a script's first line names.
func interpreter(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return nil // executable and not readable is fine
	}
	defer f.Close()
	head := make([]byte, 256)
	n, _ := f.Read(head)
	line, _, _ := bytes.Cut(head[:n], []byte("\n"))
	rest, ok := bytes.CutPrefix(line, []byte("#!"))
	if !ok {
		return nil
	}
	words := strings.Fields(string(rest))
	if len(words) == 0 || cannotRun(words[0]) == "" {
		return nil
	}
	return fmt.Errorf("%s names an interpreter that is not on this machine: %s", path, words[0])
}

func envOf(env []string, key string) string {
	for i := len(env) - 1; i >= 0; i-- {
		if v, ok := strings.CutPrefix(env[i], key+"="); ok {
			return v
		}
	}
	return ""
}

package e2e

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"muster/board"
	"muster/mesh"
)

// said runs the command line with a text on stdin, as a user (0 is this one).
func (m *machine) said(uid uint32, stdin string, args ...string) (stdout, stderr string, code int) {
	ctx, cancel := context.WithTimeout(context.Background(), 40*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, binary, args...)
	cmd.Env = append(os.Environ(), "MUSTER_HOME="+m.data)
	cmd.Stdin = strings.NewReader(stdin)
	if uid != 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	}
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err := cmd.Run()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		code = exit.ExitCode()
	} else if err != nil {
		code = -1
	}
	return o.String(), e.String(), code
}

// complaint checks that a refusal is one line of its own, besides hints and the
// progress of a start, that it names what is wrong, and its exit code.
func complaint(t *testing.T, stderr string, code, want int, words ...string) {
	t.Helper()
	if code != want {
		t.Errorf("exit code %d, want %d", code, want)
	}
	var said []string
	for line := range strings.Lines(stderr) {
		if strings.HasPrefix(line, "muster: ") {
			said = append(said, line)
		}
	}
	if len(said) != 1 || len(said[0]) > 600 {
		t.Errorf("it says %d lines, want one clear one:\n%.2000s", len(said), stderr)
	}
	for _, w := range words {
		if !strings.Contains(stderr, w) {
			t.Errorf("it does not say %q:\n%.2000s", w, stderr)
		}
	}
	if strings.Contains(stderr, "goroutine ") {
		t.Errorf("it shows a stack:\n%.2000s", stderr)
	}
}

// What people mistype or misread is answered by one clear line with what next
// and the right exit code, and nothing of it is done (BRD, ERR-01).
func TestBadInput(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 2)
	f.apply("600")
	m := f.machines[0]
	card := f.add(m, "a card", "true", func(c *board.CardAdd) { c.Triage = true })
	f.eventually(20*time.Second, "saying why it waits", func() (bool, string) { // the last that is written by itself
		c, err := m.card(card)
		return err == nil && c.Reason != nil, fmt.Sprint(err)
	})
	file := func(name, text string) string {
		path := filepath.Join(f.dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const head = "version: 1\nname: default\nextends: default\n"
	broken := file("broken.yaml", "version: 1\nname: [default\n")
	unknown := file("unknown.yaml", head+"profils: {x: {harness: command}}\n")
	typo := file("typo.yaml", head+"statuses: {ready: {on: {start: [{guard: card.priorty > 3, target: running}]}}}\n")
	target := file("target.yaml", head+"statuses: {ready: {on: {poke: [{target: runing}]}}}\n")
	for _, c := range []struct {
		name  string
		args  []string
		stdin string
		code  int
		words []string
	}{
		{"unknown board", []string{"card", "add", "x", "--board", "nope"}, "", 1, []string{`"nope"`, "muster board list"}},
		{"unknown card", []string{"card", "show", "d-99"}, "", 1, []string{"d-99", "muster card list"}},
		{"a path for a card", []string{"card", "show", "../../etc/passwd"}, "", 1, []string{"no card"}},
		{"unknown card in an event", []string{"complete", "d-99", "--summary", "x"}, "", 1, []string{"d-99"}},
		{"unknown event", []string{"event", card, "explode"}, "", 1, []string{"explode", card, "now you can: muster "}},
		{"unknown key of a board", []string{"board", "set", "default", "colour=red"}, "", 1, []string{"colour"}},
		{"unknown parameter", []string{"board", "set", "default", "params.nope=1"}, "", 1, []string{"nope", "it has"}},
		{"unknown flag", []string{"card", "add", "x", "--colour", "red"}, "", 2, []string{"--colour"}},
		{"unknown verb", []string{"explode"}, "", 2, []string{"explode"}},
		{"no title", []string{"card", "add"}, "", 2, []string{"TITLE"}},
		{"unknown machine", []string{"node", "promote", "nope"}, "", 1, []string{"nope", "muster node list"}},
		{"a card that waits for itself", []string{"card", "link", card, "--after", card}, "", 1, []string{card}},
		{"waits for an unknown card", []string{"card", "add", "x", "--after", "d-99"}, "", 1, []string{"d-99"}},
		{"broken YAML", []string{"board", "apply", "default", "-f", broken}, "", 1, []string{"broken.yaml"}},
		{"YAML with an unknown key", []string{"board", "apply", "default", "-f", unknown}, "", 1, []string{"unknown.yaml:4", "profils", "profiles"}},
		{"YAML with a mistake in an expression", []string{"board", "apply", "default", "-f", typo}, "", 1, []string{"typo.yaml:4", "priorty", "priority"}},
		{"YAML with an unknown status", []string{"board", "apply", "default", "-f", target}, "", 1, []string{"runing", "running"}},
		{"YAML on stdin", []string{"board", "apply", "default", "-f", "-"}, "{", 1, nil},
		{"no file", []string{"board", "apply", "default", "-f", filepath.Join(f.dir, "none")}, "", 1, []string{"none"}},
		{"a body of 10 MB", []string{"card", "add", "x", "--body", "-"}, strings.Repeat("x", 10<<20), 1, []string{"MB"}},
		{"a body of 2 MB", []string{"card", "add", "x", "--body", "-"}, strings.Repeat("x", 2<<20), 1, []string{"body"}},
		{"force without why", []string{"reclaim", card, "--force"}, "", 2, []string{"--why"}},
		{"no node", []string{"status", "--data", filepath.Join(f.dir, "nowhere")}, "", 3, []string{"nowhere", "muster up"}},
		{"a token that is none", []string{"join", "gibberish", "--data", filepath.Join(f.dir, "joiner")}, "", 1, []string{"token"}},
		{"a request id that is none", []string{"card", "add", "x", "--request-id", "gibberish"}, "", 1, []string{"gibberish"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before, err := m.status()
			if err != nil {
				t.Fatal(err)
			}
			out, stderr, code := m.said(0, c.stdin, c.args...)
			complaint(t, stderr, code, c.code, c.words...)
			if out != "" {
				t.Errorf("it says %q on stdout", out)
			}
			if after, err := m.status(); err != nil || after.Hash != before.Hash {
				t.Errorf("it has changed the state: %s, was %s (%v)", after.Hash, before.Hash, err)
			}
		})
	}
}

// A port in use, a second daemon on a folder, a socket of somebody else: one
// clear line, and the fleet goes on.
func TestTaken(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 2)
	m := f.machines[0]
	t.Run("second daemon on the folder", func(t *testing.T) {
		_, stderr, code := m.said(0, "", "up", "--data", m.data, "--listen", "127.0.0.1:0")
		complaint(t, stderr, code, 1, m.data, "in use", "muster stop")
	})
	t.Run("port in use", func(t *testing.T) {
		data := filepath.Join(f.dir, "second")
		_, stderr, code := m.said(0, "", "up", "--data", data, "--name", "second", "--listen", m.listen)
		complaint(t, stderr, code, 1, m.listen, "in use")
		// nothing is half done: the same folder starts with a free port
		again := &machine{t: t, name: "second", data: data, listen: freePort(t), out: filepath.Join(f.dir, "second.out"), api: client(data)}
		again.start()
		again.kill()
	})
	t.Run("port in use, joining", func(t *testing.T) {
		token, _, _ := m.said(0, "", "token", "create", "-q", "--uses", "1")
		data := filepath.Join(f.dir, "third")
		_, stderr, code := m.said(0, token, "join", "-", "--data", data, "--name", "third", "--listen", m.listen)
		complaint(t, stderr, code, 1, m.listen, "in use")
		if st, err := m.status(); err != nil || len(st.Nodes) != 1 {
			t.Errorf("the fleet has %d nodes (%v): a machine that could not listen was let in", len(st.Nodes), err)
		}
	})
	t.Run("socket without permission", func(t *testing.T) {
		if os.Getuid() != 0 {
			t.Skip("needs root: to ask as another user")
		}
		for _, dir := range []string{filepath.Dir(binary), f.dir, m.data} { // the socket's own mode decides, not the folder's
			if err := os.Chmod(dir, 0o711); err != nil {
				t.Fatal(err)
			}
		}
		_, stderr, code := m.said(65534, "", "status")
		complaint(t, stderr, code, 3, "permission", "muster.sock")
	})
	if _, err := m.status(); err != nil {
		t.Errorf("the node: %v", err)
	}
}

// What the command line cannot mean is refused before a folder becomes a node, with exit code 2; a token that
// was given as an argument is not in the list of processes while the node runs.
func TestBadStart(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 2)
	m := f.machines[0]
	for name, c := range map[string]struct {
		args []string
		word string
	}{
		"name of bytes":     {[]string{"--name", "\xff"}, "UTF-8"},
		"a long name":       {[]string{"--name", strings.Repeat("x", 300)}, "node name"},
		"nowhere to listen": {[]string{"--listen", "here"}, "--listen"},
		"nobody can dial":   {[]string{"--advertise", "0.0.0.0:1"}, "--advertise"},
		"timers":            {[]string{"--timers", "moon"}, "--timers"},
	} {
		t.Run(name, func(t *testing.T) {
			data := filepath.Join(f.dir, "bad-"+strings.ReplaceAll(name, " ", "-"))
			for _, more := range [][]string{nil, {"--detach"}} {
				_, stderr, code := m.said(0, "", append(append([]string{"up", "--data", data}, c.args...), more...)...)
				complaint(t, stderr, code, 2, c.word)
			}
			if _, err := os.Stat(filepath.Join(data, "node.key")); err == nil {
				t.Error("it has become a node")
			}
		})
	}
	t.Run("token as an argument", func(t *testing.T) {
		if _, err := os.Stat("/proc/self/cmdline"); err != nil {
			t.Skip("needs /proc: to see the arguments of a process")
		}
		token, _, _ := m.said(0, "", "token", "create", "-q", "--uses", "1")
		token = strings.TrimSpace(token)
		data := filepath.Join(f.dir, "second")
		second := &machine{t: t, name: "second", data: data, listen: freePort(t), out: data + ".out", api: client(data), args: []string{"--join", token}}
		second.start()
		defer second.kill()
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", second.cmd.Process.Pid))
		if err != nil || bytes.Contains(b, []byte(token)) || !bytes.Contains(b, []byte("--join\x00-\x00")) {
			t.Errorf("its arguments are %q (%v)", b, err)
		}
		_, stderr, code := m.said(0, token, "join", "-", "--data", filepath.Join(f.dir, "third"), "--name", "third", "--listen", "127.0.0.1:0")
		complaint(t, stderr, code, 1, "token") // it let one machine in, and that was it
	})
}

// A data folder that is damaged is refused with one clear line that says which
// file and what next, or repaired and said so; never served with a gap (INV-08, M-32).
func TestBrokenFolder(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 2)
	f.apply("600")
	m := f.machines[0]
	card := f.add(m, "keeps", "true", func(c *board.CardAdd) { c.Triage = true })
	if out, stderr, code := m.said(0, "", "stop"); code != 0 {
		t.Fatalf("stop: %d %s %s", code, out, stderr)
	}
	m.kill()
	garbage := func(path string) error {
		st, err := os.Stat(path)
		if err != nil {
			return err
		}
		b := make([]byte, min(st.Size(), 1<<20))
		_, _ = rand.Read(b)
		h, err := os.OpenFile(path, os.O_WRONLY, 0)
		if err != nil {
			return err
		}
		defer h.Close()
		_, err = h.WriteAt(b, 0)
		return err
	}
	for _, c := range []struct {
		name, file string
		damage     func(string) error
		words      []string // of the refusal; nil: it is repaired
	}{
		{"node.json is garbage", "node.json", garbage, []string{"node.json", "broken"}},
		{"node.json is empty", "node.json", func(p string) error { return os.Truncate(p, 0) }, []string{"node.json"}},
		{"the key is garbage", "node.key", garbage, []string{"node.key"}},
		{"the log is garbage", "raft/log/*.wal", garbage, []string{"log", "raft"}},
		{"the log is gone", "raft/log", os.RemoveAll, []string{"log", "lost"}},
		{"the state is garbage", "raft/state.db", garbage, nil},
		{"the state is gone", "raft/state.db", os.Remove, nil},
		{"the journal is cut", "journal.db", func(p string) error { return os.Truncate(p, 1000) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := filepath.Join(f.dir, "copy-"+strings.ReplaceAll(c.name, " ", "-"))
			if out, err := exec.Command("cp", "-a", m.data, data).CombinedOutput(); err != nil {
				t.Fatalf("%v %s", err, out)
			}
			paths, _ := filepath.Glob(filepath.Join(data, c.file))
			if len(paths) == 0 {
				t.Fatalf("no %s", c.file)
			}
			if err := c.damage(paths[0]); err != nil {
				t.Fatal(err)
			}
			if c.words != nil {
				_, stderr, code := m.said(0, "", "up", "--data", data, "--listen", "127.0.0.1:0")
				complaint(t, stderr, code, 1, c.words...)
				return
			}
			again := &machine{t: t, name: m.name, data: data, listen: freePort(t), out: data + ".out", api: client(data)}
			again.start()
			defer again.kill()
			if x, err := again.card(card); err != nil || x.Title != "keeps" {
				t.Errorf("after the repair card %s is %q (%v)", card, x.Title, err)
			}
		})
	}
}

// Invariant 23: who is not in the node list is turned away in the handshake;
// noise on the port is one line of the log. The node goes on.
func TestStrangerOnThePort(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 1, 2)
	m := f.machines[0]
	t.Run("noise", func(t *testing.T) {
		for _, noise := range []string{"GET / HTTP/1.1\r\nHost: x\r\n\r\n", strings.Repeat("\x00", 4096), "\x16\x03\x01\xff\xff" + strings.Repeat("x", 70000)} {
			c, err := net.Dial("tcp", m.listen)
			if err != nil {
				t.Fatal(err)
			}
			_ = c.SetDeadline(time.Now().Add(20 * time.Second))
			_, _ = io.WriteString(c, noise)
			if b, err := io.ReadAll(c); errors.Is(err, os.ErrDeadlineExceeded) || len(b) > 200 {
				t.Errorf("noise %.10q was answered by %d bytes (%v)", noise, len(b), err)
			}
			c.Close()
		}
	})
	t.Run("unknown key", func(t *testing.T) {
		for _, alpn := range []string{mesh.ALPNRaft, mesh.ALPNStream, mesh.ALPNGossip} {
			if err := strange(m.listen, alpn); err == nil {
				t.Errorf("%s: a key outside the node list got an answer", alpn)
			}
		}
	})
	b, _ := os.ReadFile(m.out)
	lines := 0
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, "refused") {
			lines++
		}
	}
	if lines == 0 || lines > 8 || bytes.Contains(b, []byte("goroutine ")) {
		t.Errorf("%d lines about strangers:\n%s", lines, b)
	}
	if _, err := m.status(); err != nil {
		t.Errorf("the node: %v", err)
	}
}

// strange shows a key that nobody knows, and waits for a byte.
func strange(addr, alpn string) error {
	pub, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	tmpl := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, tmpl, tmpl, pub, key)
	if err != nil {
		return err
	}
	c, err := tls.Dial("tcp", addr, &tls.Config{InsecureSkipVerify: true, MinVersion: tls.VersionTLS13, NextProtos: []string{alpn},
		Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}})
	if err != nil {
		return err
	}
	defer c.Close()
	_ = c.SetDeadline(time.Now().Add(10 * time.Second))
	_, _ = io.WriteString(c, "hello?")
	if _, err := c.Read(make([]byte, 1)); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return nil // it stays open: that is an answer
		}
		return fmt.Errorf("turned away: %w", err)
	}
	return nil
}

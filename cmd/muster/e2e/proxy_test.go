package e2e

import (
	"bytes"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
)

// proxies stand between machines on loopback: each machine tells the others the
// address of its proxy. What is cut stays in the proxy and comes late, when it is
// healed. It needs no root; who dials is found by its socket.
type proxies struct {
	t     *testing.T
	front []net.Listener
	mu    sync.Mutex
	where []*machine
	gates map[[2]int]chan struct{} // closed when what is between them flows again
}

func newProxies(t *testing.T, n int) *proxies {
	t.Helper()
	if runtime.GOOS != "linux" {
		t.Skip("needs linux: to see which machine dials")
	}
	p := &proxies{t: t, where: make([]*machine, n), gates: map[[2]int]chan struct{}{}}
	for i := range n {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		p.front = append(p.front, l)
		t.Cleanup(func() { l.Close() })
		go p.serve(i, l)
	}
	return p
}

func (p *proxies) place(i int, m *machine) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.where[i] = m
	m.args = append(m.args, "--advertise", p.front[i].Addr().String())
}

func (p *proxies) cut(from, to int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.gates[[2]int{from, to}] = make(chan struct{})
}

func (p *proxies) heal(from, to int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	close(p.gates[[2]int{from, to}])
	delete(p.gates, [2]int{from, to})
}

// pass waits as long as the way is cut.
func (p *proxies) pass(from, to int) {
	p.mu.Lock()
	gate := p.gates[[2]int{from, to}]
	p.mu.Unlock()
	if gate != nil {
		<-gate
	}
}

func (p *proxies) serve(to int, l net.Listener) {
	for {
		in, err := l.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close()
			from := p.who(in.RemoteAddr().(*net.TCPAddr).Port)
			out, err := net.DialTimeout("tcp", p.machine(to).listen, 5*time.Second)
			if err != nil {
				return
			}
			defer out.Close()
			done := make(chan struct{}, 2)
			go func() { p.carry(from, to, in, out); done <- struct{}{} }()
			go func() { p.carry(to, from, out, in); done <- struct{}{} }()
			<-done
		}()
	}
}

// carry copies what flows one way; what is cut waits here.
func (p *proxies) carry(from, to int, r io.Reader, w io.Writer) {
	b := make([]byte, 64<<10)
	for {
		n, err := r.Read(b)
		if err != nil {
			return
		}
		p.pass(from, to)
		if _, err := w.Write(b[:n]); err != nil {
			return
		}
	}
}

func (p *proxies) machine(i int) *machine {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.where[i]
}

// who is the machine whose process has the socket with this port, -1 for none.
func (p *proxies) who(port int) int {
	table, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		return -1
	}
	local := fmt.Sprintf(":%04X", port)
	inode := ""
	for line := range bytes.Lines(table) {
		w := strings.Fields(string(line))
		if len(w) > 9 && strings.HasSuffix(w[1], local) {
			inode = "socket:[" + w[9] + "]"
		}
	}
	for i := range p.where {
		m := p.machine(i)
		if m == nil || inode == "" {
			continue
		}
		fds, _ := filepath.Glob(fmt.Sprintf("/proc/%d/fd/*", m.pid()))
		for _, fd := range fds {
			if s, _ := os.Readlink(fd); s == inode {
				return i
			}
		}
	}
	return -1
}

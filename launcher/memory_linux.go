package launcher

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// memLeaf is where the kernel counts the memory of a session, and holds it to a
// limit: a leaf of cgroup v2 or v1, "" where the machine gives us neither.
type memLeaf struct {
	path string
	v1   bool
	born bool // its session's process was started in it
}

// makeMemLeaf finds or makes the counting leaf of a session. Of cgroup v2 it is the
// leaf its tree is in anyway, when the memory controller is there; of v1 one of its own.
func makeMemLeaf(nonce, leaf string) memLeaf {
	if leaf != "" && exists(filepath.Join(leaf, "memory.current")) {
		return memLeaf{path: leaf}
	}
	home := groupOf("/proc/self", "memory")
	if home == "" {
		return memLeaf{}
	}
	path := filepath.Join(home, cgroupName(nonce))
	if os.Mkdir(path, 0o755) != nil {
		return memLeaf{}
	}
	return memLeaf{path: path, v1: true}
}

// memLeafOf is the leaf that a run's folder names, as it was made.
func memLeafOf(p *Proc) memLeaf {
	return memLeaf{path: p.Memory, v1: p.Memory != p.Cgroup}
}

// bear calls start, which starts a process, so that the process begins in a leaf of v1: this thread, which must be
// locked, is in there meanwhile. A thread that moves itself costs nothing; to move another process the kernel first
// waits until no processor can have seen it elsewhere: 10 to 40 ms, on the way of every start.
func (m *memLeaf) bear(start func()) {
	back := m.visit()
	start()
	if back == nil {
		return
	}
	m.born = true
	if _, err := back.WriteString("0"); err != nil {
		fmt.Fprintf(os.Stderr, "this keeper is counted with its session: %v\n", err) // into keeper.log
	}
	back.Close()
}

// visit moves this thread into the leaf. It answers where "0" brings it back, nil when it has not moved.
func (m *memLeaf) visit() *os.File {
	if !m.v1 {
		return nil
	}
	back, err := os.OpenFile(filepath.Join(filepath.Dir(m.path), "tasks"), os.O_WRONLY, 0) // before it goes: it must not stay
	if err != nil {
		return nil
	}
	if os.WriteFile(filepath.Join(m.path, "tasks"), []byte("0"), 0) != nil {
		back.Close()
		return nil
	}
	return back
}

// enter puts a process into the leaf before its program runs, unless it began there: all that it starts is in
// it too. A limit of 0 is none; an error says that the session is not held to it.
func (m *memLeaf) enter(pid int, limit int64) error {
	if m.path == "" {
		if limit > 0 {
			return errors.New("this machine gives it no memory controller")
		}
		return nil
	}
	if m.v1 && !m.born {
		if err := os.WriteFile(filepath.Join(m.path, "cgroup.procs"), []byte(strconv.Itoa(pid)), 0); err != nil {
			m.remove()
			m.path = ""
			return err
		}
	}
	if limit <= 0 {
		return nil
	}
	name := "memory.max"
	if m.v1 {
		name = "memory.limit_in_bytes"
	}
	return os.WriteFile(filepath.Join(m.path, name), []byte(strconv.FormatInt(limit, 10)), 0)
}

func (m memLeaf) number(v2, v1 string) int64 {
	name := v2
	if m.v1 {
		name = v1
	}
	b, err := os.ReadFile(filepath.Join(m.path, name))
	if m.path == "" || err != nil {
		return 0
	}
	n, _ := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64)
	return n
}

// peak is the most the session ever had, in bytes; 0 where nobody counts it.
func (m memLeaf) peak() int64 { return m.number("memory.peak", "memory.max_usage_in_bytes") }

// kills is how many of its processes the kernel ended over its limit.
func (m memLeaf) kills() int64 {
	name := "memory.events"
	if m.v1 {
		name = "memory.oom_control"
	}
	b, err := os.ReadFile(filepath.Join(m.path, name))
	if m.path == "" || err != nil {
		return 0
	}
	for _, line := range strings.Split(string(b), "\n") {
		if rest, ok := strings.CutPrefix(line, "oom_kill "); ok {
			n, _ := strconv.ParseInt(rest, 10, 64)
			return n
		}
	}
	return 0
}

func (m memLeaf) remove() {
	if m.v1 && m.path != "" {
		_ = os.Remove(m.path)
	}
}

// memory is what the session has now, in bytes: by its leaf, else by its processes.
func (t *tree) memory() int64 {
	if n := t.mem.number("memory.current", "memory.usage_in_bytes"); n > 0 {
		return n
	}
	return memoryOf(descendants())
}

// memoryOf is what processes have in proportion to how many share it, in bytes.
func memoryOf(list []process) (sum int64) {
	for _, p := range list {
		b, err := os.ReadFile("/proc/" + strconv.Itoa(p.pid) + "/smaps_rollup")
		if err != nil {
			continue // gone, or another user's
		}
		for line := range bytes.Lines(b) {
			if rest, ok := bytes.CutPrefix(line, []byte("Pss:")); ok {
				n, _ := strconv.ParseInt(strings.Fields(string(rest))[0], 10, 64)
				sum += n << 10
			}
		}
	}
	return sum
}

// largest is the most that one process of the tree ever had, in bytes: what is known
// of a peak where nobody counts for all of them.
func largest() int64 {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_CHILDREN, &u) != nil {
		return 0
	}
	return u.Maxrss << 10
}

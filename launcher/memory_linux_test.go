package launcher

import (
	"bufio"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// memoryNow asks a keeper what its session has.
func memoryNow(t *testing.T, dir string) int64 {
	t.Helper()
	c, err := dialFolder(dir, fileSocket)
	must(t, err)
	defer c.Close()
	must(t, writeMessage(c, message{Op: opMemory}))
	m, err := readMessage(bufio.NewReader(c))
	must(t, err)
	return m.Memory
}

// A keeper knows what its session has, and the record says the most it had.
func TestMemoryOfASession(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	dir, _ := testSpec(t, []string{testBinary(t), "program", "eat", "48"}, nil)
	s := start(t, k, dir)
	eventually(t, "48 MB", func() bool { return exists(filepath.Join(dir, fileLog)) && strings.Contains(logOf(t, dir), "ate") })
	if got := memoryNow(t, dir); got < 48<<20 || got > 2<<30 {
		t.Errorf("it has %d bytes, want 48 MB and a little", got)
	}
	p, err := ReadProc(dir)
	must(t, err)
	if byTree := memoryOf([]process{{pid: p.PID}}); byTree < 48<<20 {
		t.Errorf("by its processes it has %d bytes", byTree)
	}
	must(t, s.Stop(0, "test"))
	if e := finish(t, s, dir); e.Peak < 48<<20 || e.Memory {
		t.Errorf("record %+v, want a peak of 48 MB", e)
	}
	if p.Memory != "" && exists(p.Memory) {
		t.Errorf("%s is left behind", p.Memory)
	}
}

// A session over its limit is killed by the machine, and the record says so.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	m := makeMemLeaf("test-"+strings.ReplaceAll(t.Name(), "/", "-"), "")
	m.remove()
	if m.path == "" {
		t.Skip("needs a memory controller of cgroups: a session is held to a limit")
	}
	k := testKeepers(t)
	dir, _ := testSpec(t, []string{testBinary(t), "program", "eat", "200"}, func(s *Spec) { s.Memory = 64 << 20 })
	e := finish(t, start(t, k, dir), dir)
	if !e.Memory || e.Signal != "SIGKILL" || e.Means == nil || e.Means.Kind != meansMemory || !strings.Contains(e.Error, "64 MB") {
		t.Errorf("record %+v, means %+v; want killed over its limit", e, e.Means)
	}
}

// A limit that this machine cannot hold is said, and the session runs.
func TestMemoryLimitThatIsNotHeld(t *testing.T) {
	m := memLeaf{}
	if err := m.enter(os.Getpid(), 1<<20); err == nil || !strings.Contains(err.Error(), "controller") {
		t.Errorf("said %v", err)
	}
	if err := m.enter(os.Getpid(), 0); err != nil {
		t.Errorf("no limit: %v", err)
	}
}

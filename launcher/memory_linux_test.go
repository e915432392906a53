package launcher

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
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

// Of cgroup v1, a session is in a leaf of its own from its first moment, and its keeper is not: no thread of it.
func TestKeeperIsNotCountedWithItsSession(t *testing.T) {
	t.Parallel()
	k := testKeepers(t)
	dir, _ := testSpec(t, sh("exec sleep 600"), nil)
	s := start(t, k, dir)
	wait(t, "the session's start", s.Started())
	p, err := ReadProc(dir)
	must(t, err)
	if p.Memory == "" || p.Memory == p.Cgroup {
		t.Skip("needs the memory controller of cgroup v1, where a keeper's thread goes into the session's leaf and back")
	}
	if !strings.Contains(cgroupOf(t, p.PID, p.PID), cgroupName(p.Nonce)) {
		t.Errorf("the session is in %s", cgroupOf(t, p.PID, p.PID))
	}
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", p.Keeper))
	must(t, err)
	for _, x := range threads {
		tid, err := strconv.Atoi(x.Name())
		must(t, err)
		if at := cgroupOf(t, p.Keeper, tid); strings.Contains(at, cgroupName(p.Nonce)) || at == "" {
			t.Errorf("thread %d of its keeper is in %s", tid, at)
		}
	}
	must(t, s.Stop(0, "test"))
	finish(t, s, dir)
	if exists(p.Memory) {
		t.Errorf("%s is left behind", p.Memory)
	}
}

func cgroupOf(t *testing.T, pid, tid int) string {
	t.Helper()
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/cgroup", pid, tid))
	must(t, err)
	for line := range strings.Lines(string(b)) {
		if strings.Contains(line, ":memory:") {
			return strings.TrimSpace(line)
		}
	}
	return ""
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

// machineOf is a folder of /proc, and a tree of groups, as a machine has them: what a machine with one kind of
// groups cannot show of another.
func machineOf(t *testing.T, cgroup, mountinfo string, files map[string]string) (proc, root string) {
	t.Helper()
	proc, root = t.TempDir(), t.TempDir()
	put := func(path, text string) {
		must(t, os.MkdirAll(filepath.Dir(path), 0o700))
		must(t, os.WriteFile(path, []byte(text), 0o600))
	}
	put(filepath.Join(proc, "cgroup"), cgroup)
	put(filepath.Join(proc, "mountinfo"), strings.ReplaceAll(mountinfo, "ROOT", root))
	for name, text := range files {
		put(filepath.Join(root, name), text)
	}
	return proc, root
}

// Where a session's leaf is made, on machines of every kind.
func TestWhereGroupsAre(t *testing.T) {
	t.Parallel()
	const (
		v2     = "31 25 0:27 / ROOT rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"
		hybrid = "30 29 0:25 / ROOT/memory rw - cgroup cgroup rw,memory\n31 29 0:26 / ROOT/cpu rw - cgroup cgroup rw,cpu,cpuacct\n32 29 0:27 / ROOT/unified rw - cgroup2 cgroup2 rw\n"
		part   = "31 25 0:27 /docker/ab ROOT rw - cgroup2 cgroup2 rw\n"
	)
	for _, c := range []struct{ name, cgroup, mounts, home, memory string }{
		{"a unit of systemd", "0::/user.slice/muster.service\n", v2, "/user.slice/muster.service", ""},
		{"a node beside its sessions", "0::/user.slice/muster.service/muster-node\n", v2, "/user.slice/muster.service", ""},
		{"both versions", "4:memory:/a/b\n3:cpu,cpuacct:/c\n0::/d\n", hybrid, "/unified/d", "/memory/a/b"},
		{"a container without a namespace", "0::/docker/ab/x\n", part, "/x", ""},
		{"another container's mount", "0::/docker/abc\n", part, "", ""},
		{"outside of its namespace", "0::/../other\n", v2, "", ""},
		{"version 1 alone", "4:memory:/\n", "30 29 0:25 / ROOT/memory rw - cgroup cgroup rw,memory\n", "", "/memory"},
		{"none", "", "", "", ""},
	} {
		proc, root := machineOf(t, c.cgroup, c.mounts, nil)
		under := func(path string) string {
			if path == "" {
				return ""
			}
			return root + path
		}
		if got := homeOf(proc); got != under(c.home) {
			t.Errorf("%s: leaves in %q, want %q", c.name, got, under(c.home))
		}
		if got := groupOf(proc, "memory"); got != under(c.memory) {
			t.Errorf("%s: memory of version 1 in %q, want %q", c.name, got, under(c.memory))
		}
	}
}

// The memory controller of version 2, by its files (the machine that this was written on has it in version 1): shared out
// only where the node has a group of its own, once; limit, peak and kills are where the kernel documents them.
func TestMemoryOfVersion2(t *testing.T) {
	t.Parallel()
	const mounts = "31 25 0:27 / ROOT rw - cgroup2 cgroup2 rw\n"
	for _, c := range []struct{ own, controllers, shared, want string }{
		{"0::/m/muster-node\n", "cpu memory pids\n", "", "+memory"},
		{"0::/m/muster-node\n", "cpu memory pids\n", "memory pids\n", "memory pids\n"},
		{"0::/m/muster-node\n", "cpu pids\n", "", ""},
		{"0::/m\n", "cpu memory pids\n", "", ""},
	} {
		proc, root := machineOf(t, c.own, mounts, map[string]string{"m/cgroup.controllers": c.controllers, "m/cgroup.subtree_control": c.shared})
		if home := homeOf(proc); home != filepath.Join(root, "m") {
			t.Errorf("leaves in %q", home)
		}
		if b, err := os.ReadFile(filepath.Join(root, "m/cgroup.subtree_control")); err != nil || string(b) != c.want {
			t.Errorf("of %q, in %q, %q was shared out (%v), want %q", c.controllers, c.own, b, err, c.want)
		}
	}
	_, root := machineOf(t, "", "", map[string]string{"leaf/memory.current": "7340032\n", "leaf/memory.peak": "9437184\n", "leaf/memory.max": "max\n",
		"leaf/memory.events": "low 0\nhigh 0\nmax 12\noom 3\noom_kill 2\noom_group_kill 0\n"})
	leaf := filepath.Join(root, "leaf")
	m := makeMemLeaf("nonce", leaf)
	if m != (memLeaf{path: leaf}) {
		t.Fatalf("counted in %+v, want the tree's own leaf", m)
	}
	must(t, m.enter(os.Getpid(), 64<<20))
	if b, err := os.ReadFile(filepath.Join(leaf, "memory.max")); err != nil || string(b) != "67108864" {
		t.Errorf("the limit is %q, %v", b, err)
	}
	tr := tree{mem: m}
	if tr.memory() != 7<<20 || m.peak() != 9<<20 || m.kills() != 2 {
		t.Errorf("now %d, peak %d, kills %d; want 7 MB, 9 MB, 2", tr.memory(), m.peak(), m.kills())
	}
	if m.remove(); !exists(leaf) {
		t.Error("the tree's own leaf was removed before its tree")
	}
}

// A session of a node that has a group of its own gets its leaf beside that, in the kernel's own version 2.
func TestLeafBesideTheNode(t *testing.T) {
	t.Parallel()
	unit := filepath.Join(groupOf("/proc/self", ""), fmt.Sprintf("test-%d", os.Getpid()))
	own := filepath.Join(unit, nodeLeaf)
	if groupOf("/proc/self", "") == "" || os.MkdirAll(own, 0o755) != nil {
		t.Skip("needs cgroups of version 2 that this user may make: to see where a leaf is made")
	}
	t.Cleanup(func() {
		eventually(t, "the groups to be empty", func() bool { _ = os.Remove(own); return os.Remove(unit) == nil || !exists(unit) })
	})
	dir, _ := testSpec(t, []string{"sh", "-c", "cat /proc/self/cgroup"}, nil)
	keep := exec.Command("sh", "-c", `echo $$ >"$1/cgroup.procs" && exec "$2" "$3" "$4"`, "sh", own, testBinary(t), KeepVerb, dir)
	out, err := keep.CombinedOutput()
	must(t, err)
	spec, err := ReadSpec(dir)
	must(t, err)
	want := filepath.Join(filepath.Base(unit), cgroupName(spec.Nonce)) + "\n"
	if log := logOf(t, dir); !strings.Contains(log, want) {
		t.Errorf("the session is in %q, want %q; keeper: %s", log, want, out)
	}
}

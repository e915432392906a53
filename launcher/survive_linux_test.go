package launcher

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// sessionOf is the OS session of a process, 0 when there is none.
func sessionOf(pid int) int {
	b, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return 0
	}
	f := strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
	n, _ := strconv.Atoi(f[3])
	return n
}

// What ends a service or a terminal ends every process of its group and its session:
// the sessions are in none of them, and go on.
func TestSessionsOutliveTheNodesGroupAndSession(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.kill()
	p.alone = true
	p.run()
	dir := t.TempDir()
	run := p.mustAsk(order{Op: "file", Profile: "sh", Script: "echo begin; while [ ! -e " + dir + "/go ]; do sleep 0.02; done; exit 7"}).Run
	p.until("the start", func(a answer) bool { return len(a.Runs) == 1 && a.Runs[0].Launched != 0 })
	proc, err := ReadProc(filepath.Join(p.dir, "runs", run))
	must(t, err)
	node := p.cmd.Process.Pid
	if sessionOf(node) != node || sessionOf(proc.PID) == node || sessionOf(proc.Keeper) == node {
		t.Fatalf("node %d, keeper and session in the sessions %d and %d", node, sessionOf(proc.Keeper), sessionOf(proc.PID))
	}
	must(t, syscall.Kill(-node, syscall.SIGKILL))
	for _, q := range processes() {
		if sessionOf(q.pid) == node {
			_ = syscall.Kill(q.pid, syscall.SIGKILL)
		}
	}
	p.kill()
	if !alive(proc.PID) || !alive(proc.Keeper) {
		t.Fatalf("alive: session %v, keeper %v", alive(proc.PID), alive(proc.Keeper))
	}
	p.run()
	must(t, os.WriteFile(dir+"/go", nil, 0o600))
	a := p.until("its end", allGone)
	if c := a.Runs[0].ExitCode; c == nil || *c != 7 || a.Runs[0].N != 1 {
		t.Errorf("run %+v, want exit code 7", a.Runs[0])
	}
}

func copyBinary(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	must(t, err)
	defer in.Close()
	out, err := os.OpenFile(to+".new", os.O_CREATE|os.O_WRONLY, 0o755)
	must(t, err)
	_, err = io.Copy(out, in)
	must(t, err)
	must(t, out.Close())
	must(t, os.Rename(to+".new", to))
}

// A binary that is replaced while its sessions run: their keepers are of the one
// before, are adopted by the new one, and new sessions run beside them.
func TestUpgradeUnderRunningSessions(t *testing.T) {
	t.Parallel()
	p := newProcess(t)
	p.kill()
	p.exe = filepath.Join(t.TempDir(), "muster")
	copyBinary(t, testBinary(t), p.exe)
	p.run()
	dir := t.TempDir()
	script := "while [ ! -e " + dir + "/go ]; do sleep 0.02; done; exit 7"
	old := p.mustAsk(order{Op: "file", Profile: "sh", Script: script}).Run
	p.until("the start", func(a answer) bool { return len(a.Runs) == 1 && a.Runs[0].Launched != 0 })
	copyBinary(t, testBinary(t), p.exe)
	proc, err := ReadProc(filepath.Join(p.dir, "runs", old))
	must(t, err)
	if exe, _ := os.Readlink("/proc/" + strconv.Itoa(proc.Keeper) + "/exe"); !strings.HasSuffix(exe, "(deleted)") {
		t.Fatalf("its keeper is of %s: nothing was replaced", exe)
	}
	p.restart()
	p.mustAsk(order{Op: "file", Profile: "sh", Script: script})
	p.until("both", func(a answer) bool { return len(a.Runs) == 2 && a.Runs[1].Launched != 0 && a.Runs[0].Gone == "" })
	must(t, os.WriteFile(dir+"/go", nil, 0o600))
	for _, r := range p.until("both ends", allGone).Runs {
		if r.ExitCode == nil || *r.ExitCode != 7 {
			t.Errorf("run %s: exit code %v", r.ID, r.ExitCode)
		}
	}
}

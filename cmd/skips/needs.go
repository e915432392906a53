package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
)

// A need is what a skipped test says it misses, and how to see whether this
// machine has it.
type need struct {
	have func() bool
	hint string // how a CI machine gets it
}

// needs is the table of reasons a test may skip for. A name that is not here
// fails CI, so that a new reason is thought about once.
var needs = map[string]need{
	"root":                {isRoot, "run as root"},
	"no root":             {func() bool { return !isRoot() }, "run as an ordinary user"},
	"linux":               {func() bool { return runtime.GOOS == "linux" }, "run on Linux"},
	"darwin":              {func() bool { return runtime.GOOS == "darwin" }, "run on macOS"},
	"/dev/fuse":           {writable("/dev/fuse"), "modprobe fuse"},
	"fusermount":          {anyProgram("fusermount3", "fusermount"), "apt-get install fuse3"},
	"tmux":                {anyProgram("tmux"), "apt-get install tmux"},
	"git":                 {anyProgram("git"), "apt-get install git"},
	"sh":                  {anyProgram("sh"), "install a POSIX shell"},
	"unshare":             {anyProgram("unshare"), "apt-get install util-linux"},
	"go":                  {anyProgram("go"), "install Go"},
	"cgroup v2":           {cgroups, "run as root with /sys/fs/cgroup writable"},
	"a time namespace":    {runs("unshare", "--time", "true"), "Linux 5.6 or later, run as root, apt-get install util-linux"},
	"a network namespace": {runs("unshare", "--net", "true"), "run as root on Linux, apt-get install util-linux"},
	"a mount":             {runs("unshare", "--mount", "mount", "-t", "tmpfs", "none", "/mnt"), "run as root on Linux, apt-get install util-linux mount"},
	"iproute2":            {anyProgram("ip"), "apt-get install iproute2"},
	"npm's registry":      {nil, "let this machine reach registry.npmjs.org, or npm's mirror"},
	"npm":                 {anyProgram("npm"), "install npm; its registry gives axe-core"},
	"chromium":            {anyProgram("chromium", "chromium-browser", "google-chrome"), "apt-get install chromium"},
	"agent programs":      {exists(agentFolder()), "make harness-install (npm and its registry)"},
	"etcd":                {nil, "apt-get install etcd-server (benches only)"},
}

var skipForm = regexp.MustCompile(`\bneeds ([^:]+): (.+)`)

// judgeSkip says what is wrong with a skip on this machine, nil when it is in
// order: at least one of the things the test needs ("needs root and
// /dev/fuse: why") is truly absent. A need that begins with "-" names a flag
// of the test and is always in order: a long form is asked for, not missed.
func judgeSkip(reason string, has func(string) (bool, error)) error {
	m := skipForm.FindStringSubmatch(reason)
	if m == nil {
		return fmt.Errorf(`the reason has not the form "needs X: why"`)
	}
	var found []string
	absent := false
	for _, name := range strings.Split(m[1], " and ") {
		name = strings.TrimSpace(name)
		if strings.HasPrefix(name, "-") {
			return nil
		}
		ok, err := has(name)
		if err != nil {
			return err
		}
		if !ok {
			absent = true
		}
		found = append(found, name)
	}
	if absent {
		return nil
	}
	return fmt.Errorf("this machine has %s: the test must run here", strings.Join(found, " and "))
}

// remedy says how to get what a skipped test needs, "" when that is not known.
func remedy(reason string) string {
	m := skipForm.FindStringSubmatch(reason)
	if m == nil {
		return ""
	}
	var hints []string
	for _, name := range strings.Split(m[1], " and ") {
		n, known := needs[strings.TrimSpace(name)]
		if known && (n.have == nil || !n.have()) {
			hints = append(hints, n.hint)
		}
	}
	return strings.Join(hints, "; ")
}

// present looks a need up in the table and at the machine.
func present(name string) (bool, error) {
	n, ok := needs[name]
	if !ok {
		return false, fmt.Errorf("%q is not in the table of needs (cmd/skips/needs.go)", name)
	}
	return n.have != nil && n.have(), nil
}

func isRoot() bool { return os.Geteuid() == 0 }

func writable(path string) func() bool {
	return func() bool {
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		if err != nil {
			return false
		}
		_ = f.Close()
		return true
	}
}

// runs tells whether a program does its work here: what a container forbids
// is found by trying.
func runs(argv ...string) func() bool {
	return func() bool { return exec.Command(argv[0], argv[1:]...).Run() == nil }
}

// cgroups tells whether a group can be made.
func cgroups() bool {
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err != nil {
		return false
	}
	dir, err := os.MkdirTemp("/sys/fs/cgroup", "muster-skips-")
	if err != nil {
		return false
	}
	return os.Remove(dir) == nil
}

func anyProgram(names ...string) func() bool {
	return func() bool {
		for _, name := range names {
			if _, err := exec.LookPath(name); err == nil {
				return true
			}
		}
		return false
	}
}

// exists tells whether something stands at a path.
func exists(path string) func() bool {
	return func() bool {
		_, err := os.Stat(path)
		return err == nil
	}
}

// agentFolder is the mark of a complete "make harness-install": it tells where the
// programs are as launcher/harnesstest does, which this package must not import.
func agentFolder() string {
	dir := os.Getenv("MUSTER_AGENTS")
	if dir == "" && isRoot() {
		dir = "/var/cache/muster-agents"
	}
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return ""
		}
		dir = filepath.Join(cache, "muster-agents")
	}
	return filepath.Join(dir, "complete")
}

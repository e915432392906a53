package launcher

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// nodeLeaf is where systemd puts a node whose unit says Delegate and DelegateSubgroup (systemd 254 and newer). Only then is
// the group above it ours to share out: no process may stand in a group that gives controllers to its children, so a node
// that had made itself room would keep the unit from being started again while its sessions live.
const nodeLeaf = "muster-node"

// cgroupHome is the folder of cgroup v2 in which sessions get their leaves, "" without one.
func cgroupHome() string { return homeOf("/proc/self") }

// homeOf is cgroupHome of the process that a folder of /proc describes.
func homeOf(proc string) string {
	home := groupOf(proc, "")
	if filepath.Base(home) == nodeLeaf {
		home = filepath.Dir(home)
		shareMemory(home)
	}
	return home
}

// shareMemory lets the leaves of a group be counted and held to a limit each, where the machine lets it. Where it does
// not, they have no memory controller, and a session with a limit says so.
func shareMemory(home string) {
	has := func(file string) bool {
		b, err := os.ReadFile(filepath.Join(home, file))
		return err == nil && slices.Contains(strings.Fields(string(b)), "memory")
	}
	if has("cgroup.controllers") && !has("cgroup.subtree_control") {
		_ = os.WriteFile(filepath.Join(home, "cgroup.subtree_control"), []byte("+memory"), 0)
	}
}

// groupOf is the folder of the group that a process is in, of a controller of v1 or, with "", of v2; "" without one.
func groupOf(proc, controller string) string {
	own, err := os.ReadFile(filepath.Join(proc, "cgroup"))
	if err != nil {
		return ""
	}
	path := ""
	for _, line := range strings.Split(string(own), "\n") { // number:controllers:path
		if f := strings.SplitN(line, ":", 3); len(f) == 3 && (f[0] == "0") == (controller == "") && slices.Contains(strings.Split(f[1], ","), controller) {
			path = f[2]
		}
	}
	mounts, err := os.ReadFile(filepath.Join(proc, "mountinfo"))
	if err != nil || path == "" || strings.HasPrefix(path, "/..") {
		return ""
	}
	for _, line := range strings.Split(string(mounts), "\n") {
		head, tail, _ := strings.Cut(line, " - ")
		f, opts := strings.Fields(head), strings.Fields(tail)
		if len(f) < 5 || len(opts) < 3 {
			continue
		}
		if v2 := opts[0] == "cgroup2"; v2 != (controller == "") || !v2 && (opts[0] != "cgroup" || !slices.Contains(strings.Split(opts[2], ","), controller)) {
			continue
		}
		rest, ok := strings.CutPrefix(path, strings.TrimSuffix(f[3], "/")) // the mount may show a part only
		if ok && (rest == "" || rest[0] == '/') {
			return filepath.Join(f[4], rest)
		}
	}
	return ""
}

func cgroupName(nonce string) string { return "muster-" + nonce }

func ourCgroup(path, nonce string) bool {
	return path != "" && nonce != "" && filepath.Base(path) == cgroupName(nonce)
}

// makeCgroup makes a leaf for a run where the machine lets us, nil otherwise:
// then the tree is followed through the process table alone.
func makeCgroup(nonce string) (path string, dir *os.File) {
	home := cgroupHome()
	if home == "" || !exists(filepath.Join(home, "cgroup.procs")) {
		return "", nil
	}
	path = filepath.Join(home, cgroupName(nonce))
	if err := os.Mkdir(path, 0o755); err != nil {
		return "", nil
	}
	dir, err := os.Open(path)
	if err != nil || !exists(filepath.Join(path, "cgroup.kill")) {
		if dir != nil {
			dir.Close()
		}
		os.Remove(path)
		return "", nil
	}
	return path, dir
}

func killCgroup(path string) {
	if path != "" {
		_ = os.WriteFile(filepath.Join(path, "cgroup.kill"), []byte("1"), 0)
	}
}

func cgroupEmpty(path string) bool {
	if path == "" {
		return true
	}
	b, err := os.ReadFile(filepath.Join(path, "cgroup.events"))
	return errors.Is(err, os.ErrNotExist) || bytes.Contains(b, []byte("populated 0"))
}

func removeCgroup(path string) {
	if path != "" {
		_ = os.Remove(path)
	}
}

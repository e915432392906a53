package launcher

import (
	"bytes"
	"errors"
	"os"
	"path/filepath"
	"strings"
)

// cgroupHome is the folder of cgroup v2 this process is in, "" without one.
func cgroupHome() string {
	own, err := os.ReadFile("/proc/self/cgroup")
	if err != nil {
		return ""
	}
	path := ""
	for _, line := range strings.Split(string(own), "\n") {
		if rest, ok := strings.CutPrefix(line, "0::"); ok {
			path = rest
		}
	}
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil || path == "" || strings.HasPrefix(path, "/..") {
		return ""
	}
	for _, line := range strings.Split(string(mounts), "\n") {
		head, tail, ok := strings.Cut(line, " - ")
		f := strings.Fields(head)
		if ok && len(f) >= 5 && strings.HasPrefix(tail, "cgroup2 ") && f[3] == "/" {
			return filepath.Join(f[4], path)
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

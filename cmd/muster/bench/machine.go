package bench

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
)

// A Machine says where figures come from. What cannot be learnt is "unknown".
type Machine struct {
	OS         string `json:"os"`
	Arch       string `json:"arch"`
	Kernel     string `json:"kernel"`
	CPU        string `json:"cpu"`
	Cores      int    `json:"cores"`
	MemoryMB   int64  `json:"memory_mb"` // 0 when unknown
	Folder     string `json:"folder"`
	Filesystem string `json:"filesystem"` // device and type below the folder
	Go         string `json:"go"`
	Commit     string `json:"commit"`
	Load       string `json:"load"` // 1, 5 and 15 minutes, when the bench began
}

const unknown = "unknown"

// DescribeMachine looks at this machine; folder is where the sides write.
func DescribeMachine(ctx context.Context, folder string) Machine {
	if abs, err := filepath.Abs(folder); err == nil {
		folder = abs
	}
	mounts, _ := os.ReadFile("/proc/self/mounts")
	cpuinfo, _ := os.ReadFile("/proc/cpuinfo")
	meminfo, _ := os.ReadFile("/proc/meminfo")
	loadavg, _ := os.ReadFile("/proc/loadavg")
	return Machine{
		OS: runtime.GOOS, Arch: runtime.GOARCH, Cores: runtime.NumCPU(), Go: runtime.Version(),
		Kernel:     firstLine(ctx, "uname", "-sr"),
		CPU:        or(field(string(cpuinfo), "model name"), unknown),
		MemoryMB:   kilobytes(field(string(meminfo), "MemTotal")) / 1024,
		Folder:     folder,
		Filesystem: filesystemOf(string(mounts), folder),
		Commit:     commit(ctx),
		Load:       or(strings.Join(first(strings.Fields(string(loadavg)), 3), " "), unknown),
	}
}

// commit is the commit the binary was built from, or the one checked out here.
func commit(ctx context.Context) string {
	if info, ok := debug.ReadBuildInfo(); ok {
		var revision, dirty string
		for _, s := range info.Settings {
			switch {
			case s.Key == "vcs.revision":
				revision = s.Value
			case s.Key == "vcs.modified" && s.Value == "true":
				dirty = "+changes"
			}
		}
		if revision != "" {
			return revision + dirty
		}
	}
	return firstLine(ctx, "git", "rev-parse", "HEAD")
}

// filesystemOf finds the mount a folder lies on: the longest mount point above
// it, the last of equals.
func filesystemOf(mounts, folder string) string {
	best, found := "", unknown
	lines := bufio.NewScanner(strings.NewReader(mounts))
	for lines.Scan() {
		f := strings.Fields(lines.Text())
		if len(f) < 3 {
			continue
		}
		point := strings.TrimSuffix(f[1], "/")
		if (folder == point || strings.HasPrefix(folder, point+"/")) && len(point) >= len(best) {
			best, found = point, f[0]+" "+f[2]
		}
	}
	return found
}

// field reads "name : value" of a /proc file.
func field(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, ok := strings.Cut(line, ":"); ok && strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

func kilobytes(value string) int64 {
	n, _ := strconv.ParseInt(strings.TrimSuffix(value, " kB"), 10, 64)
	return n
}

func firstLine(ctx context.Context, argv ...string) string {
	out, err := exec.CommandContext(ctx, argv[0], argv[1:]...).Output()
	if err != nil {
		return unknown
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return or(strings.TrimSpace(line), unknown)
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func first(list []string, n int) []string { return list[:min(n, len(list))] }

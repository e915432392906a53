package doctor

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"muster/cmd/muster/api"
	"muster/cmd/muster/node"
	"muster/launcher/tmux"
)

// lookTime is how long one question to a program or to the node may take.
const lookTime = 5 * time.Second

// Look gathers the facts of the node whose data folder that is.
func Look(ctx context.Context, data, version string) Facts {
	f := Facts{Version: version, Data: data}
	cl := &api.Client{Socket: filepath.Join(data, "muster.sock"), Timeout: lookTime}
	info, err := api.Decode[api.Info](cl.Get(ctx, "/v1/info", nil))
	f.Running = err == nil
	f.Folder = lookFolder(data, f.Running)
	f.Machine = lookMachine(ctx, data, f.Folder.Exists)
	if f.Running {
		f.Fleet = lookFleet(ctx, cl, info)
	}
	return f
}

func lookFolder(data string, running bool) (f Folder) {
	info, err := os.Stat(data)
	f.Exists = err == nil && node.IsFolder(data)
	if !f.Exists {
		return f
	}
	f.Mode = uint32(info.Mode().Perm())
	if k, err := os.Stat(filepath.Join(data, "node.key")); err == nil {
		f.KeyMode = uint32(k.Mode().Perm())
	}
	var saved struct {
		Listen string `json:"listen"`
	}
	if b, err := os.ReadFile(filepath.Join(data, "node.json")); err == nil && json.Unmarshal(b, &saved) == nil {
		f.Listen = saved.Listen
	}
	if f.Held = api.Held(data); running || f.Held { // its files are written now
		return f
	}
	f.Faults = node.LookFolder(data)
	if f.Listen != "" {
		l, err := net.Listen("tcp", f.Listen)
		if err == nil {
			l.Close()
		} else if !errors.Is(err, os.ErrNotExist) {
			f.PortUsed = err.Error()
		}
	}
	return f
}

func lookMachine(ctx context.Context, data string, exists bool) Machine {
	m := Machine{DiskFree: -1}
	dir := data
	if !exists {
		dir = filepath.Dir(data)
	}
	var fs unix.Statfs_t
	if unix.Statfs(dir, &fs) == nil {
		m.DiskFree = int64(fs.Bavail) * int64(fs.Bsize)
	}
	if exists {
		m.Sync, m.SyncErr = within(func() (time.Duration, string) { return syncTime(data) })
	}
	if _, err := tmux.Find(""); err != nil {
		m.Tmux = err.Error()
	}
	if out, err := output(ctx, "git", "--version"); err != nil || !strings.HasPrefix(out, "git version") {
		m.Git = "git is not here, or does not start"
	}
	m.NoLogin = noLogin(os.Getenv, exec.LookPath)
	m.Linger = linger(ctx)
	m.MemFree, m.MemTotal = node.Memory()
	return m
}

// within gives a disk that may hang a time of its own: who waits for it is not freed by anything.
func within(ask func() (time.Duration, string)) (time.Duration, string) {
	type answer struct {
		took time.Duration
		err  string
	}
	done := make(chan answer, 1)
	go func() {
		took, err := ask()
		done <- answer{took, err}
	}()
	select {
	case a := <-done:
		return a.took, a.err
	case <-time.After(lookTime):
		return lookTime, ""
	}
}

// syncs is how often the disk is asked: one slow answer is no slow disk.
const syncs = 5

// syncTime is how long the disk takes for a small file to be safe: the median of a few.
func syncTime(dir string) (time.Duration, string) {
	f, err := os.CreateTemp(dir, ".doctor-")
	if err != nil {
		return 0, err.Error()
	}
	defer os.Remove(f.Name())
	defer f.Close()
	var took []time.Duration
	for range syncs {
		begun := time.Now()
		if _, err := f.WriteAt(make([]byte, 4096), 0); err != nil {
			return 0, err.Error()
		}
		if err := f.Sync(); err != nil {
			return 0, err.Error()
		}
		took = append(took, time.Since(begun))
	}
	slices.Sort(took)
	return took[len(took)/2], ""
}

func output(ctx context.Context, name string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	out, err := exec.CommandContext(ctx, name, args...).Output()
	return strings.TrimSpace(string(out)), err
}

// logins says where the programs of agents leave what a login gave them. A
// program that keeps it elsewhere on this system stands not here.
var logins = []struct {
	name, program string
	files, env    []string
	not           string // system on which it cannot be seen
}{
	{"claude", "claude", []string{".claude/.credentials.json"}, []string{"ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"}, "darwin"},
	{"codex", "codex", []string{".codex/auth.json"}, []string{"OPENAI_API_KEY", "CODEX_API_KEY"}, ""},
	{"gemini", "gemini", []string{".gemini/oauth_creds.json", ".gemini/google_accounts.json"}, []string{"GEMINI_API_KEY", "GOOGLE_API_KEY"}, ""},
	{"opencode", "opencode", []string{".local/share/opencode/auth.json", ".config/opencode/opencode.json"}, []string{"ANTHROPIC_API_KEY", "OPENAI_API_KEY"}, ""},
}

// noLogin are the agent programs of this machine that show no login of this user.
func noLogin(env func(string) string, find func(string) (string, error)) (list []string) {
	home := env("HOME")
	for _, l := range logins {
		if _, err := find(l.program); err != nil || l.not == runtime.GOOS {
			continue
		}
		has := slices.ContainsFunc(l.env, func(k string) bool { return env(k) != "" }) ||
			slices.ContainsFunc(l.files, func(f string) bool { _, err := os.Stat(filepath.Join(home, f)); return err == nil })
		if !has {
			list = append(list, l.name)
		}
	}
	return list
}

// linger asks systemd whether what this user started outlives its logins; "" where that is no question.
func linger(ctx context.Context) string {
	u, err := user.Current()
	if err != nil || u.Uid == "0" || runtime.GOOS != "linux" {
		return ""
	}
	if _, err := os.Stat("/run/systemd/system"); err != nil {
		return ""
	}
	out, err := output(ctx, "loginctl", "show-user", u.Username, "--property=Linger", "--value")
	if err != nil {
		return ""
	}
	return out
}

func lookFleet(ctx context.Context, cl *api.Client, info api.Info) *Fleet {
	f := &Fleet{Self: info.Name, SelfID: info.ID, SelfVersion: info.Version}
	s, err := api.Decode[api.Status](cl.Get(ctx, "/v1/status", nil))
	if err != nil {
		f.Alarms = append(f.Alarms, "the node does not say how the fleet is: "+err.Error())
		return f
	}
	f.Leader, f.Quorum, f.Removed, f.Alarms = s.Leader, s.Quorum, s.Removed, s.Alarms
	for _, n := range s.Nodes {
		f.Nodes = append(f.Nodes, Node{ID: n.ID, Name: n.Name, Addr: n.Addr, State: n.State, Version: n.Version, Voter: n.Role == "voter", NoSpace: n.NoSpace,
			Running: n.Running, Pressure: n.MemoryPressure, ClockOff: time.Duration(n.ClockOffS * float64(time.Second))})
	}
	p, err := api.Decode[api.Peers](cl.Get(ctx, "/v1/peers", nil))
	if err != nil {
		return f // an older node
	}
	f.Wan = p.Timers == "wan"
	for _, x := range p.Peers {
		f.Peers = append(f.Peers, Peer{ID: x.ID, Name: x.Name, RTT: time.Duration(x.RTTMS * float64(time.Millisecond)), ClockOff: time.Duration(x.ClockOffMS) * time.Millisecond, Err: x.Error})
	}
	return f
}

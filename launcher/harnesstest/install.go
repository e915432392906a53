package harnesstest

import (
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// Pin is an agent program in one version.
type Pin struct {
	Harness string `json:"harness"` // name of the preset
	Package string `json:"package"` // of npm
	Version string `json:"version"` // or a tag: "latest"
	Program string `json:"program"` // what it is called
}

//go:embed testdata/pins.json
var pinned []byte

// Pins are the versions that the presets are held against.
func Pins() []Pin {
	var list []Pin
	if err := json.Unmarshal(pinned, &list); err != nil {
		panic("testdata/pins.json: " + err.Error()) // it is part of the source
	}
	return list
}

// Folder is where the programs are kept, each in a folder of its own. MUSTER_AGENTS
// names another one. Root's is one that other users can read: a program that
// refuses to run as root is run as somebody else.
func Folder() (string, error) {
	if dir := os.Getenv("MUSTER_AGENTS"); dir != "" {
		return dir, nil
	}
	if os.Geteuid() == 0 {
		return "/var/cache/muster-agents", nil
	}
	dir, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("folder of agent programs: %w; name one in MUSTER_AGENTS", err)
	}
	return filepath.Join(dir, "muster-agents"), nil
}

// place is the folder of a pin below the folder of all.
func (p Pin) place(dir string) string {
	return filepath.Join(dir, p.Harness+"-"+p.Version)
}

// path is the program itself.
func (p Pin) path(dir string) string {
	return filepath.Join(p.place(dir), "node_modules", ".bin", p.Program)
}

// marker is written last: a folder without it is half an installation.
const marker = "installed"

func (p Pin) installed(dir string) bool {
	_, err := os.Stat(filepath.Join(p.place(dir), marker))
	return err == nil
}

// Install brings the pins that are missing into dir, by npm, and says so on w. Two
// that install at the same time wait for each other. What npm says goes into the error.
func Install(ctx context.Context, dir string, pins []Pin, w io.Writer) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return fmt.Errorf("folder of agent programs: %w", err)
	}
	lock, err := os.OpenFile(filepath.Join(dir, "lock"), os.O_CREATE|os.O_RDWR, 0o644)
	if err != nil {
		return fmt.Errorf("folder of agent programs: %w", err)
	}
	defer lock.Close()
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return fmt.Errorf("lock %s: %w", lock.Name(), err)
	}
	complete := filepath.Join(dir, "complete") // cmd/skips looks at it
	if err := os.Remove(complete); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("folder of agent programs: %w", err)
	}
	var failed []error
	for _, p := range pins {
		if p.installed(dir) {
			fmt.Fprintf(w, "%s %s is there\n", p.Package, p.Version)
			continue
		}
		if err := p.install(ctx, dir); err != nil {
			failed = append(failed, err)
			continue
		}
		fmt.Fprintf(w, "%s %s installed\n", p.Package, p.Version)
	}
	if len(failed) == 0 && allInstalled(dir) {
		failed = append(failed, os.WriteFile(complete, nil, 0o644))
	}
	return errors.Join(failed...)
}

func allInstalled(dir string) bool {
	for _, p := range Pins() {
		if !p.installed(dir) {
			return false
		}
	}
	return true
}

func (p Pin) install(ctx context.Context, dir string) error {
	place := p.place(dir)
	if err := os.RemoveAll(place); err != nil {
		return fmt.Errorf("half an installation: %w", err)
	}
	if err := os.MkdirAll(place, 0o755); err != nil {
		return fmt.Errorf("folder of %s: %w", p.Package, err)
	}
	cmd := exec.CommandContext(ctx, "npm", "install", "--no-audit", "--no-fund", "--loglevel=error", "--prefix", place, p.Package+"@"+p.Version)
	cmd.Dir = place
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("npm install %s@%s: %w: %s", p.Package, p.Version, err, strings.TrimSpace(string(out)))
	}
	if _, err := os.Stat(p.path(dir)); err != nil {
		return fmt.Errorf("npm install %s@%s brought no program: %w", p.Package, p.Version, err)
	}
	return os.WriteFile(filepath.Join(place, marker), nil, 0o644)
}

// Program is the path of a harness's pinned program; the test is skipped where it
// is not installed.
func Program(t testing.TB, harness string) string {
	t.Helper()
	dir, err := Folder()
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range Pins() {
		if p.Harness != harness {
			continue
		}
		if !p.installed(dir) {
			t.Skipf("needs agent programs: %s %s is not in %s; make harness-install brings it where npm reaches its registry", p.Package, p.Version, dir)
		}
		return p.path(dir)
	}
	t.Fatalf("no harness %q in testdata/pins.json", harness)
	return ""
}

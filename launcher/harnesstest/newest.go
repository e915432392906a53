package harnesstest

import (
	"context"
	"embed"
	"fmt"
	"os/exec"
	"strings"
)

//go:embed testdata/flags
var recorded embed.FS

// Recorded are the options that the pinned program of a harness had when its version was pinned.
func Recorded(p Pin) ([]string, error) {
	b, err := recorded.ReadFile("testdata/flags/" + p.Harness + ".txt")
	if err != nil {
		return nil, fmt.Errorf("recorded options of %s: %w", p.Harness, err)
	}
	return strings.Split(strings.TrimSpace(string(b)), "\n"), nil
}

// Newest is the pin with the version that npm's registry calls the latest.
func Newest(ctx context.Context, p Pin) (Pin, error) {
	out, err := exec.CommandContext(ctx, "npm", "view", p.Package, "version").Output()
	if err != nil {
		return p, fmt.Errorf("newest version of %s: npm view: %w", p.Package, err)
	}
	p.Version = strings.TrimSpace(string(out))
	return p, nil
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime/debug"
	"syscall"

	"muster/cmd/muster/api"
	"muster/cmd/muster/cli"
	"muster/cmd/muster/node"
	"muster/cmd/muster/web"

	"golang.org/x/sys/unix"
)

// up runs a node until ctx ends, until it is told to stop, or until it fails. A
// node that is told to restart replaces this process by a new one: same id of
// the process, same terminal, and sessions notice nothing.
func up(ctx context.Context, o cli.UpOptions) error {
	binary, err := os.Executable() // now: after an upgrade in place the name means another file
	if err != nil {
		return fmt.Errorf("this program's own file: %w", err)
	}
	log, closeLog, err := logger(o)
	if err != nil {
		return err
	}
	defer closeLog()
	if o.Name == "" {
		o.Name = knownName(o.Data)
	}
	n, err := node.New(node.Config{Data: o.Data, Name: o.Name, Listen: o.Listen, Advertise: o.Advertise, Token: o.Token, Labels: o.Labels,
		Slots: o.Slots, Repos: o.Repos, Ports: o.Ports, Replica: o.Replica, Local: o.Local, Metrics: o.Metrics, Timers: o.Timers, Web: webOf(o), Binary: binary, Version: versionText(), Logger: log, Progress: o.Progress})
	if err != nil {
		return cli.Usage(err) // it only looks at what the flags say
	}
	paceGarbage()
	if err := n.Open(ctx); err != nil {
		return err
	}
	info, err := api.Decode[api.Info]((&api.Client{Socket: filepath.Join(o.Data, "muster.sock")}).Get(ctx, "/v1/info", nil))
	if err == nil {
		o.Ready(info)
	}
	select {
	case <-ctx.Done():
	case <-n.Done():
		n.AwaitRoom(ctx)
	}
	closed := n.Close()
	if err := n.Err(); err != nil {
		if closed != nil {
			log.Error("closing after the failure", "err", closed)
		}
		return err
	}
	if n.Again() && ctx.Err() == nil {
		if closed != nil {
			log.Error("closing before the restart", "err", closed)
		}
		return again(o.Data, binary)
	}
	return closed
}

// webOf is what the flags say of the page; nil when there is to be none.
func webOf(o cli.UpOptions) *web.Config {
	if o.HTTP == "off" {
		return nil
	}
	return &web.Config{Listen: o.HTTP, Names: o.HTTPNames, Cert: o.HTTPCert, Key: o.HTTPKey,
		Doctor: func(ctx context.Context) any { return lookAround(ctx, o.Data) }}
}

// knownName is the name that this folder's node has in its fleet: a start without
// --name must not give it another one.
func knownName(data string) string {
	var saved struct {
		Name string `json:"name"`
	}
	b, err := os.ReadFile(filepath.Join(data, "node.json"))
	if err != nil || json.Unmarshal(b, &saved) != nil {
		return "" // a new folder; a broken one is told by the node
	}
	return saved.Name
}

// again becomes the node's next process.
func again(data, binary string) error {
	if other := cli.TakeBinary(data); other != "" {
		binary = other
	}
	args := append([]string{binary}, cli.AgainArgs(os.Args[1:])...)
	return fmt.Errorf("restart with %s: %w", binary, syscall.Exec(binary, args, os.Environ()))
}

// maxStdin is what every pipe takes before anybody reads it.
const maxStdin = 4096

// afresh replaces this process by one with other arguments and a text on stdin.
func afresh(args []string, stdin string) error {
	binary, err := os.Executable()
	if err != nil {
		return fmt.Errorf("this program's own file: %w", err)
	}
	if len(stdin) > maxStdin {
		return fmt.Errorf("a token of %d bytes is none", len(stdin))
	}
	r, w, err := os.Pipe()
	if err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	if _, err := w.WriteString(stdin); err != nil {
		return fmt.Errorf("pipe: %w", err)
	}
	if err := errors.Join(w.Close(), os.Stdin.Close()); err != nil {
		return fmt.Errorf("stdin: %w", err)
	}
	if _, err := unix.FcntlInt(r.Fd(), unix.F_DUPFD, 0); err != nil { // takes the lowest that is free: stdin's
		return fmt.Errorf("stdin: %w", err)
	}
	return fmt.Errorf("start again: %w", syscall.Exec(binary, append([]string{os.Args[0]}, args...), os.Environ()))
}

// logger writes the node's log: to a file in the background, to stderr in the
// foreground, where only what is wrong is worth a person's eye.
func logger(o cli.UpOptions) (*slog.Logger, func(), error) {
	level := slog.LevelInfo
	w, done := os.Stderr, func() {}
	if o.LogFile != "" {
		f, err := os.OpenFile(o.LogFile, os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o600)
		if err != nil {
			return nil, nil, fmt.Errorf("log: %w", err)
		}
		w, done = f, func() { f.Close() }
	} else if !o.Verbose {
		level = slog.LevelWarn
	}
	if o.Verbose {
		level = slog.LevelDebug
	}
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: level})), done, nil
}

// versionText is the version with the commit it was built from.
func versionText() string {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return version
	}
	rev, dirty := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			rev = s.Value[:min(12, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "+"
		}
	}
	if rev == "" {
		return version
	}
	return version + "-" + rev + dirty
}

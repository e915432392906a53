package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"muster/cmd/muster/bench"
	"muster/cmd/muster/cli"
	"muster/cmd/muster/demo"
	"muster/launcher"
)

// version is set by the build: -ldflags "-X main.version=...".
var version = "dev"

func main() {
	easeSleeps(os.Args)
	sealDescriptors()
	if len(os.Args) > 1 && os.Args[1] == launcher.KeepVerb {
		if err := launcher.Keep(os.Args[2:]); err != nil {
			fmt.Fprintln(os.Stderr, "muster keep:", err)
			os.Exit(cli.ExitFailed)
		}
		return
	}
	if len(os.Args) > 1 && os.Args[1] == launcher.NoteVerb {
		if err := launcher.Note(os.Args[2:], os.Stdin); err != nil { // no failure: a program would hold it against its own work
			fmt.Fprintln(os.Stderr, "muster note:", err)
		}
		return
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	code := cli.Main(ctx, os.Args[1:], cli.OS(), cli.Deps{Version: versionText(), Up: up, Again: afresh, Door: door, Check: check, Survey: survey, Recover: recoverFleet, Follow: follow, Restore: restoreFleet, Doctor: lookAround, Demo: showDemo, Bench: bench.Main})
	stop()
	os.Exit(code)
}

func showDemo(ctx context.Context, o cli.DemoOptions) error { return demo.Run(ctx, demo.Options(o)) }

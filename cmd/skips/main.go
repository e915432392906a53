package main

import (
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
)

func main() {
	os.Exit(run(os.Args[1:], os.Stdout, os.Stderr))
}

// run is main with its outside as parameters; it returns the exit code.
func run(args []string, stdout, stderr io.Writer) int {
	flags := flag.NewFlagSet("skips", flag.ContinueOnError)
	flags.SetOutput(stderr)
	ci := flags.Bool("ci", false, "fail on a skip that this machine could run")
	verbose := flags.Bool("v", false, "show what every test says, also when it passes")
	if err := flags.Parse(args); err != nil {
		return 2
	}
	if flags.NArg() == 0 {
		fmt.Fprintln(stderr, "skips: nothing to test; usage: go run ./cmd/skips [-ci] -- [flags of go test] PACKAGES")
		return 2
	}
	report, err := test(flags.Args(), stdout, stderr, *verbose)
	if err != nil {
		fmt.Fprintf(stderr, "skips: %v\n", err)
		return 1
	}
	var judge func(reason string) error
	if *ci {
		judge = func(reason string) error { return judgeSkip(reason, present) }
	}
	if !report.close(stdout, judge) {
		return 1
	}
	return 0
}

// test runs go test with the given arguments and follows its events. A test
// that fails is part of the report and no error; an error means that go test
// could not be run or ended in a way its events do not explain.
func test(args []string, stdout, stderr io.Writer, verbose bool) (*report, error) {
	cmd := exec.Command("go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = stderr
	events, err := cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("pipe to go test: %w", err)
	}
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("start go test: %w", err)
	}
	r := newReport(stdout, verbose)
	readErr := r.read(events)
	if readErr != nil {
		_, _ = io.Copy(io.Discard, events) // go test must not block on a full pipe before it is waited for
	}
	waitErr := cmd.Wait()
	if readErr != nil {
		return nil, fmt.Errorf("read the events of go test: %w", readErr)
	}
	var exit *exec.ExitError
	switch {
	case waitErr == nil:
	case errors.As(waitErr, &exit) && r.anyFailed():
	default:
		return nil, fmt.Errorf("go test ended without naming a failure: %w", waitErr)
	}
	return r, nil
}

package browser

import (
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

var (
	run   = flag.Bool("browser", false, "run the tests of this package (make browser)")
	shots = flag.String("shots", "", "folder for pictures; the default is muster-shots in the temporary folder")
)

var binary string

func TestMain(m *testing.M) {
	flag.Parse()
	if !*run {
		os.Exit(m.Run())
	}
	dir, err := os.MkdirTemp("", "mb") // short: sockets live in it
	if err != nil {
		panic(err)
	}
	binary = filepath.Join(dir, "muster")
	if out, err := exec.Command("go", "build", "-o", binary, "muster/cmd/muster").CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build: %v\n%s", err, out)
		os.Exit(1)
	}
	code := m.Run()
	os.RemoveAll(dir)
	os.Exit(code)
}

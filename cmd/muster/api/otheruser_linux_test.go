package api_test

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/api/apitest"
)

// asOther is the environment of this test's process when it is another user's: the socket to try.
const asOther = "MUSTER_TEST_OTHER_USER"

// T6: another user of the machine gets nothing by a socket, not even when its mode
// was opened: the kernel says who is at the other end.
func TestAnotherUserAtTheSocket(t *testing.T) {
	if sock := os.Getenv(asOther); sock != "" {
		_, err := (&api.Client{Socket: sock}).Get(t.Context(), "/v1/status", nil)
		_, err2 := (&api.Client{Socket: sock}).Do(t.Context(), board.VBarrier, nil, "x", false)
		t.Log("ANSWER", err, "/", err2)
		return
	}
	if os.Getuid() != 0 {
		t.Skip("only root can be another user")
	}
	f := &counting{Fleet: apitest.Story(), told: map[string]int{}}
	dir, err := os.MkdirTemp("/tmp", "muster-other")
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	srv, err := api.Serve(f, api.Sockets{User: dir + "/muster.sock", Session: dir + "/session.sock"})
	if err != nil {
		t.Fatal(err)
	}
	defer srv.Close()
	binary := filepath.Join(dir, "other.test") // the test's own file lies where only its user looks
	copyFile(t, os.Args[0], binary)
	ask := func() string {
		c := exec.Command(binary, "-test.run=^TestAnotherUserAtTheSocket$", "-test.v")
		c.Env, c.Dir = []string{asOther + "=" + dir + "/muster.sock"}, dir
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		out, err := c.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		return string(out)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(os.Chmod(dir, 0o755))
	if out := ask(); !strings.Contains(out, "ANSWER") || strings.Contains(out, "ANSWER <nil>") || f.take(board.CheckUser) != 0 {
		t.Errorf("0600: %s", out)
	}
	must(os.Chmod(dir+"/muster.sock", 0o777))
	if out := ask(); strings.Count(out, "another user's") != 2 {
		t.Errorf("0777: %s", out)
	}
	if n := f.take(board.CheckUser); n != 2 {
		t.Errorf("told of %d denials", n)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	in, err := os.Open(from)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	out, err := os.OpenFile(to, os.O_CREATE|os.O_WRONLY|os.O_EXCL, 0o755)
	if err != nil {
		t.Fatal(err)
	}
	_, err = io.Copy(out, in)
	if err := errors.Join(err, out.Close()); err != nil {
		t.Fatal(err)
	}
}

package launcher

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"
)

// A keeper of the version before there was one: its files and its answers are as it
// wrote them (testdata/keeper-v0), only what names a process or a place is put in.

const oldFolder = "testdata/keeper-v0"

// oldKeeper is such a keeper as a process: args are its run's folder and that of the
// recordings. It keeps a sleeping process.
func oldKeeper(dir, recorded string) error {
	lock, err := takeLock(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	p, err := os.StartProcess("/bin/sleep", []string{"sleep", "1000"}, &os.ProcAttr{Env: []string{"MUSTER_NONCE=36d5c74a4e4959d7fc44554c9a08e12d"}, Sys: sessionAttr(nil, nil)})
	if err != nil {
		return err
	}
	fill := func(name string) (string, error) {
		b, err := os.ReadFile(filepath.Join(recorded, name))
		return strings.NewReplacer("KEEPER", strconv.Itoa(os.Getpid()), "PID", strconv.Itoa(p.Pid), "START", strconv.FormatInt(startOf(p.Pid), 10),
			"BOOT", BootID(), "DIR", dir, "NODE", "n1").Replace(string(b)), err
	}
	l, err := net.Listen("unix", filepath.Join(dir, fileSocket))
	if err != nil {
		return err
	}
	text, err1 := fill(fileProc)
	socket, err2 := fill("socket")
	exit, err3 := fill(fileExit)
	if err := errors.Join(err1, err2, err3, os.WriteFile(filepath.Join(dir, fileProc), []byte(text), 0o600)); err != nil {
		return err
	}
	c, err := l.Accept()
	if err != nil {
		return err
	}
	for in := json.NewDecoder(c); ; {
		var m struct{ Op string }
		if err := in.Decode(&m); err != nil {
			return err
		}
		_, answer, ok := strings.Cut(socket, "> "+m.Op+"\n")
		if !ok {
			return fmt.Errorf("nothing recorded for %q", m.Op)
		}
		answer, _, _ = strings.Cut(answer, "\n> ")
		lines := strings.Split(strings.TrimSpace(answer), "\n")
		if m.Op == opStop {
			if err := errors.Join(p.Kill(), os.WriteFile(filepath.Join(dir, fileExit), []byte(exit), 0o600)); err != nil {
				return err
			}
			_, _ = p.Wait()
		}
		for _, line := range lines {
			if _, err := fmt.Fprintln(c, strings.TrimPrefix(line, "< ")); err != nil {
				return err
			}
		}
		if m.Op == opStop {
			return nil
		}
	}
}

// A keeper of the version before is adopted, told its deadlines and ended, and its
// record is understood.
func TestKeeperOfTheVersionBefore(t *testing.T) {
	t.Parallel()
	for _, how := range []string{"stop", "kill -9"} {
		t.Run(how, func(t *testing.T) {
			t.Parallel()
			dir := filepath.Join(t.TempDir(), "d-1.1")
			must(t, os.Mkdir(dir, 0o700))
			spec, err := os.ReadFile(filepath.Join(oldFolder, fileSpec))
			must(t, err)
			must(t, os.WriteFile(filepath.Join(dir, fileSpec), []byte(strings.NewReplacer("BOOT", BootID(), "DIR", dir).Replace(string(spec))), 0o600))
			recorded, err := filepath.Abs(oldFolder)
			must(t, err)
			p, err := os.StartProcess(testBinary(t), []string{"keeper", "program", "old-keeper", dir, recorded}, &os.ProcAttr{Files: []*os.File{nil, os.Stderr, os.Stderr}})
			must(t, err)
			t.Cleanup(func() { _ = p.Kill(); _, _ = p.Wait() })
			eventually(t, "its record", func() bool { return exists(filepath.Join(dir, fileProc)) })
			k := testKeepers(t)
			s, err := k.Adopt(t.Context(), dir)
			if err != nil || s == nil {
				t.Fatalf("not adopted: %v", err)
			}
			defer s.Close()
			proc, err := ReadProc(dir)
			must(t, err)
			if s.PID() != proc.PID || s.Keeper() != p.Pid || !alive(proc.PID) {
				t.Errorf("pid %d of keeper %d, want %d of %d", s.PID(), s.Keeper(), proc.PID, p.Pid)
			}
			must(t, s.Extend(soon(time.Hour)))
			if how == "stop" {
				must(t, s.Stop(time.Second, "test"))
				e := finish(t, s, dir)
				if m := meaning(dir, &Spec{}, e); e.Signal != "SIGTERM" || m == nil || m.Kind != meansStopped {
					t.Errorf("record %+v means %+v, want stopped", e, m)
				}
				return
			}
			must(t, p.Kill())
			wait(t, "its death", s.Done())
			must(t, k.End(context.Background(), dir))
			if alive(proc.PID) {
				t.Error("its session lives on")
			}
		})
	}
}

// What newer versions write has their number, and what they add is passed over.
func TestFolderOfANewerVersion(t *testing.T) {
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, fileExit), []byte(`{"v":99,"started":true,"code":7,"boot":"b","new":{"a":1}}`), 0o600))
	if e, err := ReadExit(dir); err != nil || e.V != 99 || e.Code == nil || *e.Code != 7 {
		t.Errorf("read %+v, %v", e, err)
	}
	must(t, WriteExit(dir, &Exit{Boot: "b"}))
	must(t, WriteProc(dir, &Proc{PID: 1}))
	for _, name := range []string{fileExit, fileProc} {
		b, err := os.ReadFile(filepath.Join(dir, name))
		must(t, err)
		if !strings.HasPrefix(string(b), fmt.Sprintf(`{"v":%d,`, format)) {
			t.Errorf("%s has no version: %s", name, b)
		}
	}
	here, there := net.Pipe()
	defer there.Close()
	go func() {
		_, _ = there.Write([]byte(`{"v":99,"re":"status","pid":3,"state":"dreaming","new":[1]}` + "\n"))
	}()
	if m, err := readMessage(bufio.NewReader(here)); err != nil || m.PID != 3 || m.V != 99 {
		t.Errorf("message %+v, %v", m, err)
	}
}

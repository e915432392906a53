package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func sample() pack {
	return pack{version: "v1.2.3-rc1", arch: "amd64", program: []byte("#!/bin/sh\necho muster\n"), at: time.Unix(1700000000, 0),
		docs: map[string][]byte{"README.md": []byte("read"), "LICENSE": []byte("may"), "CHANGELOG.md": []byte("new"), "man/muster.1": []byte(".TH MUSTER 1\n"),
			"completion/muster.bash": []byte("b"), "completion/_muster": []byte("z"), "completion/muster.fish": []byte("f")}}
}

// TestTarball: one folder with the program, which may be run, and what one reads; twice the same bytes.
func TestTarball(t *testing.T) {
	var a, b bytes.Buffer
	if err := errors.Join(sample().tarball(&a), sample().tarball(&b)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the same is packed in two ways")
	}
	z, err := gzip.NewReader(&a)
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		data, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.HasPrefix(h.Name, "muster-1.2.3-rc1/") || h.Uid != 0 || !h.ModTime.Equal(time.Unix(1700000000, 0)) {
			t.Errorf("%+v", h)
		}
		if want := int64(0o644); h.Typeflag == tar.TypeReg && !strings.HasSuffix(h.Name, "/muster") && h.Mode != want {
			t.Errorf("%s has mode %o", h.Name, h.Mode)
		}
		got[strings.TrimPrefix(h.Name, "muster-1.2.3-rc1/")] = string(data)
		if h.Name == "muster-1.2.3-rc1/muster" && h.Mode != 0o755 {
			t.Errorf("the program has mode %o", h.Mode)
		}
	}
	for name, data := range sample().docs {
		if got[name] != string(data) {
			t.Errorf("%s: %q", name, got[name])
		}
	}
}

// TestDeb: dpkg takes the package, and unpacks it to where things belong.
func TestDeb(t *testing.T) {
	var a, b bytes.Buffer
	if err := errors.Join(sample().deb(&a), sample().deb(&b)); err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(a.Bytes(), b.Bytes()) {
		t.Error("the same is packed in two ways")
	}
	if !bytes.HasPrefix(a.Bytes(), []byte("!<arch>\ndebian-binary   1700000000  0     0     100644  4         `\n2.0\n")) {
		t.Errorf("it begins with %q", a.Bytes()[:80])
	}
	dpkg, err := exec.LookPath("dpkg-deb")
	if err != nil {
		return // what it holds is what the tarball holds
	}
	dir := t.TempDir()
	path := filepath.Join(dir, "muster.deb")
	if err := os.WriteFile(path, a.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	for field, want := range map[string]string{"Package": "muster", "Version": "1.2.3~rc1", "Architecture": "amd64"} {
		if out, err := exec.Command(dpkg, "--field", path, field).CombinedOutput(); err != nil || strings.TrimSpace(string(out)) != want {
			t.Errorf("%s: %v %s", field, err, out)
		}
	}
	if out, err := exec.Command(dpkg, "--extract", path, dir+"/root").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if out, err := exec.Command(dir + "/root/usr/bin/muster").Output(); err != nil || string(out) != "muster\n" {
		t.Errorf("what is installed: %v %s", err, out)
	}
	for _, name := range []string{"usr/share/man/man1/muster.1.gz", "usr/share/bash-completion/completions/muster", "usr/share/zsh/vendor-completions/_muster",
		"usr/share/fish/vendor_completions.d/muster.fish", "usr/share/doc/muster/copyright", "usr/share/doc/muster/README.md"} {
		if _, err := os.Stat(filepath.Join(dir, "root", name)); err != nil {
			t.Error(err)
		}
	}
}

// TestDebVersions: Debian's order begins with a digit, and a version before a release comes before it.
func TestDebVersions(t *testing.T) {
	for v, want := range map[string]string{"v1.2.3": "1.2.3", "v1.2.3-rc1": "1.2.3~rc1", "abc123": "0~abc123", "v0.1-5-gabc": "0.1~5~gabc"} {
		if got := debVersion(v); got != want {
			t.Errorf("%s: %s, want %s", v, got, want)
		}
	}
}

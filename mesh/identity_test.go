package mesh

import (
	"crypto/x509"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

func TestIdentityIsKept(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "data")
	old := syscall.Umask(0)
	a, err := LoadOrCreateIdentity(dir)
	syscall.Umask(old)
	if err != nil {
		t.Fatal(err)
	}
	b, err := LoadOrCreateIdentity(dir)
	if err != nil {
		t.Fatal(err)
	}
	if a.ID != b.ID {
		t.Errorf("the id changed from %s to %s", a.ID, b.ID)
	}
	if _, err := ParseNodeID(string(a.ID)); err != nil || len(a.ID) != 32 {
		t.Errorf("id %q: %v", a.ID, err)
	}
	// T8: nobody else can read it, whatever the umask.
	for path, want := range map[string]os.FileMode{filepath.Join(dir, keyFile): 0o600, dir: 0o700} {
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v, %v; want %v", path, info.Mode(), err, want)
		}
	}
	entries, _ := os.ReadDir(dir)
	if len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
	cert, err := x509.ParseCertificate(a.cert.Certificate[0])
	if err != nil || cert.NotAfter.Before(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)) {
		t.Errorf("certificate ends %v, %v", cert.NotAfter, err)
	}
}

// A key that may be known to others or damaged is refused with one line that
// names the file and the way out, and is left as it is.
func TestBadKeyFile(t *testing.T) {
	make0 := func(t *testing.T) string {
		dir := t.TempDir()
		if _, err := loadOrCreate(dir, "machine-one"); err != nil {
			t.Fatal(err)
		}
		return filepath.Join(dir, keyFile)
	}
	for _, c := range []struct {
		name, want string
		spoil      func(path string) error
	}{
		{"mode 0644", "chmod 600", func(p string) error { return os.Chmod(p, 0o644) }},
		{"mode 0660", "chmod 600", func(p string) error { return os.Chmod(p, 0o660) }},
		{"empty", "damaged", func(p string) error { return os.Truncate(p, 0) }},
		{"cut", "damaged", func(p string) error { return os.Truncate(p, 80) }},
		{"symlink", "symbolic link", func(p string) error {
			if err := os.Rename(p, p+".x"); err != nil {
				return err
			}
			return os.Symlink(p+".x", p)
		}},
		{"folder", "no plain file", func(p string) error {
			if err := os.Remove(p); err != nil {
				return err
			}
			return os.Mkdir(p, 0o700)
		}},
		{"fifo", "no plain file", func(p string) error {
			if err := os.Remove(p); err != nil {
				return err
			}
			return syscall.Mkfifo(p, 0o600)
		}},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := make0(t)
			if err := c.spoil(path); err != nil {
				t.Fatal(err)
			}
			before, _ := os.Lstat(path)
			_, err := loadOrCreate(filepath.Dir(path), "machine-one")
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) || strings.Contains(err.Error(), "\n") {
				t.Fatalf("got %v, want %q and the path in one line", err, c.want)
			}
			if after, err := os.Lstat(path); err != nil || after.Mode() != before.Mode() || after.Size() != before.Size() {
				t.Errorf("the file was changed: %v, %v", after, err)
			}
		})
	}
}

// Invariant 15: a data folder copied to another machine is refused there.
func TestCopiedKeyIsRefused(t *testing.T) {
	dir := t.TempDir()
	a, err := loadOrCreate(dir, "machine-one")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := loadOrCreate(dir, "machine-two"); err == nil || !strings.Contains(err.Error(), "another machine") {
		t.Fatalf("got %v", err)
	}
	// Moved on purpose: the line that binds it is taken out, as the error says.
	path := filepath.Join(dir, keyFile)
	text, _ := os.ReadFile(path)
	text = []byte(strings.Replace(string(text), "Machine: machine-one\n", "", 1))
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	b, err := loadOrCreate(dir, "machine-two")
	if err != nil || b.ID != a.ID {
		t.Fatalf("after the move: %v", err)
	}
}

func TestParseNodeID(t *testing.T) {
	good := string(ID("x"))
	if _, err := ParseNodeID(good); err != nil {
		t.Error(err)
	}
	for _, s := range []string{"", good[1:], good + "a", strings.ToUpper(good), good[:31] + "1", good[:31] + "/"} {
		if _, err := ParseNodeID(s); err == nil {
			t.Errorf("%q was taken", s)
		}
	}
}

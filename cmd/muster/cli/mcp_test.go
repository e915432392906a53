package cli

import (
	"os"
	"path/filepath"
	"testing"
)

// TestToolsReadTheSecretAnew: the tools of a session that is kept act for the run that it is in now.
func TestToolsReadTheSecretAnew(t *testing.T) {
	file := filepath.Join(t.TempDir(), "secret")
	env := map[string]string{"MUSTER_SOCKET": "/nowhere/session.sock", "MUSTER_SECRET_FILE": file}
	a := &app{io: IO{Env: func(k string) string { return env[k] }}}
	client := a.freshClient()
	auth := func() string {
		t.Helper()
		c, err := client()
		if err != nil {
			t.Fatal(err)
		}
		return c.Auth
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(`{"run":"d-1.1","secret":"one"}`)
	first, err := client()
	if err != nil || first.Auth != "Run d-1.1:one" {
		t.Fatalf("%+v, %v", first, err)
	}
	if again, err := client(); again != first || err != nil {
		t.Errorf("another client for the same run: %v", err)
	}
	write(`{"run":"d-1.2","secret":"two"}`)
	if got := auth(); got != "Run d-1.2:two" {
		t.Errorf("%q", got)
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if _, err := client(); err == nil {
		t.Error("a session without its secret has a client")
	}
}

package cli

import (
	"strings"
	"testing"
)

// TestServiceNames: each folder's node is a service of its own, under a name that a manager takes.
func TestServiceNames(t *testing.T) {
	if got := serviceName("/home/ann/.muster", "linux"); got != "muster" {
		t.Error(got)
	}
	if got := serviceName("/Users/ann/.muster", "darwin"); got != "org.muster.node" {
		t.Error(got)
	}
	a, b := serviceName("/srv/a/node", "linux"), serviceName("/srv/b/node", "linux")
	if a == b || !strings.HasPrefix(a, "muster-node-") {
		t.Errorf("%s, %s", a, b)
	}
	for _, data := range []string{"/srv/übung mit $x;", "/", "/srv/.."} {
		name := serviceName(data, "linux")
		if strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" || len(name) > 60 {
			t.Errorf("%s: %q", data, name)
		}
	}
}

// TestServiceTakesNoToken: a token in a service's file would be read by others, and is used up at its second start.
func TestServiceTakesNoToken(t *testing.T) {
	w := newWorld(t, story())
	for _, line := range []string{"--join=x", "--join|x", "--token-file|f", "--detach", "--data|d", "--name|a\nb"} {
		args := append([]string{"service", "install", "--"}, strings.Split(line, "|")...)
		if _, err, code := w.run(args...); code != ExitUsage {
			t.Errorf("%q: exit %d: %s", line, code, err)
		}
	}
	if _, err, code := w.run("service", "status", "--user", "ann"); code != ExitUsage {
		t.Errorf("--user without --system: exit %d: %s", code, err)
	}
	if out, err, code := w.run("service", "status", "--json"); code != ExitOK || !strings.Contains(out, `"installed":false`) {
		t.Errorf("exit %d: %s %s", code, out, err)
	}
}

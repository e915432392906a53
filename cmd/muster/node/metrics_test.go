package node

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestFiguresOfANode: on its loopback address a node shows what it did, and that it is ready.
func TestFiguresOfANode(t *testing.T) {
	cfg := testConfig(t, "a")
	cfg.Metrics = "127.0.0.1:0"
	addr := ""
	cfg.Progress = func(s string) {
		if rest, ok := strings.CutPrefix(s, "metrics at http://"); ok {
			addr = strings.TrimSuffix(rest, "/metrics")
		}
	}
	n := open(t, cfg)
	if addr == "" {
		t.Fatal("nobody was told of the address")
	}
	n.testDo(t, "board.apply", map[string]any{"board": "default", "yaml": shell})
	n.waitStatus(t, n.testAdd(t, "one", "true"), "done")
	get := func(path string) (int, string) {
		c := http.Client{Timeout: 20 * time.Second}
		res, err := c.Get("http://" + addr + path)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		b, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(b)
	}
	code, text := get("/metrics")
	if code != http.StatusOK {
		t.Fatalf("%d: %s", code, text)
	}
	for _, want := range []string{
		"muster_raft_leader 1\n", "muster_quorum 1\n", "muster_voters 1\n", `muster_cards{board="default",status="done"} 1`, `muster_starts_total{board="default",profile="sh"} 1`,
		`muster_node_online{node="a"} 1`, `muster_node_slots{node="a"} 8`, `muster_build_info{fleet=`,
	} {
		if !strings.Contains(text, want) {
			t.Errorf("no %q in\n%s", want, text)
		}
	}
	for _, not := range []string{"muster_commit_duration_seconds_count 0\n", "muster_apply_duration_seconds_count 0\n", "muster_raft_applied_index 0\n", "muster_log_syncs_total 0\n"} {
		if strings.Contains(text, not) {
			t.Errorf("%q after a card was done", not)
		}
	}
	if code, text := get("/readyz"); code != http.StatusOK || !strings.Contains(text, `"ready":true`) {
		t.Errorf("readyz: %d %s", code, text)
	}
	n.full.Store(true)
	if code, text := get("/readyz"); code != http.StatusServiceUnavailable || !strings.Contains(text, "space: NOSPACE") {
		t.Errorf("readyz of a full disk: %d %s", code, text)
	}
	n.full.Store(false)
	if err := n.Close(); err != nil {
		t.Error(err)
	}
	if c, err := net.DialTimeout("tcp", addr, time.Second); err == nil {
		c.Close()
		t.Error("a closed node still listens")
	}
}

// TestFiguresAreForThisMachine (T-20): who asks for figures shows no credential, so the address is loopback.
func TestFiguresAreForThisMachine(t *testing.T) {
	for addr, ok := range map[string]bool{"": true, "127.0.0.1:7190": true, "[::1]:0": true, "127.5.0.1:1": true,
		"0.0.0.0:7190": false, ":7190": false, "192.0.2.1:7190": false, "localhost": false, "example.org:1": false, "[::]:1": false} {
		if err := CheckMonitor(addr); (err == nil) != ok {
			t.Errorf("%q: %v", addr, err)
		}
	}
}

package node

import (
	"strings"
	"testing"
)

// What nobody can listen on or dial, and names that no board could show, are
// refused before anything is made.
func TestConfigRefuses(t *testing.T) {
	for _, x := range []struct {
		words string
		c     Config
	}{
		{"", Config{Name: "a-1.b_2"}},
		{"", Config{Name: "a", Listen: ":7100", Advertise: "192.0.2.1:7100"}},
		{"", Config{Name: "a", Listen: "0.0.0.0:0"}},
		{"node name", Config{Name: "\xff"}},
		{"node name", Config{Name: strings.Repeat("x", 300)}},
		{"node name", Config{Name: "a\nb"}},
		{"not IP:PORT", Config{Name: "a", Listen: "here"}},
		{"not IP:PORT", Config{Name: "a", Listen: "127.0.0.1:70000"}},
		{"nobody can dial", Config{Name: "a", Advertise: "0.0.0.0:1"}},
		{"nobody can dial", Config{Name: "a", Advertise: "[::]:1"}},
		{"nobody can dial", Config{Name: "a", Advertise: ":7100"}},
		{"nobody can dial", Config{Name: "a", Advertise: "192.0.2.1:0"}},
		{"lan or wan", Config{Name: "a", Timers: "moon"}},
	} {
		x.c.Data = t.TempDir()
		err := x.c.Validate()
		if (err == nil) != (x.words == "") || err != nil && !strings.Contains(err.Error(), x.words) {
			t.Errorf("%+v: %v, want %q", x.c, err, x.words)
		}
	}
}

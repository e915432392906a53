package tty

import "testing"

// The key that leaves comes by itself; in a paste, marked or not, it is a character.
func TestLeaveKey(t *testing.T) {
	for _, c := range []struct {
		name  string
		reads []string
		loose bool
		want  bool // of the last
	}{
		{"alone", []string{"\x1d"}, false, true},
		{"after other keys", []string{"ls", "\r", "\x1d"}, false, true},
		{"in a block", []string{"a\x1db"}, false, false},
		{"in a marked paste, by itself", []string{"\x1b[200~one", "\x1d"}, false, false},
		{"after a marked paste", []string{"\x1b[200~one\x1d", "two\x1b[201~", "\x1d"}, false, true},
		{"after a paste whose mark was cut", []string{"\x1b[200~one\x1b[2", "01~", "\x1d"}, false, true},
		{"in a paste whose mark was cut", []string{"\x1b[", "200~", "\x1d"}, false, false},
		{"among keys that go nowhere", []string{"\x1b[200~a\x1db"}, true, true},
		{"nothing", []string{""}, true, false},
	} {
		var k Keys
		got := false
		for _, r := range c.reads {
			got = k.Leaves([]byte(r), c.loose)
		}
		if got != c.want {
			t.Errorf("%s: leaves %v", c.name, got)
		}
	}
}

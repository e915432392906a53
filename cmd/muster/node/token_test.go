package node

import (
	"testing"
)

// Whatever a person pastes is a token or a refusal; a token reads back as it was.
func FuzzToken(f *testing.F) {
	good := (&Token{Fleet: "f", Nodes: []peerID{{ID: "n", Addrs: []string{"192.0.2.1:7100"}}}, Secret: "s", Role: "node"}).String()
	for _, s := range []string{"", good, good + " \n", "muster1.", "muster1.!!", "muster1.e30", "muster1.bnVsbA", good[:len(good)-3], "muster2." + good[8:]} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		tok, err := ParseToken(s)
		if err != nil {
			return
		}
		again, err := ParseToken(tok.String())
		if err != nil || again.Secret != tok.Secret || again.Fleet != tok.Fleet || len(again.Nodes) != len(tok.Nodes) {
			t.Errorf("%q reads back as %+v, %v", s, again, err)
		}
	})
}

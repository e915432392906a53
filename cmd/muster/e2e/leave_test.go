package e2e

import (
	"strings"
	"testing"
	"time"
)

// A machine leaves by one word at its own socket, be it the leader: the fleet lists it no more, its node is stopped, and the rest
// goes on. Who is the only voter does not leave; a token lets the machine come back as what it was.
func TestLeave(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, 4, steady...)
	f.workflow("null")
	f.votersAre(f.machines[3], "atlas", "borea", "cleo")
	for _, m := range []*machine{f.machines[3], f.leader()} { // a replica, then who leads
		out, said, code := m.run("leave")
		if code != 0 || !strings.Contains(out, m.name+" is out of the fleet") {
			t.Fatalf("leave of %s: exit %d: %s%s", m.name, code, out, said)
		}
		_ = m.cmd.Wait()
		m.live.Store(0)
		m.cmd = nil
		var rest []*machine
		for _, x := range f.machines {
			if x != m {
				rest = append(rest, x)
			}
		}
		f.machines = rest
		f.eventually(60*time.Second, "without "+m.name, func() (bool, string) {
			s, err := rest[0].status()
			if err != nil {
				return false, err.Error()
			}
			for _, n := range s.Nodes {
				if n.Name == m.name {
					return false, "it is listed"
				}
			}
			return s.Quorum, "no quorum"
		})
		f.await(rest[0], "done", f.add(rest[0], "without "+m.name, "true", nil))
	}
}

package e2e

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"
)

// voters are the names of the machines that vote, as a machine's status shows them.
func (m *machine) voters() (names string, err error) {
	st, err := m.status()
	var list []string
	for _, n := range st.Nodes {
		if n.Role == "voter" {
			list = append(list, n.Name)
		}
	}
	slices.Sort(list)
	return strings.Join(list, " "), err
}

func (f *fleet) votersAre(m *machine, want ...string) {
	f.t.Helper()
	slices.Sort(want)
	f.eventually(60*time.Second, "voting: "+strings.Join(want, " "), func() (bool, string) {
		got, err := m.voters()
		return err == nil && got == strings.Join(want, " "), fmt.Sprintf("%q (%v)\n%s", got, err, m.lastWords(10))
	})
}

// architecture.md §6: a voter that is dead for good is replaced by a replica that may vote; so the fleet survives the next
// machine as well. The dead one comes back as a replica.
func TestDeadVoterIsReplaced(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 4, 4, steady...)
	f.workflow("null")
	spare := f.machines[3]
	first := f.machines[1]
	if f.leader() == first {
		first = f.machines[2]
	}
	f.votersAre(spare, "atlas", "borea", "cleo")
	first.kill()
	var left []*machine
	for _, m := range f.machines {
		if m != first {
			left = append(left, m)
		}
	}
	f.votersAre(spare, left[0].name, left[1].name, left[2].name)

	second := f.leader()
	second.kill() // two of the first three are dead
	i := slices.IndexFunc(left, func(m *machine) bool { return m != second })
	f.await(left[i], "done", f.add(left[i], "with two of four dead", "true", nil))

	first.start()
	second.start()
	f.allOnline(spare)
	f.votersAre(spare, left[0].name, left[1].name, left[2].name)
}

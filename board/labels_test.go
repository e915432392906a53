package board

import (
	"fmt"
	"strings"
	"testing"
)

// A person's labels of a machine are the fleet's: they stay when the node starts anew with others or none, also what
// was taken away; what nobody said follows the node. Always-on follows the label (M-36).
func TestNodeLabelsStay(t *testing.T) {
	f := newFleet(t)
	gen := uint64(1)
	up := func(own map[string]string) {
		t.Helper()
		f.must(Request{Actor: Actor{Kind: ActorNode, Node: atlas}, Verb: VNodeUp}, NodeUp{ID: atlas, Name: "atlas", Generation: gen, Start: fmt.Sprint("s", gen), Slots: 4, Battery: true, Labels: own})
		gen++
	}
	label := func(labels map[string]string) {
		t.Helper()
		f.must(f.person(VNodeLabel), NodeLabel{Node: "atlas", Labels: labels})
	}
	want := func(text string, always bool) {
		t.Helper()
		if n := GetNode(f.v, atlas); fmt.Sprint(n.Labels) != text || n.AlwaysOn != always {
			t.Fatalf("labels %v, always on %v; want %s, %v", n.Labels, n.AlwaysOn, text, always)
		}
	}
	up(map[string]string{"os": "linux", "tier": "2"})
	want("map[os:linux tier:2]", false)
	label(map[string]string{"tier": "1", "always-on": "true", "os": "", "none": ""})
	want("map[always-on:true tier:1]", true)
	up(map[string]string{"os": "linux", "tier": "3", "zone": "b"})
	want("map[always-on:true tier:1 zone:b]", true)
	up(nil)
	want("map[always-on:true tier:1]", true)
	label(map[string]string{"always-on": "", "tier": ""})
	want("map[]", false)
	up(map[string]string{"tier": "4"})
	want("map[tier:4]", false) // it had none of its own when it was taken away: nothing is left to hide

	for name, x := range map[string]struct {
		labels map[string]string
		code   Code
	}{
		"two lines":   {map[string]string{"a\nb": "c"}, Invalid},
		"no name":     {map[string]string{"": "c"}, Invalid},
		"a long one":  {map[string]string{"a": strings.Repeat("x", 300)}, Invalid},
		"one hundred": {manyLabels(maxLabels + 1), Refused},
	} {
		if err := f.do(f.person(VNodeLabel), NodeLabel{Node: "atlas", Labels: x.labels}).Err; err == nil || err.Code != x.code {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := f.do(f.person(VNodeLabel), NodeLabel{Node: "nowhere", Labels: map[string]string{"a": "b"}}).Err; err == nil || err.Code != NotFound {
		t.Errorf("of a machine that is not there: %v", err)
	}
	before := f.v.Seq()
	label(map[string]string{"none": ""})
	if f.v.Seq() != before {
		t.Error("what changes nothing was written")
	}
}

func manyLabels(n int) map[string]string {
	m := map[string]string{}
	for i := range n {
		m[fmt.Sprint("l", i)] = "x"
	}
	return m
}

package board

import "maps"

// maxLabels is how many labels a machine may have, by itself and by people's words each.
const maxLabels = 100

func checkLabels(node string, labels map[string]string) *Error {
	for k, v := range labels {
		if k == "" || len(k)+len(v) > 300 || !oneLine(k) || !oneLine(v) {
			return Errorf(Invalid, "node %s: label %q: a name and a value are one line, together at most 300 bytes", node, clip(k, 40))
		}
	}
	return nil
}

// label makes a machine's labels of those that it says of itself (own) and those that people said of it, which
// win: they are the fleet's, and a start of the node must not undo them (M-36 for always-on).
func (n *Node) label(own map[string]string) {
	n.Own, n.Labels = own, maps.Clone(own)
	for k, v := range n.Said {
		switch {
		case v == "":
			delete(n.Labels, k)
		case n.Labels == nil:
			n.Labels = map[string]string{k: v}
		default:
			n.Labels[k] = v
		}
	}
	n.AlwaysOn = !n.Battery || n.Labels["always-on"] == "true"
}

// nodeLabel sets or takes away labels of a machine, by a person's word.
func nodeLabel(t *tx) (any, *Error) {
	a, err := args[NodeLabel](t)
	if err != nil {
		return nil, err
	}
	n, err := FindNode(t, a.Node)
	if err != nil {
		return nil, err
	}
	if err := checkLabels(n.Name, a.Labels); err != nil {
		return nil, err
	}
	said := maps.Clone(n.Said)
	for k, v := range a.Labels {
		if _, own := n.Own[k]; v == "" && !own {
			delete(said, k) // nothing is left to take away
			continue
		}
		if said == nil {
			said = map[string]string{}
		}
		said[k] = v
	}
	if len(said) > maxLabels {
		return nil, Errorf(Refused, "%s would have %d labels, %d at most", n.Name, len(said), maxLabels).WithHint("take some away: muster node label %s NAME=", n.Name)
	}
	if !maps.Equal(said, n.Said) {
		n.Said = said
		n.label(n.Own)
		t.putNode(n)
		t.event(nil, Event{Kind: "node_labelled", Payload: jsonOf(map[string]any{"node": n.Name, "labels": n.Labels})})
	}
	return map[string]any{"node": n.ID, "labels": n.Labels}, nil
}

package board

import "slices"

// offer sends promote to the card itself, when it came into a status that
// handles it, and to the cards that wait for it. What cannot be promoted stays
// as it is: one card's fault never holds up another (invariant 22).
func (st *step) offer() {
	if st.c.Status != st.from {
		st.t.promote(st.c, &st.f)
	}
	ids := st.promote
	if st.children {
		ids = append(ids, Children(st.t, st.c.ID)...)
	}
	for _, id := range slices.Compact(ids) {
		if id == st.c.ID {
			continue
		}
		if c := GetCard(st.t, id); c != nil {
			st.t.promote(c, &st.f)
		}
	}
}

// promote offers a card its promotion as part of the same transaction.
func (t *tx) promote(c *Card, cause *firing) bool {
	b := BoardOfCard(t, c.ID)
	if b == nil {
		return false
	}
	wf, err := t.workflow(b)
	if err != nil || len(wf.Transitions(c.Status, "promote")) == 0 {
		return false
	}
	if cause.depth >= maxDepth {
		return false
	}
	if *cause.left <= 0 {
		t.putDue(t.env.Now, DueCard, c.ID)
		return false
	}
	*cause.left--
	f := t.fork()
	mine := GetCard(f, c.ID)
	if mine == nil {
		return false
	}
	if _, err := f.fire(b, mine, firing{Event: "promote", Actor: Platform(), depth: cause.depth + 1, left: cause.left}); err != nil {
		return false
	}
	t.join(f)
	*c = *mine
	return true
}

package board

// dueImport takes away an import that was given up, some records at a time.
func (t *tx) dueImport(slug string) {
	i := GetImport(t, slug)
	switch {
	case i == nil:
		return
	case !i.Dropped && i.At+importIdle > t.env.Now:
		t.putDue(i.At+importIdle, DueImport, slug)
		return
	}
	i.Dropped = true
	t.put(TImport, slug, i)
	left := dropPerStep
	var cards []*Card
	EachCard(t, &i.Board, func(c *Card) bool { cards = append(cards, c); return len(cards) < dropPerStep })
	for _, c := range cards {
		if left -= t.dropImported(c, left); left <= 0 {
			t.putDue(t.env.Now+1, DueImport, slug)
			return
		}
	}
	if len(cards) == dropPerStep {
		t.putDue(t.env.Now+1, DueImport, slug)
		return
	}
	t.del(TWorkflow, WorkflowKey(slug, i.Board.Workflow))
	t.del(TImport, slug)
}

// dropImported takes away a card, or as much of it as is allowed, and counts.
func (t *tx) dropImported(c *Card, most int) (n int) {
	for c.LastEvent != "" && n < most {
		e := GetEvent(t, c.LastEvent)
		t.del(TEvent, c.LastEvent)
		if c.LastEvent = ""; e != nil {
			c.LastEvent = e.Prev
		}
		n++
	}
	var runs []string
	EachRun(t, c.ID, func(r *Run) bool { runs = append(runs, r.ID); return n+len(runs) < most })
	for _, id := range runs {
		t.del(TRun, RunKey(id))
		n++
	}
	for _, p := range Parents(t, c.ID) {
		if n < most {
			t.del(TLink, LinkKey(c.ID, p))
			t.del(TChild, ChildKey(p, c.ID))
			n += 2
		}
	}
	if n >= most {
		t.put(TCard, c.ID, c) // the rest of it comes with the next step
		return n
	}
	t.putBody(c.ID, "")
	t.delDue(c.StartAfter, DueCard, c.ID)
	t.del(TCard, c.ID)
	return n + 3
}

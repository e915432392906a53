package board

// stopSession orders the end of a run's session, once.
func (t *tx) stopSession(r *Run, why string) {
	if r.Gone != "" || r.Stop != "" {
		return
	}
	r.Stop = t.orderID()
	t.putRun(r)
	if h := GetHeld(t, r.ID); h != nil {
		h.Stopping = true
		t.putHeld(h)
	}
	t.putOrder(&Order{ID: r.Stop, Node: r.Node, Kind: OrderStop, State: OrderPending, Run: r.ID, Card: r.Card, Slot: r.Slot,
		Era: r.Era, Seq: t.env.Seq, At: t.env.Now, Why: why})
}

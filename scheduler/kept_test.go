package scheduler

import (
	"testing"
	"testing/synctest"

	"muster/board"
)

// CAP-15: a place that was kept for a card comes free when that card waits no
// longer, although no session has ended: who it was kept from starts at once.
func TestLoopWakesForAPlaceNoLongerKept(t *testing.T) {
	const kept = shell + `
params: {reviewer: none}
dispatch:
  capacity:
    - {counts: runs, scope: fleet, max: 1, reserve: {for: {status: reviewing}, slots: 1}}
    - {counts: runs, scope: assignee, max: profile.capacity}
`
	for name, leaves := range map[string]func(r *rig, review string){
		"cancelled": func(r *rig, review string) {
			r.person(board.VEvent, board.FireEvent{Card: review, Event: "cancel", Why: "x"})
		},
		"blocked": func(r *rig, review string) {
			r.person(board.VEvent, board.FireEvent{Card: review, Event: "block", Payload: map[string]any{"kind": "needs_input", "reason": "x"}})
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, kept, []string{"atlas"}, func(r *rig) {
				review := r.add("sh")
				synctest.Wait()
				r.launch(r.current()[0])
				r.person(board.VEvent, board.FireEvent{Card: review, Event: "request_review"})
				waits := r.add("sh")
				synctest.Wait()
				if c := r.card(waits); c.Run != "" || c.Waits.Check != "cap" {
					r.t.Fatalf("%s did not leave the review its place: run %q, waits %+v", waits, c.Run, c.Waits)
				}
				leaves(r, review)
				synctest.Wait()
				if r.card(waits).Run == "" {
					r.t.Fatalf("nobody needs the place, and %s waits on: %+v", waits, r.card(waits).Waits)
				}
			})
		})
	}
}

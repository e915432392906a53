package board

import "testing"

// A session that its lease has ended is no failure of its card: the machine was out of touch (M-09, M-11).
func TestAnEndByLeaseIsNoFailure(t *testing.T) {
	for means, failures := range map[string]int64{MeansLease: 0, "": 1} {
		f := newFleet(t)
		card := f.card("x")
		run := f.launched(card)
		f.report(atlas, Report{Kind: ReportExited, Run: run, Signal: "SIGKILL", Means: means})
		if c := GetCard(f.v, card); c.Failures != failures || c.Status != "ready" {
			t.Errorf("means %q: %d failures, %s; want %d, ready", means, c.Failures, c.Status, failures)
		}
	}
}

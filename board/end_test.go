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

// HLS-08, M-08: what an end means by its harness's preset is on the run and in the event, with when a limit ends;
// code 0 of an agent that said no word means that there is no verdict.
func TestAnEndHasItsMeaning(t *testing.T) {
	zero, one := int64(0), int64(1)
	for name, c := range map[string]struct {
		profile string
		report  Report
		means   string
		reset   int64 // s after the end
		outcome string
	}{
		"rate limit until":                     {"agent", Report{Code: &one, Means: MeansRateLimit, ResetAt: 7200_000, Error: "busy"}, "rate_limit", 7200, "rate_limited"},
		"rate limit for":                       {"agent", Report{Code: &zero, Means: MeansRateLimit, ResetIn: 600_000, Ago: 60_000}, "rate_limit", 540, "rate_limited"},
		"denied":                               {"agent", Report{Code: &zero, Means: "denied", Error: "Bash"}, "denied", 0, "crashed"},
		"a command's 0 where only words count": {"agent", Report{Code: &zero, Means: "completed"}, MeansNoVerdict, 0, "crashed"},
		"no word":                              {"agent", Report{Code: &zero}, MeansNoVerdict, 0, "crashed"},
		"code 0 is its verdict":                {"sh", Report{Code: &zero, Means: "completed"}, "completed", 0, "completed"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, commands)
			id := w.add("x", func(x *Card) { x.Assignee = c.profile })
			r := w.started(id)
			c.report.Kind = ReportExited
			if c.report.ResetAt != 0 {
				c.report.ResetAt += w.now
			}
			w.report(r.ID, c.report)
			r = GetRun(w.v, r.ID)
			want := c.reset * 1000
			if want != 0 {
				want += w.now
			}
			if c.means == MeansNoVerdict {
				if x := w.card(id); x.Attention.Text != noVerdict || x.LastError != noVerdict || x.BlockReason != noVerdict || r.Error != noVerdict {
					t.Errorf("people read %q, %q, %q, %q; want %q", x.Attention.Text, x.LastError, x.BlockReason, r.Error, noVerdict)
				}
			}
			if at := ResetAt(r); r.Means != c.means || r.Outcome != c.outcome || at != want {
				t.Errorf("means %q, outcome %q, reset %d; want %q, %q, %d", r.Means, r.Outcome, at, c.means, c.outcome, want)
			}
		})
	}
}

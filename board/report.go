package board

import (
	"encoding/json"
	"fmt"

	"muster/board/lease"
)

// report takes what a node says about a run's order (M-07, M-12): only the
// executing node judges its processes, and only for runs stored for it.
func report(t *tx) (any, *Error) {
	a, err := args[Report](t)
	if err != nil {
		return nil, err
	}
	if a.Kind == ReportDone {
		return nil, t.orderDone(&a)
	}
	if a.Kind == ReportLooked {
		return nil, t.looked(&a)
	}
	r, err := t.findRun(a.Run)
	switch {
	case err != nil:
		return nil, err
	case r.Node != t.req.Actor.Node:
		return nil, Errorf(Refused, "run %s is not on %s", r.ID, t.nodeName(t.req.Actor.Node))
	}
	if a.Memory != nil {
		t.reportMemory(r, a.Memory)
		r = GetRun(t, r.ID)
	}
	switch a.Kind {
	case ReportMemory:
		return nil, nil
	case ReportTaken:
		return nil, t.reportTaken(r)
	case ReportLaunched:
		return nil, t.reportLaunched(r, &a)
	case ReportRefused, ReportFailed:
		return nil, t.reportFailed(r, &a)
	case ReportExited:
		return nil, t.reportExited(r, &a)
	case ReportGone:
		return nil, t.reportGone(r, &a)
	case ReportSeen, ReportMissing, ReportQuiet, ReportHeard, ReportIdle, ReportBusy, ReportDeaf, ReportHears:
		return nil, t.told(r, &a)
	case ReportWork:
		if c := GetCard(t, r.Card); c == nil || c.Run != r.ID {
			return nil, superseded(r)
		}
		t.workLeft(r, &a)
		return nil, nil
	}
	return nil, Errorf(Invalid, "unknown report %q", a.Kind)
}

// findRun is the run that nodes and the fleet speak of.
func (t *tx) findRun(id string) (*Run, *Error) {
	if r := GetRun(t, id); r != nil {
		return r, nil
	}
	return nil, Errorf(NotFound, "no run %q", clip(id, 60))
}

// reportTaken ends the claim's own expiry: from now on the node's contact counts (M-09, M-12).
func (t *tx) reportTaken(r *Run) *Error {
	if r.attached() {
		return nil
	}
	if t.act(r, lease.ActTaken, "").Has(lease.EffectStale) {
		return superseded(r)
	}
	return nil
}

func superseded(r *Run) *Error {
	return Errorf(Refused, "run %s is over (%s)", r.ID, orElse(r.Outcome, "superseded")).WithCheck("superseded")
}

// attached: it was there, and known to be, when it was claimed (SES-28): that its node watches it now is no news.
func (r *Run) attached() bool { return r.Session.Manual && r.Keeps == "" && r.Verdict == "" }

// reportLaunched makes the session's secret known (M-25) and the run running.
func (t *tx) reportLaunched(r *Run, a *Report) *Error {
	if r.attached() {
		return nil
	}
	if t.act(r, lease.ActLaunched, "").Has(lease.EffectStale) {
		return superseded(r) // a stop order stands, or the node will see that its start has left the state
	}
	r.State, r.SecretHash = RunRunning, a.SecretHash
	if r.Keeps == "" || a.PID != 0 {
		r.PID = a.PID
	}
	r.Launched = t.env.Now - max(a.Ago, 0)
	if r.Surface != "pane" || r.Keeps != "" { // the process of a pane is a terminal's: its node tells when the program shows (ReportSeen)
		r.SeenAt = r.Launched
	}
	if a.Session != "" && r.Mode == ModeFresh { // else it is the one it goes on with
		r.SessionID = a.Session
	}
	r.Session.Pane = orElse(a.Pane, r.Session.Pane)
	if a.Workspace != "" {
		r.Workspace = a.Workspace
	}
	t.mailTaken(r)
	if c := GetCard(t, r.Card); c != nil {
		t.came(c, r)
		t.putCard(c)
	}
	return nil
}

// came writes what it means that a run's session came up: it is the slot's, and its
// limits begin to count. The caller stores the card.
func (t *tx) came(c *Card, r *Run) {
	if r.Session.Born == 0 {
		r.Session.Born = r.Launched
	}
	t.cameUp(r)
	t.putRun(r)
	t.putDue(ageDue(r), DueAge, r.ID)
	t.putDue(workDue(r), DueWork, r.ID)
	p := map[string]any{"machine": t.nodeName(r.Node), "pid": r.PID}
	setIf(p, "session_id", r.SessionID)
	setIf(p, "replaces", r.Session.Replaces)
	t.event(c, Event{Kind: sessionEvent(r), Run: r.ID, Payload: jsonOf(p)})
}

// reportFailed is a start that did not happen: refused withdraws the run and is
// no failure of the card (M-12), the rest counts (DSP-14).
func (t *tx) reportFailed(r *Run, a *Report) *Error {
	act := lease.ActFailed
	if a.Kind == ReportRefused {
		act = lease.ActRefused
	}
	r.Error = clip(a.Error, 500)
	if r.attached() { // it came to its end before its node could watch it
		return t.endedLost(r, lease.ActFailed, false, r.Error)
	}
	if a.ResumeFailed && r.Mode == ModeResume {
		return t.ended(r, act, "spawn_failed", resumeFailed(r, r.SessionID, a.Error))
	}
	return t.ended(r, act, "spawn_failed", map[string]any{"error": r.Error, "refused": a.Kind == ReportRefused})
}

// reportExited is the end of the whole tree. Of a run that has its verdict it only
// marks the session gone; otherwise the workflow judges the exit (SUP-10, M-35).
func (t *tx) reportExited(r *Run, a *Report) *Error {
	r.ExitCode, r.Signal, r.Means, r.PeakMB = a.Code, a.Signal, a.Means, a.PeakMB
	if (r.Means == "" || r.Means == "completed") && a.Code != nil && *a.Code == 0 && r.Verd == "explicit" && r.Verdict == "" {
		r.Means = MeansNoVerdict
	}
	r.Error = orElse(clip(a.Error, 500), r.Error)
	t.sessionNamed(r, a.Session)
	t.workLeft(r, a)
	if a.Means == MeansUnseen || a.Means == MeansTerminal {
		return t.endedLost(r, lease.ActExited, a.Means == MeansTerminal && r.SeenAt == 0, orElse(r.Error, exitText(a)))
	}
	if r.Mode == ModeResume && a.Means == MeansNoSession {
		return t.ended(r, lease.ActExited, "spawn_failed", resumeFailed(r, r.SessionID, orElse(a.Error, exitText(a))))
	}
	p := map[string]any{"machine": t.nodeName(r.Node), "error": orElse(clip(a.Error, 500), exitText(a))}
	if p["error"] == "" && r.Means == MeansNoVerdict {
		p["error"] = noVerdict
	}
	if a.Code != nil {
		p["code"] = *a.Code
	}
	setIf(p, "signal", a.Signal)
	setIf(p, "means", r.Means)
	if a.Closed {
		p["closed"] = true
	}
	if a.ResetIn > 0 && a.ResetAt == 0 {
		a.ResetAt = t.env.Now - max(a.Ago, 0) + min(a.ResetIn, maxReset.Milliseconds())
	}
	if a.ResetAt > 0 {
		p["reset_at"] = float64(a.ResetAt) / 1000
	}
	return t.ended(r, lease.ActExited, "exited", p)
}

// noVerdict is what people read of [MeansNoVerdict]: nothing failed, and nothing was said to be done.
const noVerdict = "ended without a verdict: exit code 0, and no word about its card"

func exitText(a *Report) string {
	switch {
	case a.Signal != "":
		return "ended by signal " + a.Signal
	case a.Code == nil:
		return "ended, and left no exit code"
	case *a.Code == 0:
		return ""
	}
	return fmt.Sprintf("exit code %d", *a.Code)
}

func setIf(p map[string]any, key, val string) {
	if val != "" {
		p[key] = val
	}
}

// reportGone answers a stop, or says that a launch is dead: nothing lives.
func (t *tx) reportGone(r *Run, a *Report) *Error {
	t.workLeft(r, a)
	return t.ended(r, lease.ActGone, "spawn_failed", map[string]any{"error": orElse(clip(a.Error, 500), "its start was lost before anything ran"), "refused": true})
}

// ended applies the node's word that nothing of a run lives, and tells the
// workflow when the run had no verdict.
func (t *tx) ended(r *Run, act lease.Act, event string, payload map[string]any) *Error {
	was := r.Gone
	e := t.act(r, act, "")
	switch {
	case e.Has(lease.EffectStale):
		return superseded(r)
	case e.Has(lease.EffectVerdict):
		return t.observed(r, event, payload)
	case was == "" && r.Gone != "":
		t.runEvent(r, "session_gone", map[string]any{"by": r.Gone, "machine": t.nodeName(r.Node)})
	}
	return nil
}

// endedLost applies a word that nothing of a run lives, and that nobody saw how it ended: it is lost, which is no failure
// of its card until it happens again and again (SUP-18, SUP-20).
func (t *tx) endedLost(r *Run, act lease.Act, never bool, why string) *Error {
	was := r.Gone
	e := t.act(r, act, why)
	if e.Has(lease.EffectStale) {
		return superseded(r)
	}
	if was == "" && r.Gone != "" {
		t.runEvent(r, "session_gone", map[string]any{"by": r.Gone, "machine": t.nodeName(r.Node)})
	}
	if !e.Has(lease.EffectVerdict) {
		return nil
	}
	return t.sessionLost(r, never, why)
}

// observed offers an event of the fleet to the workflow. One that no transition
// takes writes nothing (WFL-09); an end that nobody takes is shown as needing a
// person, or the card would wait for a session that is not there.
func (t *tx) observed(r *Run, event string, payload map[string]any) *Error {
	c := GetCard(t, r.Card)
	if c == nil || c.Run != r.ID {
		return nil // no longer current: nothing is written for it (RUN-09, INV-10)
	}
	err := t.platformFire(c, r, event, payload)
	if err == nil || r.Gone == "" {
		return err
	}
	c = GetCard(t, r.Card)
	c.stuck(t, fmt.Sprintf("its session is gone (%s) and the workflow did not take %s: %s", r.Error, event, err.Message))
	t.event(c, Event{Kind: event, Run: r.ID, Payload: jsonOf(payload), Actor: Platform()})
	t.putCard(c)
	return nil
}

// platformFire fires on a fork, so that what was already decided stands when the
// workflow refuses.
func (t *tx) platformFire(c *Card, r *Run, event string, payload map[string]any) *Error {
	b := GetBoard(t, c.Board)
	if b == nil {
		return Errorf(Internal, "card %s has no board", c.ID)
	}
	f := t.fork()
	if _, err := f.fire(b, c, firing{Event: event, Actor: Platform(), Payload: payload, Run: r}); err != nil {
		return err
	}
	t.join(f)
	return nil
}

// observe fires what the leader saw about a run (timed out, offline, ...).
func observe(t *tx) (any, *Error) {
	a, err := args[Observe](t)
	if err != nil {
		return nil, err
	}
	r, err := t.findRun(a.Run)
	if err != nil {
		return nil, err
	}
	if c := GetCard(t, r.Card); c == nil || c.Run != r.ID {
		return nil, Errorf(Conflict, "run %s is no longer current", r.ID).WithCheck("superseded")
	}
	if err := t.observed(r, a.Event, a.Payload); err != nil {
		if err.Check == NoTransition {
			return nil, err
		}
		t.findingFailed(r.Card, a.Event, err)
	}
	return nil, nil
}

func jsonOf(v any) []byte {
	if m, ok := v.(map[string]any); ok && len(m) == 0 {
		return nil
	}
	b, err := json.Marshal(v)
	if err != nil {
		return nil
	}
	return b
}

package workflow

import (
	"reflect"
	"strings"
	"testing"

	"muster/board/rule"
)

// What workflow.md lists under "Actions" loads, each with its argument.
func TestActions(t *testing.T) {
	w := overlay(t, `
on:
  all:
    - do:
        - {claim: {role: implementer, ttl: 900}}
        - {end_run: done_by_hand}
        - {end_run: {outcome: blocked, keep: true}}
        - record_failure
        - {record_failure: {trip: true}}
        - reset_failures
        - {block: {kind: needs_input, reason: 'because {{ payload.why }}'}}
        - unblock
        - {comment: '{{ payload.text }}'}
        - {set: {title: 'payload.title ?? card.title', machine: null}}
        - {ask: {text: 'go on; {{ doors }}', as: asked_again, reset: payload.worked}}
        - {send_to_actor: hello}
        - {notify: managers}
        - {notify: [subscribers, dependants]}
        - {create: {each: payload.children, title: item.title, subtask_of: card.id, link: before}}
        - {create: {title: '"nightly"', start_after: 'next("02:00")', link: after}}
        - {link: {after: payload.on}}
        - {link: {before: '["web-1"]'}}
        - promote_children
        - stop_run
        - close_session
        - {close_session: reviewer}
        - {forget_session: '{{ run.slot }}'}
        - cleanup_workspace
        - declare_agent
        - end_agents
        - {hook: merge}
`)
	do := w.On["all"][0].Do
	var verbs []string
	for _, a := range do {
		verbs = append(verbs, a.Verb())
		if a.At().Line == 0 {
			t.Errorf("%s has no place", a.Verb())
		}
	}
	if got := strings.Join(verbs, " "); got != "claim end_run end_run record_failure record_failure reset_failures block unblock comment set ask send_to_actor notify notify create create link link promote_children stop_run close_session close_session forget_session cleanup_workspace declare_agent end_agents hook" {
		t.Fatalf("verbs: %s", got)
	}
	claim, end, keep, trip := do[0].(*Claim), do[1].(*EndRun), do[2].(*EndRun), do[4].(*RecordFailure)
	if claim.Role != "implementer" || claim.TTL.Source() != "900" || end.Outcome != "done_by_hand" || end.Keep || keep.Outcome != "blocked" || !keep.Keep || !trip.Trip || do[3].(*RecordFailure).Trip {
		t.Errorf("%+v %+v %+v %+v", claim, end, keep, trip)
	}
	scope := rule.Scope{"payload": map[string]any{"why": "w", "children": []any{"a"}}, "card": map[string]any{"title": "t", "id": "web-3"}}
	if s, err := do[6].(*Block).Reason.Render(scope); s != "because w" || err != nil {
		t.Errorf("reason %q %v", s, err)
	}
	set := do[9].(*Set)
	if v, err := set.Fields[0].Expr.Eval(scope); v != "t" || err != nil || set.Fields[1].Name != "machine" {
		t.Errorf("set: %v %v", v, err)
	}
	if v, err := set.Fields[1].Expr.Eval(scope); v != nil || err != nil {
		t.Errorf("machine: null sets %v (%v)", v, err)
	}
	ask := do[10].(*Ask)
	if ask.As != "asked_again" || ask.Reset.Source() != "payload.worked" || do[11].(*Send).Text.Source() != "hello" {
		t.Errorf("ask: %+v", ask)
	}
	if !reflect.DeepEqual(do[12].(*Notify).Whom, []string{"managers"}) || !reflect.DeepEqual(do[13].(*Notify).Whom, []string{"subscribers", "dependants"}) {
		t.Error("notify takes one word or a list")
	}
	create, nightly := do[14].(*Create), do[15].(*Create)
	if create.Link != "before" || create.Each.Source() != "payload.children" || len(create.Fields) != 2 || nightly.Each != nil || nightly.Link != "after" || len(nightly.Fields) != 2 {
		t.Errorf("create: %+v %+v", create, nightly)
	}
	if l := do[16].(*Link); l.After.Source() != "payload.on" || l.Before != nil || do[17].(*Link).Before == nil {
		t.Errorf("link: %+v", l)
	}
	for i, want := range map[int]string{20: "worker", 21: "reviewer"} {
		if slot, _ := do[i].(*Session).Slot.Constant(); slot != want {
			t.Errorf("%s: slot %q, want %s", do[i].Verb(), slot, want)
		}
	}
	if do[26].(*RunHook).Hook != "merge" {
		t.Errorf("hook: %+v", do[26])
	}
}

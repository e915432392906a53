package board

import (
	"encoding/json"
	"fmt"
	"slices"

	"muster/board/workflow"
)

// Effects in the world besides starts, stops and deliveries: orders to the node
// that has the workspace, written by the transaction that wants them and
// answered once (M-17). A key tells a repeat from another one; it holds no time.
const (
	OrderHook    = "hook"    // a command in the card's workspace
	OrderCleanup = "cleanup" // the card's workspace is not needed any more
)

// maxHookText bounds what is kept of a hook's end, in bytes.
const maxHookText = 1500

// HookSpec is a command to be run in a card's workspace (JSON in Order.Spec).
type HookSpec struct {
	Key       string            `json:"key"`
	Name      string            `json:"name"`
	Argv      []string          `json:"argv"`
	Env       map[string]string `json:"env,omitempty"`
	EnvFrom   map[string]string `json:"env_from,omitempty"` // resolved on the executing node (M-24)
	Workspace string            `json:"workspace,omitempty"`
	Timeout   int64             `json:"timeout"` // ms
}

// CleanupSpec is a workspace that may go, if nothing in it is unsaved (M-26).
type CleanupSpec struct {
	Key       string `json:"key"`
	Workspace string `json:"workspace,omitempty"`
}

// putEffect orders an effect of a run's node.
func (t *tx) putEffect(kind string, r *Run, why string, spec any) *Order {
	raw, err := json.Marshal(spec)
	if err != nil { // texts and numbers only
		return nil
	}
	o := &Order{ID: t.orderID(), Node: r.Node, Kind: kind, State: OrderPending, Run: r.ID, Card: r.Card, Slot: r.Slot,
		Era: r.Era, Seq: t.env.Seq, At: t.env.Now, Why: why, Spec: raw}
	t.putOrder(o)
	return o
}

// WorkRun is the newest run of a card that came up: its node has the card's workspace.
func WorkRun(v View, c *Card) *Run {
	last := lastN(v, c)
	for n := last; n > 0 && n+20 > last; n-- {
		if r := GetRun(v, RunID(c.ID, n)); r != nil && r.Launched != 0 {
			return r
		}
	}
	return nil
}

// hook orders a command of the workflow in the card's workspace. The card waits
// for hook_done or hook_failed; if it leaves its status before, the order goes.
func (st *step) hook(a *workflow.RunHook) *Error {
	h, c := st.wf.Hooks[a.Hook], st.c
	r := WorkRun(st.t, c)
	if h == nil || r == nil {
		st.callPerson("hook", fmt.Sprintf("the hook %q has nowhere to run: no session worked this card. Do its work by hand, then move the card on", a.Hook))
		return nil
	}
	spec := HookSpec{Key: "hook/" + c.ID + "/" + EventID(st.ev.ID) + "/" + a.Hook, Name: a.Hook, Workspace: r.Workspace, Timeout: workflow.DefaultHookTimeout * 1000,
		Env: map[string]string{}, EnvFrom: map[string]string{}}
	for _, x := range h.Run {
		s, err := st.s.Render(x)
		if err != nil {
			return st.failed(a, err)
		}
		spec.Argv = append(spec.Argv, s)
	}
	for _, k := range sortedKeys(h.Env) {
		if v := h.Env[k]; v.From != "" {
			spec.EnvFrom[k] = v.From
		} else if s, err := st.s.Render(v.Text); err != nil {
			return st.failed(a, err)
		} else {
			spec.Env[k] = s
		}
	}
	if h.Timeout != nil {
		n, ok, err := st.s.Number(h.Timeout)
		if err != nil {
			return st.failed(a, err)
		}
		if ok {
			spec.Timeout = ms(n)
		}
	}
	st.dropHook()
	o := st.t.putEffect(OrderHook, r, "", &spec)
	c.Hook = OrderKey(o.Node, o.ID)
	st.touched = true
	return nil
}

// dropHook takes back a hook that was not answered.
func (st *step) dropHook() {
	if st.c.Hook != "" {
		st.t.del(TOrder, st.c.Hook)
		st.c.Hook = ""
	}
}

// cleanup orders the card's workspace to be looked at, and cleaned up when nothing in it is unsaved (WFL-21, WSP-03).
func (st *step) cleanup() {
	if r := WorkRun(st.t, st.c); r != nil && r.Workspace != "" {
		st.t.putEffect(OrderCleanup, r, "", &CleanupSpec{Key: "cleanup/" + st.c.ID + "/" + EventID(st.ev.ID), Workspace: r.Workspace})
	}
}

// orderDone takes a node's answer to an order of this file; it is answered once.
func (t *tx) orderDone(a *Report) *Error {
	o := GetOrder(t, t.req.Actor.Node, a.Order)
	if o == nil || !slices.Contains([]string{OrderHook, OrderCleanup}, o.Kind) {
		return Errorf(Refused, "order %q does not stand any more", clip(a.Order, 60)).WithCheck("superseded")
	}
	t.delOrder(o)
	c := GetCard(t, o.Card)
	if c == nil {
		return nil
	}
	switch o.Kind {
	case OrderCleanup:
		kind := "workspace_cleaned"
		if a.Error != "" {
			kind = "workspace_kept"
		}
		p := map[string]any{"machine": t.nodeName(o.Node)}
		setIf(p, "why", clip(a.Error, 500))
		t.event(c, Event{Kind: kind, Actor: Platform(), Payload: jsonOf(p)})
		t.putCard(c)
	case OrderHook:
		return t.hookDone(c, o, a)
	}
	return nil
}

// hookDone tells the workflow how a hook ended. One that the card does not wait for any more says nothing.
func (t *tx) hookDone(c *Card, o *Order, a *Report) *Error {
	if c.Hook != OrderKey(o.Node, o.ID) {
		return nil
	}
	var h HookSpec
	_ = json.Unmarshal(o.Spec, &h) // the order is ours
	c.Hook = ""
	t.putCard(c)
	if r := GetRun(t, o.Run); r != nil {
		t.workLeft(r, a) // it may have brought the work somewhere, or left it half done
		c = GetCard(t, o.Card)
	}
	event, p := "hook_done", map[string]any{"name": h.Name}
	if a.Code != nil {
		p["code"] = *a.Code
	}
	if a.Error != "" || a.Code == nil || *a.Code != 0 {
		event, p["error"] = "hook_failed", orElse(clip(a.Error, maxHookText), exitText(a))
	} else {
		setIf(p, "output", clip(a.Output, maxHookText))
	}
	if err := t.platformFire(c, nil, event, p); err != nil {
		c = GetCard(t, c.ID)
		c.stuck(t, fmt.Sprintf("the workflow did not take %s of the hook %q: %s", event, h.Name, err.Message))
		t.putCard(c)
	}
	return nil
}

package board

import (
	"fmt"
	"slices"
	"strings"

	"muster/board/workflow"
)

// A new version of a workflow meets the cards that are under way (M-22): what
// it no longer has of their statuses, and of the roles and slots of their live
// runs, is mapped by its `migrate`, or the version is refused with the lines to add.

// migration carries the cards of a board over to a workflow.
type migration struct {
	t     *tx
	b     *Board
	was   *flow // before; nil: nobody is told
	fl    *flow
	w     *workflow.Workflow
	roles []string
	slots []string
	any   bool // slots are computed: any name may be one
	look  bool // only count: nothing is written
	moved int
	lost  map[string][]string // "statuses/NAME", "roles/NAME", "slots/NAME" to the cards or runs that have it
}

func (t *tx) migration(b *Board, was *flow) (*migration, *Error) {
	fl, err := t.flow(b)
	if err != nil {
		return nil, err
	}
	m := &migration{t: t, b: b, was: was, fl: fl, w: fl.wf, roles: fl.wf.RunRoles(), lost: map[string][]string{}}
	m.slots, m.any = fl.wf.Slots()
	return m, nil
}

// migrate moves cards out of statuses, and runs out of roles and slots, that
// the new version no longer has, and refuses the version when one is left out.
// Where that is too much for one transaction nothing is moved yet: see [tx.carryAll].
func (t *tx) migrate(b *Board, was *flow) (moved int, later bool, err *Error) {
	f := t.fork()
	m, err := f.migration(b, was)
	if err != nil {
		return 0, false, err
	}
	var cards []*Card // gathered first: what is written moves under a scan
	EachCard(t, b, func(c *Card) bool { cards = append(cards, c); return true })
	for _, c := range cards {
		if m.card(c, nil); !m.look {
			m.look = f.much()
		}
	}
	if len(m.lost) > 0 {
		return 0, false, m.refusal()
	}
	if !m.look {
		t.join(f)
	}
	return m.moved, m.look, nil
}

// status is what a status of before is now: itself, or what `migrate` says; "" when that is not known.
func (m *migration) status(old string) string {
	if m.w.Statuses[old] != nil {
		return old
	}
	return m.w.Migrate[old]
}

// card carries one card over, changed in place; r is its current run if the caller has it, changed in place, too.
// What is not known is noted, and nothing of the card is changed.
func (m *migration) card(c *Card, r *Run) {
	if r == nil || r.ID != c.Run {
		r = GetRun(m.t, c.Run)
	}
	to, before := m.status(c.Status), m.doors(m.was, c, r)
	switch {
	case m.w.Statuses[to] == nil || m.w.HasRun(to) != (c.Run != ""):
		m.miss("statuses", c.Status, c.ID)
		return
	case r != nil && !m.run(c, r, to):
		return
	}
	m.rename(c)
	changed := m.tell(c, r, before, to)
	if c.Previous != "" && m.w.Statuses[c.Previous] == nil {
		c.Previous, changed = m.w.Migrate[c.Previous], true
	}
	if to != c.Status || c.Stored != m.w.StoredAs(to) {
		from := c.Status // where it was before that is as before: it only has another name
		c.Status, c.Stored, changed = to, m.w.StoredAs(to), true
		if m.moved++; !m.look {
			m.t.event(c, Event{Kind: "status", Actor: Platform(), From: from, To: to})
		}
	}
	if changed && !m.look {
		m.t.putCard(c)
	}
}

// run holds a live run against the new version: where it came from, its role and its slot. It says whether all is known.
func (m *migration) run(c *Card, r *Run, to string) bool {
	source, role, slot := m.status(r.Source), r.Role, r.Slot
	if !slices.Contains(m.roles, role) {
		role = m.w.MigrateRoles[role]
	}
	if !m.any && !slices.Contains(m.slots, slot) {
		slot = m.w.MigrateSlots[slot]
	}
	for _, x := range []struct{ kind, old, now string }{{"statuses", r.Source, source}, {"roles", r.Role, role}, {"slots", r.Slot, slot}} {
		if x.now == "" {
			m.miss(x.kind, x.old, r.ID)
		}
	}
	if source == "" || role == "" || slot == "" {
		return false
	}
	if r.Source == source && r.Role == role && r.Slot == slot && r.Status == to && r.Stored == m.w.StoredAs(to) {
		return true
	}
	if r.Source, r.Role, r.Slot, r.Status, r.Stored = source, role, slot, to, m.w.StoredAs(to); m.look {
		return true
	}
	m.t.putRun(r)
	if h := GetHeld(m.t, r.ID); h != nil {
		h.Role, h.Slot, h.Status, h.Stored = role, slot, r.Status, r.Stored
		m.t.putHeld(h)
	}
	return true
}

// rename takes the sessions of a card with them to the new names of their slots, live or not: a card keeps its context.
func (m *migration) rename(c *Card) {
	for _, old := range sortedKeys(m.w.MigrateSlots) {
		if m.look {
			return
		}
		rec, to := GetSlot(m.t, c.ID, old), m.w.MigrateSlots[old]
		if rec == nil || slices.Contains(m.slots, old) || m.t.Has(TSlot, SlotKey(c.ID, to)) {
			continue
		}
		m.t.del(TSlot, SlotKey(c.ID, old))
		rec.Slot = to
		m.t.putSlot(rec)
	}
}

func (m *migration) miss(kind, name, who string) {
	key := kind + "/" + name
	if !slices.Contains(m.lost[key], who) {
		m.lost[key] = append(m.lost[key], who)
	}
}

// refusal names what is lost, who has it, and the lines to add to the file.
func (m *migration) refusal() *Error {
	var what []string
	for _, key := range sortedKeys(m.lost) {
		kind, name, _ := strings.Cut(key, "/")
		noun := map[string]string{"statuses": "status", "roles": "role", "slots": "slot"}[kind]
		what = append(what, fmt.Sprintf("%s %s (%s)", noun, name, someOf(m.lost[key], 5)))
	}
	return Errorf(Refused, "board %s: the new workflow does not say what becomes of %s", m.b.Slug, strings.Join(what, "; ")).
		WithCheck("migrate").WithHint("%s", m.lines())
}

// lines are what to add to the file. Where one name fits it is written, else the choice is left to a person.
func (m *migration) lines() string {
	var b strings.Builder
	b.WriteString("add to the file, and choose where a name stands in capitals:\nmigrate:")
	for _, key := range sortedKeys(m.lost) {
		kind, name, _ := strings.Cut(key, "/")
		switch kind {
		case "statuses":
			to, why := m.fitting(name, m.lost[key])
			fmt.Fprintf(&b, "\n  %s: %s   # %s", name, to, why)
		case "roles":
			fmt.Fprintf(&b, "\n  roles: {%s: %s}", name, oneOr(m.roles, "ROLE"))
		case "slots":
			fmt.Fprintf(&b, "\n  slots: {%s: %s}", name, oneOr(m.slots, "SLOT"))
		}
	}
	return b.String()
}

// fitting is the status to which those of a lost one may go.
func (m *migration) fitting(old string, who []string) (to, why string) {
	needsRun, stored := false, ""
	for _, id := range who {
		c := GetCard(m.t, id)
		if c != nil && c.Status == old {
			needsRun, stored = c.Run != "", c.Stored
		}
	}
	var fit, alike []string
	for _, name := range m.w.Order {
		if m.w.HasRun(name) != needsRun {
			continue
		}
		fit = append(fit, name)
		if m.w.StoredAs(name) == stored {
			alike = append(alike, name)
		}
	}
	why = "a status without a run"
	if needsRun {
		why = "a status with a run: its session goes on"
	}
	if len(alike) == 1 {
		return alike[0], why
	}
	return oneOr(fit, "STATUS"), why + ": " + strings.Join(fit, ", ")
}

func oneOr(names []string, other string) string {
	if len(names) == 1 {
		return names[0]
	}
	return other
}

func someOf(list []string, n int) string {
	if len(list) <= n {
		return strings.Join(list, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(list[:n], ", "), len(list)-n)
}

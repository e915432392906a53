package workflow

import (
	"fmt"
	"slices"

	"muster/board/rule"
)

// fleetParams are parameters that the fleet reads by name, whatever a file's expressions read (workflow.md).
var fleetParams = []string{"rate_limit_cooldown", "guard_auth", "guard_success", "guard_pr", "idle_interval", "round", "session_profiles"}

// unread tells of parameters of the file itself that nothing reads: mostly one of another name is meant, which then keeps
// its own value without a word.
func (d *decoder) unread(params *node) (found []Finding) {
	if params == nil || params.kind != mapNode || d.reads["*"] {
		return nil
	}
	for _, e := range params.entries {
		if e.value.pos.File != "" || d.reads[e.key] || slices.Contains(fleetParams, e.key) {
			continue
		}
		others := slices.DeleteFunc(sortedSet(d.params), func(n string) bool { return n == e.key || !d.reads[n] && !slices.Contains(fleetParams, n) })
		pos := e.pos
		if pos.File != "" { // the key as what it extends has it
			pos = e.value.pos
		}
		found = append(found, Finding{Pos: pos, Severity: Warning, Check: "unread-param", Path: join("params", e.key),
			Message: "nothing reads params." + e.key + rule.Suggest(e.key, others), Advice: "correct its name, or remove it"})
	}
	return found
}

// A Player is a role that a parameter gives to a profile which the workflow does not have.
type Player struct{ Role, Param, Profile string }

func (p *Player) String() string {
	return fmt.Sprintf("params.%s gives role %s to profile %s, which there is not", p.Param, p.Role, shown(p.Profile))
}

// StrangePlayers lists what parameters give to profiles that are not there, by role: for a card that names nobody.
func (w *Workflow) StrangePlayers(params map[string]any) (list []Player) {
	for _, role := range sortedNames(w.Roles) {
		e := w.Roles[role]
		known := map[string]any{"card.assignee": nil}
		for _, n := range e.Names() {
			if p, ok := paramOf(n); ok && simple(params[p]) {
				known[n] = params[p]
			}
		}
		v, constant := e.With(known).Constant()
		name, ok := v.(string)
		if !constant || !ok || name == "" || w.Profiles[name] != nil {
			continue
		}
		for _, n := range e.Names() {
			if p, ok := paramOf(n); ok && params[p] == v {
				list = append(list, Player{role, p, name})
				break
			}
		}
	}
	return list
}

// players tells of roles whose defaults name a profile that is not there.
func (l *linter) players() {
	for _, p := range l.w.StrangePlayers(l.w.Defaults) {
		l.add(l.w.paramAt[p.Param], Error, "unknown-profile", join("params", p.Param), p.String()+rule.Suggest(p.Profile, sortedNames(l.w.Profiles)),
			"add it under profiles:, or name one that is there; null: nobody")
	}
}

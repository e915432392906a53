package sim

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// Caps of the boards of a history.
const (
	maxRunning = 6
	maxFleet   = 7
)

// Workflow is that of the board where the work is done.
var Workflow = fmt.Sprintf(`
version: 1
name: web
extends: default
params: {reviewer: rev, lease: 12, grace: 2, failure_limit: 3, block_limit: 4, max_running: %d, max_fleet: %d, auto_decompose: false,
  rate_limit_cooldown: 4, guard_auth: 4, guard_success: 0, guard_pr: 0}
harnesses:
  bot: {headless: {fresh: [sh, '{{ brief }}'], resume: [sh, again, '{{ session.id }}']}, session: minted, exit: {75: rate_limit}, verdict: explicit}
profiles:
  sh: {harness: command, args: [sh, -c, work]}
  two: {parent: sh, capacity: 2}
  agent: {harness: command, verdict: explicit, args: [agent]}
  bot: {harness: bot, fallback: [agent]}
  rev: {harness: command, verdict: explicit, args: [review]}
`, maxRunning, maxFleet)

// Lab is the workflow of the board where rules of every kind are tried on cards, and other versions of it are saved.
var Lab = lab(0)

// probes are guards of which none holds: each is looked at when somebody probes a card.
var probes = []string{
	`len(payload.list) > 30 && any(payload.list, # == "z")`,
	`all(payload.list, # != "q") && none(payload.list, # == "r") && count(payload.list, # == "a") > 7`,
	`len(filter(payload.nums, # > 2)) == 99 || count(payload.list) > 99`,
	`min(payload.nums) > 100 || max(1, payload.n, 3) > 1000000 || max(payload.nums) > 1000 || min(5, payload.n) > 7 || abs(payload.n - 5) > 100000`,
	`lower(card.title) startsWith "zz" || upper(card.title) endsWith "QQ" || trim(card.title) contains "never"`,
	`card.title matches "^never[0-9]+$"`,
	`payload.n in [77777, 88888] || card.kind in ["x", "y"] || "never" in card.labels || payload.word in payload.list && false`,
	`payload.n % 7 == 9 || payload.n * 2 / 3 - 1 > 1e9 || -payload.n > 5000000 || +payload.n > 1e9`,
	`not (card.priority < 1000000) || !(card.failures < 1000)`,
	`card.start_after != nil && now - card.start_after > 100000000 || next("02:00") < now || next("03:30", "Europe/Berlin") < now`,
	`now - card.created_at > 100000000 || card.created_at > now && card.created_at > next("02:00")`,
	`(card.labels.area ?? "none") == "never" || (params.tier ?? 3) > 9`,
	`(card.blocks["needs_input"] ?? 0) > 500 || card.subtasks_open > 99 || card.runs > 9999`,
	`card.session_live && card.creator == "run" && actor.name == "" && card.last_outcome == "never"`,
	`run.machine == "none" || run.outcome == "never" || run.source == "never" || profile.name == "zz" || machine.name == "zz" || machine.labels.tier == "gold"`,
	`payload.word + "x" == "never" || payload.word contains "never" || payload.word endsWith "!!" || payload.map.a.b == "never" || payload.list[0] == "never"`,
	`card.assignee == "nobody" || card.model == "never" || card.max_retries == 99 || card.goal_mode && card.goal_max_turns == 99 || card.subtask_of == "none"`,
	`{"a": 1, "b": [1, 2, 3]}.a == 2 || [1, 2, 3][1] == 9 || len({"a": 1}) == 4`,
	`card.parents_done && card.due && card.finished && card.previous == "never" || card.body contains "never seen" || "sql" in card.skills && card.skills == []`,
}

// lab is one of the versions of the board where things are tried: they differ in their statuses, so that cards are carried over.
func lab(version int) string {
	var b strings.Builder
	room := []string{"shelved", "parked", "resting"}[version%3]
	fmt.Fprintf(&b, "version: 1\nname: lab\nextends: board:web\nparams: {tier: %d}\n", version%4)
	if version > 0 {
		fmt.Fprintf(&b, "migrate: {%s: %s}\n", []string{"shelved", "parked", "resting"}[(version+2)%3], room)
	}
	fmt.Fprintf(&b, `statuses:
  %[1]s:
    stored_as: blocked
    on:
      back: [{by: [manager], target: todo, do: [unblock, reset_failures]}]
on:
  shelve:
    - by: [manager]
      guard: card.run == nil && not card.finished
      validators: [{when: card.priority > 900, refuse: '{{ card.id }} is too urgent for that: {{ card.priority }}'}]
      target: %[1]s
      do: [{block: {kind: '{{ payload.kind ?? "shelved" }}', reason: 'for later, said {{ actor.name }}'}}, {notify: [subscribers, creator, dependants, managers]}]
  rename: [{by: [manager], guard: not card.finished, do: [{set: {title: 'payload.word ?? card.title', body: 'card.body', priority: 'card.priority + 1', machine: 'nil'}}]}]
  grow:
    - by: [manager]
      guard: not card.finished
      do: [{create: {title: '"after " + card.title', assignee: '"sh"', link: after}}, {notify: subscribers}, promote_children]
  tell: [{by: [manager], do: [{send_to_actor: 'about {{ card.id }}: {{ payload.word }}'}, {comment: '{{ payload.word }} {{ len(payload.list) }}'}]}]
  tie: [{by: [manager], guard: card.run == nil && not card.finished, do: [{link: {after: payload.list}}]}]
  nudge: [{by: [manager], do: [{ask: {text: 'go on with {{ card.id }}', as: nudged, reset: payload.n > 2}}]}]
  wipe: [{by: [manager], do: [{close_session: worker}, {forget_session: worker}, reset_failures, end_agents]}]
  break_off: [{by: [manager], guard: card.run != nil, do: [stop_run]}]
  probe:
`, room)
	for i, guard := range probes {
		fmt.Fprintf(&b, "    - {by: [manager], guard: '%s', do: [{comment: 'probe %d'}]}\n", strings.ReplaceAll(guard, "'", "''"), i)
	}
	b.WriteString("    - {by: [manager], do: [{comment: 'nothing of it holds'}]}\n")
	return b.String()
}

// spoil changes a file in one to three places, as people who edit it do.
func spoil(rng *rand.Rand, text string) string {
	lines := strings.Split(text, "\n")
	for range 1 + rng.IntN(3) {
		at := rng.IntN(len(lines))
		words := strings.Fields(lines[at])
		switch k := rng.IntN(7); {
		case k == 0:
			lines = append(lines[:at], lines[at+1:]...)
		case k == 1:
			lines[at] = "  " + lines[at]
		case k == 2:
			lines[at] = strings.TrimPrefix(lines[at], "  ")
		case k == 3:
			lines[at] += "\n" + lines[rng.IntN(len(lines))]
		case len(words) == 0:
		case k == 4:
			lines[at] = strings.Replace(lines[at], words[rng.IntN(len(words))], spoilers[rng.IntN(len(spoilers))], 1)
		default:
			other := strings.Fields(lines[rng.IntN(len(lines))])
			if len(other) > 0 {
				lines[at] = strings.Replace(lines[at], words[rng.IntN(len(words))], other[rng.IntN(len(other))], 1)
			}
		}
	}
	return strings.Join(lines, "\n")
}

// spoilers are words that do not belong where they come to stand.
var spoilers = []string{"{{", "}}", "'", "[", "nil", "null", "-1", "99999999999", "true", "card.", "card.titel", "payload.n +", "len()", "any(card.labels, #)", "next()", "&", "*x", "!!binary x",
	"{a: 1}", "running", "no_such_status", "1.5", "\"2 + 2\"", "matches \"(\"", "respawn_guard", "end_run", "claim", "guard:", "target:", "params.none", "card.title > 3", "not 3", "statuses:", "extends:"}

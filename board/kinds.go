package board

import (
	"slices"

	"muster/board/workflow"
)

// recorded are the kinds of events that the board writes by itself, beside those
// that are the workflow's and the fleet's.
var recorded = []string{
	"created", "edited", "linked", "unlinked", "assigned", "fallback", "claimed", "commented", "deferred", "gave_up", "status", "put", "moved", "forgotten", "planted",
	"session_started", "attached", "typed", "detached", "shell_opened", "shell_closed", "session_gone", "session_waits", "message", "undelivered", "agent_declared", "agent_assigned", "agent_released", "agent_ended", "agent_memory", "agent_memory_kept", "agent_memory_failed", "agent_memory_restored", "org_set", "org_lent", "webhook_set", "webhook_ended",
	"board_created", "board_applied", "board_set", "board_imported", "board_migrated", "doors_changed", "paused", "resumed", "node_draining", "node_undrained",
	"fleet_recovered", "format_raised", "fleet_restored", "run_lost", "run_restored",
	"fleet_made", "node_removed", "gossip_rotated", "node_joined", "node_up", "node_set", "node_labelled", "node_vote", "node_role", "node_online", "node_offline", "token_made", "token_revoked", "token_used_up",
}

// EventKinds are all kinds of events that there can be on boards with these workflows, sorted.
func EventKinds(flows ...*workflow.Workflow) []string {
	kinds := slices.Concat(recorded, workflow.PlatformEvents)
	for _, w := range flows {
		kinds = appendKinds(kinds, w.On)
		for _, s := range w.Statuses {
			kinds = appendKinds(kinds, s.On)
		}
	}
	slices.Sort(kinds)
	return slices.Compact(kinds)
}

func appendKinds(kinds []string, on map[string][]*workflow.Transition) []string {
	for event, list := range on {
		kinds = append(kinds, event)
		for _, tr := range list {
			for _, a := range tr.Do {
				if ask, ok := a.(*workflow.Ask); ok && ask.As != "" {
					kinds = append(kinds, ask.As)
				}
			}
		}
	}
	return kinds
}

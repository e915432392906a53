package cli

import (
	"net/url"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

// agentMemory shows the snapshots of an agent's folder, and takes it back to one.
func (a *app) agentMemory() *cobra.Command {
	c := verb("memory AGENT log|restore [HASH]", "the snapshots of an agent's folder", 2, 3, func(c *cobra.Command, args []string) error {
		switch {
		case args[1] == "log" && len(args) == 2:
			ans, err := a.get(c.Context(), "/v1/agents/"+url.PathEscape(args[0]), nil)
			return show(a, ans, err, func(d api.AgentDetail) (ids []string) {
				for _, m := range d.Memories {
					ids = append(ids, m.Hash)
				}
				return ids
			}, a.printMemories)
		case args[1] == "restore" && len(args) == 3:
			ans, err := a.do(c.Context(), board.VAgentMemory, board.AgentMemory{Agent: args[0], Hash: args[2]})
			return show(a, ans, err, agentIDs, func(x agentAnswer) {
				a.printf("%s begins its next session with that snapshot\n", oneLine(x.ID))
			})
		}
		return usagef("use: muster agent memory AGENT log, or: muster agent memory AGENT restore HASH")
	})
	c.Long = "The snapshots of an agent's folder, which its sessions find in MUSTER_AGENT_HOME.\n\n" +
		"log lists those that its sessions began or ended with, the newest first; restore takes the folder back to one of\n" +
		"them: the agent's next session begins with it. The bytes are on the machines that took or used a snapshot, and go\n" +
		"from there to the one that starts the next session; a snapshot has at most 256 MB and 10,000 files."
	return c
}

func (a *app) printMemories(d api.AgentDetail) {
	t := a.table("SNAPSHOT", "SIZE", "FILES", "RUN", "MACHINE", "TAKEN")
	for i, m := range d.Memories {
		mark := ""
		if i == 0 && d.Memory != nil {
			mark = " *"
		}
		t.row(m.Hash[:min(12, len(m.Hash))]+mark, sizeText(m.Bytes), m.Files, m.Run, m.Node, a.since(m.At)+" ago")
	}
	t.print(a.io.Out)
}

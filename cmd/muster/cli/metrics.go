package cli

import (
	"github.com/spf13/cobra"

	"muster/board"
)

// metricsCmd shows a node's figures, for a person and for what collects text files.
func (a *app) metricsCmd() *cobra.Command {
	c := verb("metrics", "this node's figures, as Prometheus reads them", 0, 0, func(c *cobra.Command, _ []string) error {
		if a.json {
			return usagef("metrics has one form, that of Prometheus; for programs see also: muster status --json")
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		text, err := cl.Text(c.Context(), "/metrics")
		if err != nil {
			return err
		}
		if len(text) == 0 {
			return board.Errorf(board.Internal, "the node showed no figures")
		}
		a.printf("%s", text)
		return nil
	})
	c.Long = `this node's figures, as Prometheus reads them

With muster up --metrics 127.0.0.1:7190 a Prometheus on this machine scrapes http://127.0.0.1:7190/metrics. What it cannot
reach can be written for node_exporter's textfile collector: muster metrics > muster.prom. See docs/monitoring.md.`
	return c
}

package cli

import (
	"io"
	"sync"

	"github.com/spf13/cobra"

	"muster/cmd/muster/api"
	"muster/cmd/muster/mcp"
)

// mcpCmd serves an agent on stdin and stdout until it hangs up.
func (a *app) mcpCmd() *cobra.Command {
	c := verb("mcp", "tools for an agent, by the Model Context Protocol on stdin and stdout", 0, 0, func(c *cobra.Command, _ []string) error {
		if a.json || a.quiet {
			return usagef("mcp speaks its own protocol: leave --json and -q out")
		}
		cfg := mcp.Config{Client: a.freshClient(), Session: a.inSession(), Board: a.board, Version: a.deps.Version}
		if _, err := cfg.Client(); err != nil { // what is wrong with the call is told now, to who set it up
			return err
		}
		if cfg.Session {
			cfg.Card, cfg.Role = a.io.Env("MUSTER_CARD"), a.io.Env("MUSTER_ROLE")
		}
		in, ok := a.io.In.(io.ReadCloser)
		if !ok {
			in = io.NopCloser(a.io.In)
		}
		return mcp.Serve(c.Context(), cfg, in, unclosed{a.io.Out})
	})
	c.Long = `tools for an agent, by the Model Context Protocol on stdin and stdout

Inside a session the tools act with the run's secret: show, comment, heartbeat, block, request_review, request_changes,
complete, specify, decompose, create, list and why, on its own card unless another of its board is named. Elsewhere they act
with your rights, on all boards, and there are more: what needs a person, the fleet, logs, and verbs of managers.`
	c.Example = `  claude mcp add muster -- muster mcp
  codex mcp add muster -- muster mcp
  muster mcp --node 192.0.2.7:7100 --token-file ~/muster.token`
	return c
}

type unclosed struct{ io.Writer }

func (unclosed) Close() error { return nil }

// freshClient gives the client of a call that is made now: a session's secret is
// another one when it goes on with another run.
func (a *app) freshClient() func() (*api.Client, error) {
	var mu sync.Mutex
	var last *api.Client
	return func() (*api.Client, error) {
		mu.Lock()
		defer mu.Unlock()
		if a.node != "" && last != nil {
			return last, nil
		}
		a.cl = nil
		c, err := a.client()
		if err != nil {
			return nil, err
		}
		if !a.timeoutSet {
			c.Timeout = mcp.CallTime
		}
		if last != nil && last.Auth == c.Auth && last.Socket == c.Socket {
			return last, nil
		}
		last = c
		return c, nil
	}
}

package cli

import (
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"muster/cmd/muster/api"
)

func (a *app) webCmd() *cobra.Command {
	var stay bool
	c := verb("web", "the board in your browser", 0, 0, func(c *cobra.Command, _ []string) error {
		if a.node != "" || a.inSession() {
			return usagef("muster web: a page is opened on the machine that shows it, by a person (on another: ssh -L, or its --http with a token)")
		}
		cl, err := a.client()
		if err != nil {
			return err
		}
		x, err := api.Decode[api.WebLogin](cl.Post(c.Context(), "/v1/web", struct{}{}))
		if err != nil {
			return err
		}
		switch {
		case a.json:
			a.printJSON(map[string]any{"v": api.Version, "data": x})
			return nil
		case a.quiet:
			a.printf("%s\n", x.URL)
			return nil
		}
		if !stay && a.browse(x.File) {
			a.printf("opening %s in your browser; if nothing comes up, open this (good once, for two minutes):\n", oneLine(x.Page))
		} else {
			a.printf("open this in a browser on this machine (good once, for two minutes):\n")
		}
		a.printf("  %s\n", oneLine(x.URL))
		return nil
	})
	c.Flags().BoolVar(&stay, "no-open", false, "only print the address")
	c.Long = `the board in your browser

The page is served by this machine's own node, on loopback. The address that is printed lets a browser in once; the page then
stays let in for a week, also over restarts of the node, as the user of this node's socket. Every node has its own page of the
same boards. From elsewhere: ssh -L PORT:127.0.0.1:PORT, or start the node with --http, --http-cert and --http-key, and paste a token.`
	return c
}

// browse has this desktop open a file, and tells whether there is something that might.
func (a *app) browse(file string) bool {
	program := "xdg-open"
	if runtime.GOOS == "darwin" {
		program = "open"
	} else if a.io.Env("DISPLAY") == "" && a.io.Env("WAYLAND_DISPLAY") == "" {
		return false
	}
	if !a.io.Terminal {
		return false
	}
	path, err := exec.LookPath(program)
	return err == nil && exec.Command(path, file).Start() == nil
}

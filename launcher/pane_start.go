package launcher

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"time"

	"muster/launcher/tmux"
)

// Panes is the tmux server of a data folder, for who shows its panes; an error
// says why this machine opens none.
func Panes(data string, env []string) (*tmux.Server, error) {
	program, err := tmux.Find("")
	if err != nil {
		return nil, err
	}
	return tmux.New(tmux.Config{Dir: filepath.Join(data, "tmux"), Program: program, Env: env}), nil
}

// openPanes finds what opens panes, when the keepers are real ones.
func (c *Config) openPanes() {
	k, ok := c.Runner.(*Keepers)
	if !ok {
		return
	}
	if k.Panes, c.noPanes = Panes(c.Dir, keeperEnv(c.Env)); c.noPanes == nil {
		c.panes = k.Panes
	}
}

// keeperEnv is the environment of the tmux server, and so of the keepers in it: a
// terminal's, and no secret of the node. A session gets one of its own.
func keeperEnv(env []string) []string {
	out := []string{"TERM=" + paneTerm, "GOMAXPROCS=1"}
	for _, kv := range env {
		key, _, _ := strings.Cut(kv, "=")
		switch key {
		case "PATH", "HOME", "USER", "LOGNAME", "LANG", "TZ", "TMPDIR", "LC_ALL", "LC_CTYPE":
			out = append(out, kv)
		}
	}
	return out
}

// paneTerm is what a pane's terminal understands (TERM).
const paneTerm = "screen-256color"

// HasPanes tells whether this machine opens terminal panes.
func (r *Reconciler) HasPanes() bool { return r.cfg.panes != nil }

// refusePane says why a run with a pane is not started here, "" when it is.
func (r *Reconciler) refusePane() string {
	if r.HasPanes() {
		return ""
	}
	return fmt.Sprintf("%s opens no terminal panes: %v", r.cfg.Name, cmp.Or(r.cfg.noPanes, errors.New("its sessions are not real ones")))
}

// paneWait bounds how long a keeper in a new pane may take to come up.
const paneWait = 10 * time.Second

// startPane makes a keeper in a new pane: tmux starts it, and it calls this process.
func (k *Keepers) startPane(dir string, spec *Spec) (Session, error) {
	if k.Panes == nil {
		return nil, errors.New("there is no tmux here")
	}
	ctx, cancel := context.WithTimeout(context.Background(), paneWait)
	defer cancel()
	if s := k.takePane(ctx, dir, spec); s != nil {
		k.warmPane()
		return s, nil
	}
	l, err := listenFolder(dir, fileCall)
	if err != nil {
		return nil, fmt.Errorf("keeper of %s: %w", dir, err)
	}
	defer l.Close()
	if _, err := k.Panes.New(ctx, spec.Run, spec.Run, []string{k.Binary, KeepVerb, dir}); err != nil {
		return nil, err
	}
	c, err := acceptKeeper(l)
	if err != nil {
		return nil, err
	}
	k.warmPane()
	return newLink(c.Conn, bufio.NewReader(c.Conn), c.keeper), nil
}

package cli

import (
	"context"
	"fmt"
	"hash/fnv"
	"os"
	"os/user"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/service"
)

// serviceFlags are what the three verbs share.
type serviceFlags struct {
	system bool
	user   string
}

func (f *serviceFlags) add(c *cobra.Command) {
	c.Flags().BoolVar(&f.system, "system", false, "of the system, which starts it with the machine (as root)")
	c.Flags().StringVar(&f.user, "user", "", "with --system: who the node runs as (default: who called sudo)")
}

func (a *app) serviceCmd() *cobra.Command {
	c := group("service", "start this machine's node with the machine", a.serviceInstallCmd(), a.serviceUninstallCmd(), a.serviceStatusCmd())
	c.Long = `start this machine's node with the machine, by systemd or launchd

A service is a node's: that of --data, or of ~/.muster. However it ends or is started anew, its sessions go on and are taken up again.`
	return c
}

func (a *app) serviceInstallCmd() *cobra.Command {
	f, start := &serviceFlags{}, true
	c := verb("install [-- FLAGS-OF-UP...]", "let the machine start the node, now and from then on", 0, -1, func(c *cobra.Command, args []string) error {
		m, s, err := a.service(f, args)
		if err != nil {
			return err
		}
		running := a.answers(c.Context())
		if running && start {
			if st, err := m.Status(c.Context(), s); err != nil || st.PID == "" { // by hand: two would not start
				start = false
			}
		}
		if err := m.Install(c.Context(), s, start); err != nil {
			return err
		}
		st, err := m.Status(c.Context(), s)
		if err != nil {
			return err
		}
		return a.told(st, func() {
			a.printf("%s is installed (%s)\n", oneLine(st.Name), oneLine(st.File))
			switch {
			case start:
				a.printf("  it is %s\n", orDash(st.Active))
			case running:
				a.printf("  a node that was started by hand runs in %s: it goes on, and the service takes over when that is stopped and this said once more\n", oneLine(s.Data))
			}
			a.lingering(st)
		})
	})
	f.add(c)
	c.Flags().BoolVar(&start, "start", true, "start it now, too")
	c.Example = `  muster service install
  muster service install -- --listen 192.0.2.7:7100 --metrics 127.0.0.1:7190
  sudo muster --data /home/ann/.muster service install --system --user ann`
	return c
}

func (a *app) serviceUninstallCmd() *cobra.Command {
	f := &serviceFlags{}
	c := verb("uninstall", "stop the node, and do not start it with the machine any more", 0, 0, func(c *cobra.Command, _ []string) error {
		m, s, err := a.service(f, nil)
		if err != nil {
			return err
		}
		before, err := m.Status(c.Context(), s)
		if err != nil {
			return err
		}
		if !before.Installed {
			return a.told(before, func() { a.printf("%s is not installed (%s)\n", oneLine(before.Name), oneLine(before.File)) })
		}
		if err := m.Uninstall(c.Context(), s); err != nil {
			return err
		}
		after, err := m.Status(c.Context(), s)
		if err != nil {
			return err
		}
		return a.told(after, func() {
			a.printf("%s is uninstalled; its sessions go on until their lease ends, and %s is as it was\n", oneLine(s.Name), oneLine(s.Data))
		})
	})
	f.add(c)
	return c
}

func (a *app) serviceStatusCmd() *cobra.Command {
	f := &serviceFlags{}
	c := verb("status", "whether the machine starts the node, and how that stands", 0, 0, func(c *cobra.Command, _ []string) error {
		m, s, err := a.service(f, nil)
		if err != nil {
			return err
		}
		st, err := m.Status(c.Context(), s)
		if err != nil {
			return err
		}
		return a.told(st, func() {
			if !st.Installed {
				a.printf("%s is not installed (%s)\n", oneLine(st.Name), oneLine(st.File))
				return
			}
			enabled := "does not start with the machine"
			if st.Enabled {
				enabled = "starts with the machine"
			}
			a.printf("%s of %s is %s, and %s\n", oneLine(st.Name), oneLine(s.Data), orDash(st.Active), enabled)
			a.lingering(st)
		})
	})
	f.add(c)
	return c
}

// told prints what is there now, in the form that was asked for.
func (a *app) told(st service.State, say func()) error {
	switch {
	case a.json:
		a.printJSON(map[string]any{"v": api.Version, "data": st})
	case a.quiet:
		a.printf("%s\n", st.Name)
	default:
		say()
	}
	return nil
}

// lingering hints at what ends a user's service.
func (a *app) lingering(st service.State) {
	switch {
	case st.Manager == "systemd" && !st.System && st.Linger != "yes":
		a.printf("  it starts with your first login and ends with your last one; to let it start with the machine and stay: loginctl enable-linger\n")
	case st.Manager == "launchd" && !st.System:
		a.printf("  it starts with your login and ends with it; for a machine that stays on: sudo muster --data DIR service install --system --user YOU\n")
	}
}

// answers tells whether a node runs in the data folder.
func (a *app) answers(ctx context.Context) bool {
	cl, err := a.client()
	if err != nil {
		return false
	}
	_, err = cl.Get(ctx, "/v1/info", nil)
	return err == nil
}

// service is the manager of this machine, and the node as a service of it.
func (a *app) service(f *serviceFlags, args []string) (*service.Manager, service.Spec, error) {
	none := service.Spec{}
	if a.node != "" {
		return nil, none, usagef("service is about this machine: leave --node out")
	}
	for _, w := range args {
		switch name, _, _ := strings.Cut(w, "="); name {
		case "--join", "--token-file", "--detach", "--data":
			return nil, none, usagef("%s is not for a service: join first (muster join), then install it; the folder is that of muster --data", name)
		}
	}
	if f.user != "" && !f.system {
		return nil, none, usagef("--user goes with --system: a service of yours runs as you")
	}
	binary, err := os.Executable()
	if err != nil {
		return nil, none, fmt.Errorf("this program's own file: %w", err)
	}
	m := &service.Manager{OS: runtime.GOOS, UID: os.Getuid(), Home: a.io.Env("HOME"), Config: a.io.Env("XDG_CONFIG_HOME"), Run: service.Command}
	s := service.Spec{Binary: binary, Args: args, Path: a.io.Env("PATH"), System: f.system}
	if f.system {
		if s.User = orElse(f.user, a.io.Env("SUDO_USER")); s.User == "" {
			return nil, none, usagef("who is the node to run as? give --user NAME: its sessions have all the rights of that user")
		}
		u, err := user.Lookup(s.User)
		if err != nil {
			return nil, none, board.Errorf(board.NotFound, "there is no user %q on this machine", s.User)
		}
		s.Home = u.HomeDir
		if a.data == "" && a.io.Env("MUSTER_HOME") == "" {
			a.data = filepath.Join(u.HomeDir, ".muster")
		}
	}
	if s.Data, err = a.home(); err != nil {
		return nil, none, err
	}
	s.Name = serviceName(s.Data, runtime.GOOS)
	if slices.ContainsFunc(append([]string{s.Data, s.Binary, s.Path}, args...), func(w string) bool { return strings.ContainsAny(w, "\n\r\x00") }) {
		return nil, none, usagef("a service's words cannot hold a line break")
	}
	return m, s, nil
}

// serviceName tells nodes of one machine apart by their folders.
func serviceName(data, system string) string {
	name := "muster"
	if system == "darwin" {
		name = "org.muster.node"
	}
	if filepath.Base(data) == ".muster" {
		return name
	}
	h := fnv.New32a()
	h.Write([]byte(data))
	safe := strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '-' {
			return r
		}
		return -1
	}, filepath.Base(data))
	return fmt.Sprintf("%s-%s-%06x", name, clip(orElse(safe, "node"), 30), h.Sum32()&0xffffff)
}

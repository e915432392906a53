package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"muster/cmd/muster/api"
)

// UpOptions is all that the flags of up and join say.
type UpOptions struct {
	Data, Name        string
	Listen, Advertise string
	Token             string
	Labels            map[string]string
	Slots             int64
	Repos             map[string]string // names of repositories on this machine
	Ports             [2]int            // first and last that cards are given
	Replica           bool
	Local             string // what users of this machine's socket may be at most
	Timers            string
	Metrics           string // IP:PORT on loopback, for Prometheus
	Verbose           bool
	HTTP              string         // where the page listens; "" is loopback, "off" nowhere
	HTTPNames         []string       // by which browsers may reach it
	HTTPCert, HTTPKey string         // files, PEM
	LogFile           string         // "": stderr
	Progress          func(string)   // what a person who waits reads
	Ready             func(api.Info) // the doors are open
}

// upFlags are the flags that up and join share.
type upFlags struct {
	o          UpOptions
	labels     []string
	repos      []string
	ports      string
	detach     bool
	progressFD int
}

func (u *upFlags) add(c *cobra.Command) {
	f := c.Flags()
	f.StringVar(&u.o.Name, "name", "", "name of this machine in the fleet (default: its host name)")
	f.StringVar(&u.o.Listen, "listen", "", "IP:PORT for other nodes (default: that of the last start, else a free port on loopback)")
	f.StringVar(&u.o.Advertise, "advertise", "", "IP:PORT told to other nodes, when it is not what --listen says")
	f.StringArrayVar(&u.labels, "label", nil, "k=v, as often as you like, for as long as it runs; what stays: muster node label")
	f.Int64Var(&u.o.Slots, "slots", 0, "sessions at once (default: by memory, 2 to 8)")
	f.StringArrayVar(&u.repos, "repo", nil, "NAME=PATH-OR-URL of a repository that worktrees are made of, as often as you like (also in node.yaml of the data folder)")
	f.StringVar(&u.ports, "ports", "", "A-B: ports of this machine that cards are given, ten each (default: 20000-29999)")
	f.BoolVar(&u.o.Replica, "replica", false, "keep a copy, never vote")
	f.StringVar(&u.o.Local, "local-role", "", "what users of this machine's own socket may be at most: manager, member, viewer or none (also local in node.yaml)")
	f.StringVar(&u.o.Timers, "timers", "", "lan or wan")
	f.StringVar(&u.o.HTTP, "http", "", "IP:PORT of the board in the browser, or off (default: loopback, on the port of the last start, else a free one); elsewhere it needs TLS")
	f.StringArrayVar(&u.o.HTTPNames, "http-name", nil, "host name by which browsers may reach it, as often as you like")
	f.StringVar(&u.o.HTTPCert, "http-cert", "", "file with its certificate (PEM)")
	f.StringVar(&u.o.HTTPKey, "http-key", "", "file with the key of that (PEM)")
	f.StringVar(&u.o.Metrics, "metrics", "", "IP:PORT on loopback that shows /metrics, /livez and /readyz, as 127.0.0.1:7190 (default: none)")
	f.BoolVar(&u.o.Verbose, "verbose", false, "log more")
	f.BoolVar(&u.detach, "detach", false, "start it in the background, and wait until it answers")
	f.IntVar(&u.progressFD, progressFlag, 0, "")
	_ = f.MarkHidden(progressFlag)
}

func (u *upFlags) check() error {
	if u.o.Slots < 0 {
		return usagef("--slots %d: give a number above 0", u.o.Slots)
	}
	for _, l := range u.labels {
		k, v, ok := strings.Cut(l, "=")
		if !ok || k == "" || strings.ContainsFunc(l, unicode.IsControl) || len(l) > 300 {
			return usagef("--label %q: use k=v, in one line of at most 300 bytes", clip(l, 60))
		}
		if u.o.Labels == nil {
			u.o.Labels = map[string]string{}
		}
		u.o.Labels[k] = v
	}
	for _, x := range u.repos {
		k, v, ok := strings.Cut(x, "=")
		if !ok || k == "" || v == "" || strings.ContainsFunc(x, unicode.IsControl) || strings.ContainsAny(k, "/: ") {
			return usagef("--repo %q: use NAME=PATH or NAME=URL", clip(x, 60))
		}
		if u.o.Repos == nil {
			u.o.Repos = map[string]string{}
		}
		u.o.Repos[k] = v
	}
	return u.checkPorts()
}

func (u *upFlags) checkPorts() error {
	if u.ports == "" {
		return nil
	}
	from, to, ok := strings.Cut(u.ports, "-")
	a, err := strconv.ParseUint(from, 10, 16)
	b, err2 := strconv.ParseUint(to, 10, 16)
	if !ok || err != nil || err2 != nil || a == 0 || b < a+9 {
		return usagef("--ports %q: use FIRST-LAST, at least ten of them", clip(u.ports, 40))
	}
	u.o.Ports = [2]int{int(a), int(b)}
	return nil
}

func (a *app) upCmd() *cobra.Command {
	u := &upFlags{}
	var join string
	c := verb("up", "start this machine's node", 0, 0, func(c *cobra.Command, _ []string) error {
		if join != "" {
			tok, err := a.token(join)
			if err != nil {
				return err
			}
			u.o.Token = tok
		}
		return a.up(c.Context(), u, join)
	})
	u.add(c)
	c.Flags().StringVar(&join, "join", "", "token of a fleet to join (- reads it from stdin)")
	return c
}

func (a *app) joinCmd() *cobra.Command {
	u := &upFlags{}
	c := verb("join TOKEN|-", "start this machine's node as part of a fleet", 0, 1, func(c *cobra.Command, args []string) error {
		word := ""
		if len(args) > 0 {
			word = args[0]
		}
		tok, err := a.token(word)
		if err != nil {
			return err
		}
		u.o.Token = tok
		return a.up(c.Context(), u, word)
	})
	u.add(c)
	return c
}

// unsaid is a call whose token is read from stdin instead of standing in its arguments.
func unsaid(args []string, token string) []string {
	args = slices.Clone(args)
	for i, s := range args {
		if head, ok := strings.CutSuffix(s, token); ok && (head == "" || head == "--join=") {
			args[i] = head + "-"
		}
	}
	return args
}

// up runs a node in the foreground, or starts one in the background. word is the
// token as it stands in the arguments, "" when it does not: everybody on the machine can read
// those for as long as the process lives, so a node that stays begins again without it.
func (a *app) up(ctx context.Context, u *upFlags, word string) error {
	if err := u.check(); err != nil {
		return err
	}
	home, err := a.home()
	if err != nil {
		return err
	}
	u.o.Data = home
	if u.detach {
		return a.detach(ctx, u)
	}
	if word != "" && word != "-" && a.deps.Again != nil {
		return a.deps.Again(unsaid(a.args, word), word+"\n")
	}
	if u.progressFD != 0 {
		return a.upDetached(ctx, u)
	}
	u.o.Progress = func(s string) {
		if !a.quiet && !a.json {
			fmt.Fprintln(a.io.Err, visible(s))
		}
	}
	u.o.Ready = func(i api.Info) { a.isUp(i, true) }
	err = a.deps.Up(ctx, u.o)
	if errors.Is(err, context.Canceled) && ctx.Err() != nil {
		err = nil
	}
	if err == nil && !a.quiet && !a.json {
		fmt.Fprintln(a.io.Err, "stopped; its sessions go on, each until its lease is over: start the node again before that, and it takes them up")
	}
	return err
}

// isUp tells that a node is up, and what to type next.
func (a *app) isUp(i api.Info, foreground bool) {
	switch {
	case a.json:
		a.printJSON(map[string]any{"v": api.Version, "data": i})
		return
	case a.quiet:
		a.printf("%s\n", i.ID)
		return
	}
	a.printf("node %s is up (fleet %s, pid %d)\n  data    %s\n  listens %s\n", oneLine(i.Name), clip(i.Fleet, 8), i.PID, oneLine(i.Data), orDash(i.Addr))
	say := "muster "
	if home := a.io.Env("HOME"); i.Data != home+"/.muster" {
		say = "muster --data " + shellWord(i.Data) + " "
	}
	where := "next"
	if foreground {
		where = "next, in another terminal"
	}
	a.printf("\n%s:\n", where)
	for _, l := range [][2]string{{"status", "the fleet at a glance"}, {"web", "the board in your browser"}, {`card add "a first card"`, "file work on the board `default`"},
		{"workflow show", "what the board does, and its profiles"}, {"token create", "then, on another machine: muster join -"}} {
		a.printf("  %-*s  # %s\n", len(say)+24, say+l[0], l[1])
	}
	if foreground {
		a.printf("\nCtrl-C stops the node; sessions go on.\n")
	}
}

// shellWord quotes a word for a shell when it must be.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:@%") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

func (a *app) stopCmd() *cobra.Command {
	return verb("stop", "stop this node; its sessions keep running", 0, 0, func(c *cobra.Command, _ []string) error {
		ctx := c.Context()
		left, _ := api.Decode[[]api.Session](a.get(ctx, "/v1/sessions", nil)) // told if it can be
		info, err := a.stop(ctx, "")
		if err != nil {
			return err
		}
		if a.json {
			a.printJSON(map[string]any{"v": api.Version, "data": info})
			return nil
		}
		if a.quiet {
			return nil
		}
		a.printf("node %s is stopped\n", oneLine(info.Name))
		for _, s := range left {
			if s.Node != info.Name {
				continue
			}
			end := "it has no lease: it goes on until it ends, and its card waits"
			if s.LeaseS > 0 {
				end = fmt.Sprintf("its lease ends it in %s unless the node is up again before", age(time.Duration(s.LeaseS)*time.Second))
			}
			a.printf("  session of %s (run %s) goes on; %s\n", s.Card, s.Run, end)
		}
		return nil
	})
}

// stop asks the node to stop and waits until its doors are shut and its folder is free.
func (a *app) stop(ctx context.Context, query string) (api.Info, error) {
	cl, err := a.client()
	if err != nil {
		return api.Info{}, err
	}
	info, err := api.Decode[api.Info](cl.Post(ctx, "/v1/stop"+query, struct{}{}))
	if err != nil || query != "" {
		return info, err
	}
	return info, waitFree(ctx, info.Data, 30*time.Second)
}

func (a *app) restartCmd() *cobra.Command {
	var binary string
	c := verb("restart", "stop this node and start it again, with the same flags", 0, 0, func(c *cobra.Command, _ []string) error {
		ctx := c.Context()
		cl, err := a.client()
		if err != nil {
			return err
		}
		before, err := api.Decode[api.Info](cl.Get(ctx, "/v1/info", nil))
		if err != nil {
			return err
		}
		if binary != "" {
			if err := leaveBinary(before.Data, binary); err != nil {
				return err
			}
		}
		if _, err := a.stop(ctx, "?restart=true"); err != nil {
			return err
		}
		wait, cancel := context.WithTimeout(ctx, 60*time.Second)
		defer cancel()
		for {
			now, err := api.Decode[api.Info](cl.Get(wait, "/v1/info", nil))
			if err == nil && !now.Started.Equal(before.Started) {
				if a.json {
					a.printJSON(map[string]any{"v": api.Version, "data": now})
				} else if !a.quiet {
					a.printf("node %s is up again (%s, pid %d)\n", oneLine(now.Name), oneLine(now.Version), now.PID)
				}
				return nil
			}
			select {
			case <-wait.Done():
				return fmt.Errorf("node %s did not come up again within a minute; see its terminal, or %s/node.log", before.Name, before.Data)
			case <-time.After(50 * time.Millisecond):
			}
		}
	})
	c.Flags().StringVar(&binary, "binary", "", "start this executable instead of the same one")
	return c
}

package cli

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/user"
	"time"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

// Survivor is what a stopped node's store has, as `recover --list` compares them.
type Survivor struct {
	Folder   string   `json:"folder"`
	Store    string   `json:"store"`
	Node     string   `json:"node,omitempty"`
	Name     string   `json:"name,omitempty"`
	Fleet    string   `json:"fleet,omitempty"`
	Era      uint64   `json:"era"`
	LastTerm uint64   `json:"last_term"`
	Last     uint64   `json:"last_index"`
	Applied  uint64   `json:"applied"`
	Seq      uint64   `json:"seq"`
	Hash     string   `json:"hash,omitempty"`
	Best     bool     `json:"best"`
	Faults   []string `json:"faults,omitempty"`
}

// RecoverOptions are the flags of recover.
type RecoverOptions struct {
	Data, From, By, Why string
	WithoutLog          bool
	Progress            func(string)
}

// RestoreOptions are the flags of restore.
type RestoreOptions struct {
	Data, Name, Listen, By, Why string
	Backup                      io.Reader
	Progress                    func(string)
}

// RenewReport says what recover or restore made.
type RenewReport struct {
	Data   string `json:"data"`
	Era    uint64 `json:"era"`
	Seq    uint64 `json:"seq"`
	Before uint64 `json:"seq_before"`
	Unsure uint64 `json:"entries_beyond_the_state,omitempty"`
	Hash   string `json:"hash"`
}

func (a *app) backupCmd() *cobra.Command {
	var local, force bool
	c := verb("backup FILE|-", "the whole state as one file, while the fleet works", 1, 1, func(c *cobra.Command, args []string) error {
		cl, err := a.client()
		if err != nil {
			return err
		}
		a.waiting("reading the state ...")
		var state string
		var n int64
		take := func(w io.Writer) (int, error) {
			p := &progress{w: w, say: a.waiting}
			state, n, err = cl.Backup(c.Context(), local, p, func(size int64) { p.size = size })
			return 0, err
		}
		if args[0] == "-" {
			if a.io.Terminal {
				return usagef("where to? give FILE, or let it flow: muster backup - > FILE")
			}
			_, err := take(a.io.Out)
			if e := new(board.Error); n > 0 && errors.As(err, &e) {
				return board.Errorf(e.Code, "%s", e.Message).WithHint("what was written is a cut file: throw it away; try again, see: muster status")
			}
			return err
		}
		if _, err := a.exportTo(args[0], force, take); err != nil {
			return err
		}
		switch {
		case a.json:
			a.printJSON(map[string]any{"v": api.Version, "data": map[string]any{"file": args[0], "bytes": n, "state": state}})
		case !a.quiet:
			a.printf("the state %s is in %s (%d bytes)\n", oneLine(state), oneLine(args[0]), n)
			a.hint("muster restore %s --data DIR makes a new fleet of it, paused", shellWord(args[0]))
		}
		return nil
	})
	c.Flags().BoolVar(&local, "local", false, "what this node has, without asking a leader: for when there is none")
	c.Flags().BoolVar(&force, "force", false, "replace FILE when it exists")
	c.Long = `the whole state as one file, while the fleet works

It is one moment of all boards, with everything that was acknowledged before, from any node. No private key is in it, no
token and no hash of a secret; transcripts and workspaces are not in it either: they are on the machines. Managers only.`
	return c
}

// waiting tells a person who waits; programs are told nothing.
func (a *app) waiting(s string) {
	if !a.quiet && !a.json {
		fmt.Fprintln(a.io.Err, visible(s))
	}
}

// progress tells how far a copy is, once a second.
type progress struct {
	w    io.Writer
	say  func(string)
	n    int64
	size int64
	next time.Time
}

// Write implements io.Writer.
func (p *progress) Write(b []byte) (int, error) {
	n, err := p.w.Write(b)
	p.n += int64(n)
	if now := time.Now(); now.After(p.next) {
		if !p.next.IsZero() {
			of := ""
			if p.size > 0 {
				of = fmt.Sprintf(" of %d MB", p.size>>20)
			}
			p.say(fmt.Sprintf("%d MB%s ...", p.n>>20, of))
		}
		p.next = now.Add(time.Second)
	}
	return n, err
}

// who is the person at this machine, as a change made off line names it.
func who() string {
	name := "somebody"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	host, _ := os.Hostname()
	return name + "@" + host
}

func (a *app) restoreCmd() *cobra.Command {
	o := RestoreOptions{}
	c := verb("restore FILE|-", "make a new fleet of a backup, in an empty data folder", 1, 1, func(c *cobra.Command, args []string) error {
		home, err := a.home()
		if err != nil {
			return err
		}
		o.Backup = a.io.In
		if args[0] != "-" {
			f, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer f.Close()
			o.Backup = f
		}
		o.Data, o.By, o.Progress = home, who(), a.waiting
		r, err := a.deps.Restore(c.Context(), o)
		if err != nil {
			return err
		}
		return a.renewed(r, "a new fleet is in %s, paused\n")
	})
	f := c.Flags()
	f.StringVar(&o.Name, "name", "", "name of this machine in the new fleet (default: its host name)")
	f.StringVar(&o.Listen, "listen", "", "IP:PORT for other nodes (default: a free port on loopback)")
	f.StringVar(&o.Why, "why", "", "why, for those who find the fleet paused")
	c.Long = `make a new fleet of a backup, in an empty data folder

The new fleet has another id, another key and one node, this machine's. It comes up paused, and nothing runs before
muster resume, after which open cards start anew, also those that the old fleet may still work. Runs that
were running have ended as "restored", their cards stand where the workflow puts a card whose session is lost. Orders,
tokens, sessions and request ids of the old fleet are not in it. Nodes of the old fleet do not know the new one: join
them with a token, with an empty folder.`
	return c
}

func (a *app) renewed(r *RenewReport, said string) error {
	switch {
	case a.json:
		a.printJSON(map[string]any{"v": api.Version, "data": r})
	case !a.quiet:
		a.printf(said, oneLine(r.Data))
		a.fields([][2]string{{"era", fmtUint(r.Era)}, {"state", fmt.Sprintf("Seq %d (the old one's was %d)", r.Seq, r.Before)}, {"hash", r.Hash}})
		if r.Unsure > 0 {
			a.printf("%d entries of its log that it had not applied were taken in: somebody may have been told that they were done\n", r.Unsure)
		}
		a.printf("\nnext:\n  muster --data %s up      # nothing starts: it is paused\n  muster --data %s status  # then look at the cards\n  muster --data %s resume\n",
			shellWord(r.Data), shellWord(r.Data), shellWord(r.Data))
	}
	return nil
}

const recoverHelp = `after the quorum is lost for good: go on with what one survivor has

While a majority of the voters can come back, let them come back: nothing is lost then. Otherwise:

  1. stop the node on every survivor, replicas too:       muster stop
  2. compare what they have (copy the folders together, or look at each):
                                                           muster recover --list FOLDER...
  3. on the one that has most:                             muster recover --yes --why TEXT
  4. start it, look at the cards, then let work go on:     muster up; muster status; muster resume
  5. start the others: they see the new era, and when no leader of the old one has answered them for two minutes they keep what
     they had in raft.asideN, and fetch the state anew. At once, and also while they are a majority: give each before its start
                                                           muster recover --follow --yes --why TEXT

Each way, when and what it does:

  --list FOLDER...  any time, on stopped nodes: compares eras, logs and states, changes nothing
  --yes             most voters are lost for good: this node is the only voter of a new era, of its state and all of its log
  --from STORE      ... of a state that was set aside in the folder before, in place of the one in use
  --without-log     ... of the state alone, when recover says that the log cannot be read: what the log held beyond it is lost
  --follow          another goes on, and not this node: it sets aside all it has, and takes the others' state at its next start.
                    Also for one that was recovered beside a fleet that works, which refuses it with an alarm

What only lost machines had is lost: words that were acknowledged, too. Nothing runs again by itself: runs that were
running have ended as "lost", their sessions are stopped where they still live, and numbers of cards and runs go on
beyond those that may have been given. The old store is kept in the data folder.

When every voter's folder was put back from a copy at the same time, no voter trusts its own vote and the fleet stands
still. That is step 2 and 3, with the store that was set aside: --from raft.aside1.`

func (a *app) recoverCmd() *cobra.Command {
	o := RecoverOptions{}
	var list, yes, follow bool
	c := verb("recover", "after the quorum is lost for good: go on with what one survivor has", 0, -1, func(c *cobra.Command, args []string) error {
		home, err := a.home()
		if err != nil {
			return err
		}
		if follow {
			return a.follow(home, o.Why, yes, len(args) > 0 || list || o.From != "" || o.WithoutLog)
		}
		folders := args
		if len(folders) == 0 {
			folders = []string{home}
		}
		if !list && len(args) > 0 {
			return usagef("recover takes no folder but --data; to compare folders: muster recover --list FOLDER...")
		}
		found, err := a.deps.Survey(folders)
		if err != nil {
			return err
		}
		if list {
			return a.printSurvivors(found)
		}
		if err := chosen(found, o.From); err != nil {
			return err
		}
		if !yes {
			if !a.json && !a.quiet {
				_ = a.printSurvivors(found)
			}
			return board.Errorf(board.Refused, "nothing was changed: recover makes this node the only voter, and what other nodes have beyond it is given up").
				WithHint("only when most voters are lost for good; compare the survivors first (muster recover --list FOLDER...), then: muster recover --yes --why TEXT")
		}
		if o.Why == "" {
			return usagef("recover says why, for those who find the fleet paused: --why TEXT")
		}
		o.Data, o.By, o.Progress = home, who(), a.waiting
		r, err := a.deps.Recover(c.Context(), o)
		if err != nil {
			return err
		}
		return a.renewed(r, "%s is the only voter of the fleet's new era, which comes up paused\n")
	})
	f := c.Flags()
	f.BoolVar(&list, "list", false, "compare what stopped nodes' folders have, and change nothing")
	f.BoolVar(&yes, "yes", false, "do it")
	f.BoolVar(&follow, "follow", false, "the other way: give up what this stopped node has, and take what its fleet has at the next start")
	f.StringVar(&o.Why, "why", "", "why, for those who find the fleet paused")
	f.StringVar(&o.From, "from", "", "a store that was set aside in the data folder (raft.asideN)")
	f.BoolVar(&o.WithoutLog, "without-log", false, "go on with the state alone, where the log cannot be read")
	c.Long = recoverHelp
	return c
}

// chosen refuses a store that is not there, or that has nothing while another has.
func chosen(list []Survivor, from string) error {
	if from == "" {
		from = "raft"
	}
	other := ""
	for _, s := range list {
		if s.Store == from && s.Seq > 0 {
			return nil
		}
		if s.Best {
			other = s.Store
		}
	}
	e := board.Errorf(board.Refused, "%s of this data folder holds no state", from)
	if other != "" {
		return e.WithHint("%s does: muster recover --from %s", other, other)
	}
	return e.WithHint("see: muster recover --list")
}

func (a *app) printSurvivors(list []Survivor) error {
	if a.json {
		a.printJSON(map[string]any{"v": api.Version, "data": list})
		return nil
	}
	t := a.table("FOLDER", "STORE", "NODE", "ERA", "LAST TERM", "LAST INDEX", "APPLIED", "SEQ", "HASH", "")
	for _, s := range list {
		best := ""
		if s.Best {
			best = "has most"
		}
		t.row(s.Folder, s.Store, orDash(orElse(s.Name, clip(s.Node, 8))), fmtUint(s.Era), fmtUint(s.LastTerm), fmtUint(s.Last), fmtUint(s.Applied), fmtUint(s.Seq), orDash(clip(s.Hash, 12)), cell{best, green})
	}
	t.print(a.io.Out)
	for _, s := range list {
		for _, f := range s.Faults {
			fmt.Fprintf(a.io.Err, "note: %s/%s: %s\n", visible(s.Folder), visible(s.Store), visible(f))
		}
	}
	return nil
}

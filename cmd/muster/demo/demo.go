package demo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
)

// Options are what a person may choose.
type Options struct {
	Keep     bool // leave the fleet running
	Out      io.Writer
	Terminal bool   // Out is one
	Plain    bool   // no colours
	Binary   string // the muster executable; "" is this one
	Seed     uint64 // 0 takes one
	Cards    int    // about how many; 0 is 36
	Dir      string // "" makes a temporary folder; it must not hold another demo
}

// limit is how long the cards may take; a demo that needs longer has failed.
const limit = 90 * time.Second

// show is one run of the demo.
type show struct {
	o        Options
	dir      string
	rng      *rand.Rand
	screen   *screen
	machines []*machine
	deck     []card
	sieves   int
	ids      []string // of the deck's cards, as acknowledged
	dead     map[string]string
	killed   string
	rescued  []string // sessions that their node's death did not touch
}

// Run shows the fleet at work. It fails when something does not end well, or
// when an invariant does not hold at the end.
func Run(ctx context.Context, o Options) (err error) {
	s, err := newShow(o)
	if err != nil {
		return err
	}
	left := false
	defer func() {
		if !left {
			for _, m := range s.machines {
				m.stop()
			}
			if err == nil {
				err = os.RemoveAll(s.dir)
			}
		}
	}()
	s.screen.plain("muster demo: three nodes on this machine, a board of %d cards, and the leader killed in the middle", len(s.deck))
	for _, act := range []func(context.Context) error{s.gather, s.file, s.untilBusy, s.killLeader, s.revive, s.finish, s.judge} {
		if err := act(ctx); err != nil {
			if ctx.Err() != nil {
				return errors.New("interrupted: the nodes are stopped, their sessions ended")
			}
			return fmt.Errorf("%w (what is left is in %s)", err, s.dir)
		}
	}
	if left = s.o.Keep; left {
		s.lookAround()
	}
	return nil
}

func newShow(o Options) (*show, error) {
	if o.Binary == "" {
		self, err := os.Executable()
		if err != nil {
			return nil, fmt.Errorf("this program's own file: %w", err)
		}
		o.Binary = self
	}
	if o.Seed == 0 {
		o.Seed = uint64(time.Now().UnixNano())
	}
	if o.Cards == 0 {
		o.Cards = 36
	}
	dir := o.Dir
	var err error
	if dir == "" {
		if dir, err = os.MkdirTemp("", "muster-demo-"); err != nil {
			return nil, err
		}
	} else if dir, err = filepath.Abs(dir); err == nil {
		err = os.MkdirAll(filepath.Dir(dir), 0o700)
		if err == nil {
			err = os.Mkdir(dir, 0o700)
		}
	}
	if err != nil {
		return nil, fmt.Errorf("folder of the demo: %w", err)
	}
	work := filepath.Join(dir, "work")
	if err := os.MkdirAll(work, 0o700); err != nil {
		return nil, err
	}
	s := &show{o: o, dir: dir, rng: rand.New(rand.NewPCG(o.Seed, 1)), dead: map[string]string{}}
	s.sieves = max(4, o.Cards/12*4)
	s.deck = deck(s.sieves, work, s.rng)
	unicode := strings.Contains(strings.ToUpper(os.Getenv("LC_ALL")+os.Getenv("LC_CTYPE")+os.Getenv("LANG")), "UTF")
	s.screen = &screen{out: o.Out, terminal: o.Terminal, begun: time.Now(), style: style{colour: o.Terminal && !o.Plain && os.Getenv("NO_COLOR") == "", unicode: unicode}}
	for _, name := range []string{"atlas", "borea", "cleo"} {
		m, err := newMachine(dir, name, o.Binary)
		if err != nil {
			return nil, err
		}
		s.machines = append(s.machines, m)
	}
	return s, nil
}

// gather makes the fleet: a first node, two that join it by one string, three voters.
func (s *show) gather(ctx context.Context) error {
	first := s.machines[0]
	if err := first.start(ctx, ""); err != nil {
		return err
	}
	s.screen.say("atlas is up: a fleet of one")
	token, err := first.muster(ctx, "-q", "token", "create", "--uses", "2")
	if err != nil {
		return err
	}
	for _, m := range s.machines[1:] {
		if err := m.start(ctx, token); err != nil {
			return err
		}
		s.screen.say("%s has joined: muster join -", m.name)
	}
	for _, m := range s.machines[1:] {
		if _, err := first.muster(ctx, "node", "promote", m.name); err != nil {
			return err
		}
		s.screen.say("$ muster node promote %s", m.name)
	}
	err = s.until(ctx, 30*time.Second, "three voters", func(n *now) bool { return n.status.Voters == 3 })
	if err == nil {
		s.screen.say("three voters: any one of them may be lost")
	}
	return err
}

// file files the deck, each card at the next node.
func (s *show) file(ctx context.Context) error {
	_, err := s.machines[0].client.Do(ctx, board.VBoardCreate, board.BoardCreate{Slug: "primes", Prefix: "p", Label: "primes", YAML: workflow}, "", false)
	if err != nil {
		return fmt.Errorf("the board: %w", err)
	}
	s.ids = make([]string, len(s.deck))
	for i, c := range s.deck {
		add := board.CardAdd{Board: "primes", CardFields: board.CardFields{Title: &c.title, Body: &c.body}}
		for _, j := range c.after {
			add.After = append(add.After, s.ids[j])
		}
		ans, err := api.Decode[struct{ ID string }](s.machines[i%3].client.Do(ctx, board.VCardAdd, add, "", false))
		if err != nil {
			return fmt.Errorf("card %q: %w", c.title, err)
		}
		s.ids[i] = ans.ID
		if i == 0 {
			s.screen.say("$ muster card add %q --body '...'   (at %s: %s)", c.title, s.machines[i%3].name, ans.ID)
		}
	}
	s.screen.say("%d cards filed, a third at each node; most wait for others", len(s.ids))
	return nil
}

// untilBusy waits until a good part is done and the leader has sessions to lose.
func (s *show) untilBusy(ctx context.Context) error {
	enough := len(s.ids)/4 + s.rng.IntN(len(s.ids)/8+1)
	return s.until(ctx, limit, "a part of the cards done", func(n *now) bool {
		return n.done >= enough && len(n.sessions[n.status.Leader]) > 0
	})
}

// killLeader ends the leader with -9 and waits until others lead.
func (s *show) killLeader(ctx context.Context) error {
	n, err := s.now(ctx)
	if err != nil {
		return err
	}
	m := s.machine(n.status.Leader)
	if m == nil {
		return errors.New("nobody leads")
	}
	s.killed, s.rescued = m.name, n.sessions[m.name]
	s.screen.say("kill -9 %d: %s, the leader, is gone; its sessions (%s) go on", m.pid(), m.name, orNone(s.rescued))
	at := time.Now()
	m.kill()
	s.dead[m.name] = "killed with -9; its sessions go on"
	err = s.until(ctx, 30*time.Second, "led by another node", func(n *now) bool {
		return n.status.Quorum && n.status.Leader != m.name && n.status.Leader != ""
	})
	if err != nil {
		return err
	}
	if n, err = s.now(ctx); err != nil {
		return err
	}
	s.screen.say("%s leads, %.1f s later; the board goes on without %s", n.status.Leader, time.Since(at).Seconds(), m.name)
	back := n.done + len(s.ids)/8
	for ctx.Err() == nil && time.Since(at) < 4*time.Second && n.done < back {
		if n, err = s.tick(ctx); err != nil {
			return err
		}
	}
	return ctx.Err()
}

// revive starts the killed node again, with nothing but its folder.
func (s *show) revive(ctx context.Context) error {
	m := s.machine(s.killed)
	if err := m.start(ctx, ""); err != nil {
		return err
	}
	delete(s.dead, m.name)
	s.screen.say("%s is up again: it takes its sessions up and reports those that ended meanwhile", m.name)
	return nil
}

// finish waits until every card is done, and holds the fleet's result against a
// count of this process's own.
func (s *show) finish(ctx context.Context) error {
	err := s.until(ctx, limit, "finished", func(n *now) bool { return n.done == len(s.ids) })
	if err != nil {
		return err
	}
	b, err := os.ReadFile(filepath.Join(s.dir, "work", "report"))
	if err != nil {
		return fmt.Errorf("the report: %w", err)
	}
	got, _ := strconv.Atoi(strings.TrimSpace(string(b)))
	if want := primesBelow(s.sieves * span); got != want {
		return fmt.Errorf("the fleet found %d primes below %d, there are %d", got, s.sieves*span, want)
	}
	s.screen.say("all %d cards are done: %d primes below %d, as a count by other means says", len(s.ids), got, s.sieves*span)
	return nil
}

// judge checks the invariants against what was left behind.
func (s *show) judge(ctx context.Context) error {
	e, err := s.evidence(ctx)
	if err != nil {
		return err
	}
	return s.verdict(e)
}

// verdict tells what the evidence shows; an invariant that does not hold is an error.
func (s *show) verdict(e Evidence) error {
	bad := Check(e)
	s.screen.plain("\nchecked: %d cards, %d runs, %d session folders, %d lines of sessions, %d states", len(e.Acked), len(e.Claims), len(e.Started), len(e.Words), len(e.States))
	for _, inv := range Invariants {
		ok := true
		for _, v := range bad {
			ok = ok && v.Invariant != inv.N
		}
		mark := s.screen.style.paint(green, "ok  ")
		if !ok {
			mark = s.screen.style.paint(red, "NO  ")
		}
		s.screen.plain("  %s invariant %d: %s", mark, inv.N, inv.Text)
	}
	if len(bad) > 0 {
		for _, v := range bad {
			s.screen.plain("  invariant %d does not hold: %s", v.Invariant, v.Text)
		}
		return fmt.Errorf("%d violations (seed %d)", len(bad), s.o.Seed)
	}
	s.screen.plain("  state %s at Seq %d on all three nodes", e.States[0].Hash, e.States[0].Seq)
	s.screen.plain("\nin %.0f s: three nodes, %d cards, one leader killed, nothing lost, nothing twice.", time.Since(s.screen.begun).Seconds(), len(s.ids))
	again := 0
	for _, card := range s.rescued {
		for _, c := range e.Claims {
			if strings.HasPrefix(c.Run, card+".") && c.Run != card+".1" {
				again++
			}
		}
	}
	s.screen.plain("of the %d sessions that %s ran when it died, %d had to be run again.", len(s.rescued), s.killed, again)
	if !s.o.Keep {
		s.screen.plain("muster demo --keep leaves the nodes running, to look around; README.md has the way to a fleet of your own.")
	}
	return nil
}

// lookAround says what to type at a fleet that was left running.
func (s *show) lookAround() {
	home := s.machines[1].data
	last, first := s.ids[len(s.ids)-1], s.ids[0]
	s.screen.plain("\nThe three nodes go on. To look around:\n")
	s.screen.plain("  export PATH=%s:$PATH MUSTER_HOME=%s MUSTER_BOARD=primes", quote(filepath.Dir(s.o.Binary)), quote(home))
	for _, l := range [][2]string{{"status", "the fleet at a glance"}, {"card list --all", "the board"}, {"card show " + last, "the last card, and whom it waited for"},
		{"log " + last, "what its session said"}, {"runs " + first, "how a card was worked"}, {"events", "everything that happened"},
		{`card add "hello" --body 'echo from $MUSTER_NODE'`, "file one more"}} {
		s.screen.plain("  %-56s # %s", "muster "+l[0], l[1])
	}
	s.screen.plain("\nTo end it:\n")
	for _, m := range s.machines {
		s.screen.plain("  muster --data %s stop", quote(m.data))
	}
	s.screen.plain("  rm -r %s", quote(s.dir))
}

func orNone(list []string) string {
	if len(list) == 0 {
		return "none"
	}
	return strings.Join(list, " ")
}

func (s *show) machine(name string) *machine {
	for _, m := range s.machines {
		if m.name == name {
			return m
		}
	}
	return nil
}

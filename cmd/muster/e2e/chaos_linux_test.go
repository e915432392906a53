package e2e

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/history"
)

var (
	chaosTime = flag.Duration("chaos", 0, "how long faults strike five nodes (make chaos TIME=60s SEED=n); 0 is the short form: one fault of each kind, three nodes")
	proof     = flag.String("proof", "", "add a line about a long run of chaos to this file")
	commit    = flag.String("commit", "unknown", "what that line says of the tree")
)

const chaosBoard = `
version: 1
name: default
extends: default
params: {lease: 12, grace: 2, failure_limit: 20, auto_decompose: false}
profiles:
  sh: {harness: command, args: [sh, -c, 'sh "$MUSTER_BODY"']}
statuses:
  running:
    run: {limits: {kill: 1}}
`

// chaos is a fleet under faults.
type chaos struct {
	*fleet
	*people
	t     *testing.T
	long  bool
	wires wires // nil: nothing can be cut here
	disk  int   // the machine with a small disk, -1 for none

	whole sync.RWMutex // held alone while all machines are killed
	mu    sync.Mutex
	hurt  map[*machine]bool
	cuts  map[[2]int]int
	away  []absence
	kinds map[string]int
	kills int

	led      atomic.Int64  // when somebody was last seen to lead (ns), 0: does not count
	silent   time.Duration // the longest time without
	silentAt time.Time     // when it began
}

// Invariants 1, 2, 4, 5, 6, 7, 19, 20: real nodes killed, stopped, cut off, filled up
// and damaged by a seed, while people speak at all doors and sessions come and go.
// At the end everything is healed: nothing acknowledged is lost or there twice, what
// people saw has an order, no two sessions of a card met, every card came to its end
// or waits for a reason, and all states are the same.
func TestChaos(t *testing.T) {
	c := &chaos{t: t, long: *chaosTime > 0, disk: -1, hurt: map[*machine]bool{}, cuts: map[[2]int]int{}, kinds: map[string]int{}}
	n, lanes := 3, 1
	if c.long {
		n, lanes = 5, 2
	} else {
		t.Parallel()
	}
	s := random(t).Uint64()
	if *seed != 0 {
		s = *seed
	}
	c.ready(n)
	p := newPeople(c.fleet, newBook(t, c.dir), c.long)
	c.people = p
	p.topic(rand.New(rand.NewPCG(s, 999)), 9, 0)
	over := make(chan struct{})
	var users, faults sync.WaitGroup
	for user := range 4 {
		users.Go(func() { p.life(user, s, over) })
	}
	for _, m := range c.machines {
		users.Go(func() { c.watch(m, over) })
	}
	begin := time.Now()
	for lane := range lanes {
		faults.Go(func() { c.lane(planOf(s, lane, *chaosTime)) })
	}
	faults.Wait()
	took := time.Since(begin)
	for _, m := range c.machines {
		c.revive(m)
	}
	close(over)
	users.Wait()
	if !t.Failed() {
		c.judge(s, took)
	}
}

// clock is how moments are told: as the nodes' logs do.
const clock = "15:04:05.000"

// ready starts the fleet: in a network whose ways can be cut, one machine on a small disk.
func (c *chaos) ready(n int) {
	root := os.Getuid() == 0 && exec.Command("unshare", "--net", "true").Run() == nil
	if root {
		w := newNetwork(c.t, n)
		if _, err := exec.LookPath("nft"); err == nil {
			c.wires = newFilters(w, n)
		} else {
			c.t.Log("no nft here: ways are cut by routes that lead nowhere")
			c.wires = w
		}
	} else {
		c.t.Log("no root here: machines on loopback, ways are cut in proxies between them, and no disk fills up")
		c.wires = newProxies(c.t, n)
	}
	c.fleet = newFleetAt(c.t, n, 3, func(i int, m *machine) {
		c.wires.place(i, m)
		if root && i == n-1 {
			smallDisk(c.t, m.data, 320)
			c.disk = i
		}
	})
	for _, m := range c.machines[min(3, n):] {
		c.do(c.machines[0], board.VNodeVote, board.NodeVote{Node: m.name, Vote: true})
	}
	c.do(c.machines[0], board.VBoardApply, board.BoardApply{Board: "default", YAML: chaosBoard})
	c.allOnline(c.machines[0])
}

// lane does one fault after the other, as far as it comes.
func (c *chaos) lane(plan []fault) {
	begin := time.Now()
	for _, f := range plan {
		if c.long && time.Since(begin) > *chaosTime { // a busy machine comes less far in the plan, and takes no longer
			return
		}
		<-time.After(f.wait)
		if f.kind == "kill all" {
			c.killAll(f)
			continue
		}
		c.whole.RLock()
		if i, m := c.take(f); m != nil {
			c.strike(f, i, m)
			c.mu.Lock()
			c.hurt[m] = false
			c.kinds[f.kind]++
			c.mu.Unlock()
		}
		c.whole.RUnlock()
		if c.t.Failed() {
			return
		}
	}
}

// take is the machine that a fault hits; nobody else hits it meanwhile.
func (c *chaos) take(f fault) (int, *machine) {
	leader := ""
	if strings.HasSuffix(f.kind, "the leader") {
		leader = c.leads()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for k := range c.machines {
		i := (f.pick + k) % len(c.machines)
		if f.kind == "fill the disk" {
			i = c.disk
		}
		if i < 0 {
			return 0, nil
		}
		m := c.machines[i]
		if c.hurt[m] || leader != "" && m.name != leader {
			continue
		}
		c.hurt[m] = true
		return i, m
	}
	return 0, nil
}

// leads is the leader's name as a machine says it that is not hurt; "" if none does.
func (c *chaos) leads() string {
	c.mu.Lock()
	var doors []*api.Client
	for i, m := range c.machines {
		if !c.hurt[m] {
			doors = append(doors, c.doors[i])
		}
	}
	c.mu.Unlock()
	for _, d := range doors {
		if s, err := api.Decode[api.Status](d.Get(context.Background(), "/v1/status", nil)); err == nil && s.Quorum {
			return s.Leader
		}
	}
	return ""
}

// strike does a fault to a machine, and heals it.
func (c *chaos) strike(f fault, i int, m *machine) {
	c.t.Logf("%s %s on %s", time.Now().Format(clock), f, m.name)
	c.revive(m)
	from := upTime(c.t)
	switch f.kind {
	case "kill", "kill the leader", "kill for long", "damage the state", "damage the journal", "damage the log":
		m.kill()
		c.count(1)
		c.damage(f, m)
		<-time.After(f.hold)
		m.start()
		if strings.HasPrefix(f.kind, "damage") {
			c.votes(m)
		}
	case "stop", "stop the leader":
		m.signal(syscall.SIGSTOP)
		<-time.After(f.hold)
		m.signal(syscall.SIGCONT)
	case "restart":
		m.signal(syscall.SIGTERM)
		_ = m.cmd.Wait()
		m.start()
	case "cut", "cut for long", "mute", "deaf":
		c.cutOff(f, i, +1)
		<-time.After(f.hold)
		c.cutOff(f, i, -1)
	case "fill the disk":
		file := fill(c.t, m.data, 0)
		<-time.After(f.hold)
		if err := os.Remove(file); err != nil {
			c.t.Error(err)
		}
		c.votes(m)
		c.votes(m)
	}
	if strings.HasSuffix(f.kind, "for long") {
		c.mu.Lock()
		c.away = append(c.away, absence{m.name, from})
		c.mu.Unlock()
	}
}

// votes waits until a machine that may have lost its vote with its files has one
// again: else faults that hit a minority would add up to more.
func (c *chaos) votes(m *machine) {
	for end := time.Now().Add(patience); time.Now().Before(end); <-time.After(200 * time.Millisecond) {
		s, err := m.status()
		if err == nil && s.Quorum && slices.ContainsFunc(s.Nodes, func(n api.Node) bool { return n.Name == m.name && n.Role == "voter" }) {
			return
		}
	}
	c.t.Errorf("%s does not vote again:\n%s", m.name, m.lastWords(5))
}

func (c *chaos) count(kills int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.kills += kills
}

// cutOff cuts a machine's ways, or heals them; two faults may have cut the same way.
func (c *chaos) cutOff(f fault, i, by int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := func(from, to int) {
		way := [2]int{from, to}
		before := c.cuts[way]
		c.cuts[way] += by
		switch {
		case before == 0:
			c.wires.cut(from, to)
		case c.cuts[way] == 0:
			c.wires.heal(from, to)
		}
	}
	for other := range c.machines {
		if other != i && f.kind != "deaf" {
			one(i, other)
		}
		if other != i && f.kind != "mute" {
			one(other, i)
		}
	}
}

// damage spoils a file of a dead node.
func (c *chaos) damage(f fault, m *machine) {
	var path string
	switch f.kind {
	case "damage the state":
		path = filepath.Join(m.data, "raft", "state.db")
	case "damage the journal":
		path = filepath.Join(m.data, "journal.db")
	case "damage the log":
		_ = filepath.WalkDir(filepath.Join(m.data, "raft"), func(p string, _ os.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(p, ".wal") {
				path = p // the last one in order is the newest
			}
			return nil
		})
	}
	if path == "" {
		return
	}
	if err := spoil(path, f); err != nil {
		c.t.Errorf("%s on %s: %v", f, m.name, err)
	}
}

// spoil flips a bit, cuts the file short, removes it, or, of a journal, writes over its beginning.
func spoil(path string, f fault) error {
	s, err := os.Stat(path)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(path, os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	defer file.Close()
	at := int64(f.dice>>8) % max(1, min(s.Size(), 1<<20))
	if at < 0 {
		at = -at
	}
	switch {
	case f.kind == "damage the journal":
		_, err = file.WriteAt(make([]byte, 8<<10), 0)
	case f.kind == "damage the state" && f.dice%4 == 0:
		err = os.Remove(path)
	case f.kind == "damage the state" && f.dice%4 == 1:
		err = file.Truncate(at)
	default:
		b := []byte{0}
		if _, err = file.ReadAt(b, at); err == nil {
			b[0] ^= 1 << (f.dice % 8)
			_, err = file.WriteAt(b, at)
		}
	}
	return err
}

// killAll kills every node at once, and starts them again.
func (c *chaos) killAll(f fault) {
	c.whole.Lock()
	defer c.whole.Unlock()
	c.t.Logf("%s %s", time.Now().Format(clock), f)
	c.led.Store(0) // what nobody can lead is no time without a leader
	c.people.restart()
	for _, m := range c.machines {
		m.kill()
	}
	c.count(len(c.machines))
	c.kinds[f.kind]++
	<-time.After(f.hold)
	var up sync.WaitGroup
	for _, m := range c.machines {
		up.Go(func() { m.start() })
	}
	up.Wait()
}

// revive starts a node that has ended by itself, as its supervisor would.
func (c *chaos) revive(m *machine) {
	if pid := m.pid(); pid != 0 && alive(pid) {
		return
	}
	c.t.Logf("%s has ended by itself:\n%s", m.name, m.lastWords(3))
	m.kill()
	m.start()
}

// watch asks a machine again and again whether somebody leads.
func (c *chaos) watch(m *machine, over <-chan struct{}) {
	door := &api.Client{Socket: m.api.Socket, Timeout: time.Second}
	for {
		select {
		case <-over:
			return
		case <-time.After(200 * time.Millisecond):
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		asked := time.Now().UnixNano()
		s, err := api.Decode[api.Status](door.Get(ctx, "/v1/status", nil))
		cancel()
		if err != nil || !s.Quorum || s.Leader == "" {
			continue
		}
		if was := c.led.Swap(asked); was != 0 {
			c.mu.Lock()
			if gap := time.Duration(asked - was); gap > c.silent {
				c.silent, c.silentAt = gap, time.Unix(0, was)
			}
			c.mu.Unlock()
		}
	}
}

// judge holds what came of it against the invariants.
func (c *chaos) judge(s uint64, took time.Duration) {
	c.settle(c.t, s)
	stay := c.come()
	list, err := c.book.read()
	if err != nil {
		c.t.Error(err)
	}
	wrong := doubles(list)
	ended := ends(list)
	cards, err := c.machines[0].cards()
	if err != nil {
		c.t.Fatal(err)
	}
	titles, status := map[string]int{}, map[string]string{}
	for _, card := range cards {
		titles[card.Title]++
		status[card.ID] = card.Status
		if card.Status == "done" && !ended[card.ID] {
			wrong = append(wrong, fmt.Sprintf("card %s is done, and none of its sessions came to its end", card.ID))
		}
	}
	missing, twice := lostWords(c.ops)
	for _, id := range c.work {
		if status[id] == "" {
			missing++
		}
	}
	for title, n := range titles {
		if n > 1 {
			twice++
			wrong = append(wrong, fmt.Sprintf("%q is there %d times", title, n))
		}
	}
	if missing+twice > 0 {
		wrong = append(wrong, fmt.Sprintf("%d acknowledged events are lost, %d are there twice", missing, twice))
	}
	wrong = append(wrong, history.Linear(c.ops, time.Minute)...)
	for _, w := range wrong {
		c.t.Error(w)
	}
	at := c.sameState()
	longest, moved := elsewhere(list, c.away)
	starts := 0
	for _, w := range list {
		if w.kind == "start" {
			starts++
		}
	}
	doubled := len(doubles(list))
	silent := c.silent.Round(time.Millisecond)
	where := "nothing was away for longer than a lease"
	if len(c.away) > 0 {
		where = fmt.Sprintf("a lost machine's card ran elsewhere after %s at most (%.2f of a lease of 12 s; %d cards)", longest.Round(time.Millisecond), longest.Seconds()/12, moved)
	}
	c.t.Logf("seed %d, %d nodes, %s of faults: %v\n%d kills survived; %d acknowledged events, %d lost, %d twice; %d sessions for %d cards, %d double starts; %d cards wait: %v\n"+
		"longest without a leader %s (from %s on), without an acknowledged event %s; %s\n%d operations in the history; state %s",
		s, len(c.machines), took.Round(time.Second), c.kinds, c.kills, c.acked, missing, twice, starts, len(c.work), doubled, len(stay), stay,
		silent, c.silentAt.Format(clock), c.gap.Round(time.Millisecond), where, len(c.ops), at)
	c.prove(map[string]any{"what": "chaos", "commit": *commit, "date": time.Now().UTC().Format(time.DateOnly), "seed": s, "nodes": len(c.machines), "seconds": int(took.Seconds()), "faults": c.kinds,
		"kills": c.kills, "acknowledged": c.acked, "lost": missing, "twice": twice, "sessions": starts, "cards": len(c.work), "double_starts": doubled, "violations": len(wrong),
		"longest_without_leader_ms": silent.Milliseconds(), "longest_without_ack_ms": c.gap.Milliseconds(), "longest_elsewhere_ms": longest.Milliseconds(), "cards_elsewhere": moved})
}

// come waits until every card of a session came to its end or waits for a reason that is told, and gives those that wait.
func (c *chaos) come() map[string]string {
	stay := map[string]string{}
	c.eventually(4*time.Minute, "at their end", func() (bool, string) {
		cards, err := c.machines[0].cards()
		if err != nil {
			return false, err.Error()
		}
		clear(stay)
		var under []string
		for _, card := range cards {
			switch {
			case card.Status == "done" || card.Status == "triage":
			case card.Status == "blocked" && card.Reason != nil && card.Reason.Text != "":
				stay[card.ID] = card.Reason.Text
			default:
				under = append(under, card.ID+" "+card.Status)
			}
		}
		s, err := c.machines[0].status()
		if err != nil {
			return false, err.Error()
		}
		return len(under) == 0 && s.Sessions == 0, fmt.Sprintf("%d sessions; %s", s.Sessions, strings.Join(under, ", "))
	})
	return stay
}

// prove adds a line about a long run to the file of -proof.
func (c *chaos) prove(line map[string]any) {
	if *proof == "" || !c.long {
		return
	}
	b, err := json.Marshal(line)
	if err != nil {
		c.t.Fatal(err)
	}
	f, err := os.OpenFile(*proof, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		c.t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.Write(append(b, '\n')); err != nil {
		c.t.Fatal(err)
	}
}

// filters is a network whose ways are cut by dropping what comes in: nobody is told.
type filters struct{ *network }

func newFilters(w *network, n int) *filters {
	f := &filters{w}
	for i := range n {
		f.nft(i, "add table inet chaos; add set inet chaos gone { type ipv4_addr; }; add chain inet chaos in { type filter hook input priority 0; }; add rule inet chaos in ip saddr @gone drop")
	}
	return f
}

func (f *filters) nft(i int, rules string) {
	if out, err := exec.Command("nsenter", "--net=/run/netns/"+f.ns(i), "nft", rules).CombinedOutput(); err != nil {
		f.t.Errorf("nft %s: %v %s", rules, err, out)
	}
}

func (f *filters) cut(from, to int) {
	f.nft(to, fmt.Sprintf("add element inet chaos gone { %s }", f.addr(from)))
}

func (f *filters) heal(from, to int) {
	f.nft(to, fmt.Sprintf("delete element inet chaos gone { %s }", f.addr(from)))
}

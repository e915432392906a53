package sim

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"muster/board"
	"muster/board/workflow"
	"muster/cmd/muster/api"
	"muster/launcher/launchertest"
	"muster/raftstore/raftstoretest"
)

// Config of a history.
type Config struct {
	Seed  uint64
	Nodes int
	Dir   string // data folders; fast is better
	Wide  bool   // users ask for all that can be asked, nodes also stop in order, and what is left is looked at a month later
	// Settle returns when every goroutine of the bubble waits (synctest.Wait).
	Settle func()
	Log    func(line string) // what nodes log; nil: nothing
}

// Fleet is a fleet in one bubble, and what was seen of it.
type Fleet struct {
	cfg      Config
	begun    time.Time
	net      *Net
	machines []*Machine
	dead     chan *Machine // died by a fuse

	mu     sync.Mutex
	rng    *rand.Rand // of what happens by chance in the machines
	counts map[string]int
	notes  []string
	bugs   []string
	ended_ bool
	live   map[string]string // card/slot -> run whose session lives
	begins map[string]int    // run -> sessions that began
	ops    []op
	asked  []asked
	hashes map[uint64][16]byte
	caps   map[string]int // most at a time, by place
	wg     sync.WaitGroup
}

// New makes the machines of a fleet; nothing runs yet.
func New(cfg Config) *Fleet {
	f := &Fleet{cfg: cfg, begun: time.Now(), rng: rand.New(rand.NewPCG(cfg.Seed, 2)), counts: map[string]int{}, dead: make(chan *Machine, 64),
		live: map[string]string{}, begins: map[string]int{}, hashes: map[uint64][16]byte{}, caps: map[string]int{}}
	f.net = newNet(cfg.Seed, f.count)
	for i := range cfg.Nodes {
		m := &Machine{f: f, Name: fmt.Sprint("m", i+1), slots: int64(3 - i%3), disk: raftstoretest.NewDisk(), rng: rand.New(rand.NewPCG(cfg.Seed, uint64(100+i)))}
		m.dir = filepath.Join(cfg.Dir, m.Name)
		m.keeps = &launchertest.Runner{Script: m.script, Now: m.bootNow, Saw: m.saw}
		f.machines = append(f.machines, m)
	}
	return f
}

func (f *Fleet) settle() { f.cfg.Settle() }

func (f *Fleet) count(what string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.counts[what]++
}

func (f *Fleet) rand(n int) int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.rng.IntN(n)
}

func (f *Fleet) upTo(d time.Duration) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	return time.Duration(f.rng.Int64N(int64(d)))
}

// at is fake time since the beginning.
func (f *Fleet) at() time.Duration { return time.Since(f.begun).Round(time.Millisecond) }

// note adds a line to the history.
func (f *Fleet) note(format string, args ...any) {
	line := fmt.Sprintf("%9s  ", f.at()) + fmt.Sprintf(format, args...)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.notes = append(f.notes, line)
}

// bug is a violation.
func (f *Fleet) bug(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	f.note("VIOLATION %s", text)
	f.mu.Lock()
	defer f.mu.Unlock()
	f.bugs = append(f.bugs, text)
}

func (f *Fleet) over() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.ended_
}

func (f *Fleet) died(m *Machine) { f.dead <- m }

// ended tells of a node that stopped by itself.
func (f *Fleet) ended(m *Machine, err error) {
	if f.over() {
		return
	}
	f.note("%s ended by itself: %v", m.Name, err)
	switch text := fmt.Sprint(err); {
	case strings.Contains(text, "no space left"):
		f.count("node ended: full disk")
	case strings.Contains(text, "hang"):
		f.count("node ended: hung disk")
	default:
		f.count("node ended: other")
		f.bug("%s ended by itself: %v", m.Name, err)
	}
}

type lineWriter func(string)

func (w lineWriter) Write(p []byte) (int, error) {
	w(strings.TrimSuffix(string(p), "\n"))
	return len(p), nil
}

func (f *Fleet) logger(name string) *slog.Logger {
	if f.cfg.Log == nil {
		return slog.New(slog.DiscardHandler)
	}
	w := lineWriter(func(s string) { f.cfg.Log(fmt.Sprintf("%9s %s %s", f.at(), name, s)) })
	return slog.New(slog.NewTextHandler(w, &slog.HandlerOptions{Level: slog.LevelInfo}))
}

// exec wraps the executor: it counts what is asked, refused and taken, and holds each transaction against the caps.
func (f *Fleet) exec(inner execFunc) execFunc {
	return func(v board.View, r *board.Request, env *board.Env) (board.Txn, board.Result) {
		e := *env
		e.Took = func(t *workflow.Transition) { f.count("event " + t.Event) }
		txn, res := inner(v, r, &e)
		if res.Err != nil {
			f.count("refusal " + string(res.Err.Code) + orNothing(res.Err.Check))
			f.count("refused " + r.Verb)
			return txn, res
		}
		if !txn.Empty() {
			f.count("done " + r.Verb)
			if f.cfg.Wide {
				f.tells(v, r, &txn)
			}
		}
		if r.Verb == board.VStart || r.Verb == board.VReport && !txn.Empty() {
			post := board.NewOverlay(v)
			post.Apply(&txn)
			for _, text := range CheckState(post, f.caps1) {
				f.bug("at Seq %d, after %s %s: %s", e.Seq, r.Verb, r.Args, text)
			}
		}
		return txn, res
	}
}

// tells counts what came of a request beside its own doing.
func (f *Fleet) tells(v board.View, r *board.Request, txn *board.Txn) {
	post := board.NewOverlay(v)
	post.Apply(txn)
	for i := range txn.Ops {
		if o := &txn.Ops[i]; o.Table == board.TEvent && !o.Delete {
			if e := board.GetEvent(post, o.Key); e != nil {
				f.count("recorded " + e.Kind)
			}
		}
	}
	var a board.BoardApply
	if r.Verb != board.VBoardApply || json.Unmarshal(r.Args, &a) != nil {
		return
	}
	worked := false
	board.EachHeld(v, "", func(h *board.Held) bool { worked = worked || h.Board == a.Board; return !worked })
	if worked {
		f.count("workflow saved while its cards are worked")
	}
}

type execFunc = func(v board.View, r *board.Request, env *board.Env) (board.Txn, board.Result)

func orNothing(check string) string {
	if check == "" {
		return ""
	}
	return " (" + check + ")"
}

func (f *Fleet) caps1(place string, n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.caps[place] = max(f.caps[place], n)
}

// boardTime is that of some node, in ms; 0 when none is up.
func (f *Fleet) boardTime() int64 {
	for _, m := range f.machines {
		if p := m.up(); p != nil && p.ready.Load() {
			return p.node.Store().BoardTime()
		}
	}
	return 0
}

// doors are the nodes that are up, in the order of their machines.
func (f *Fleet) doors() (list []api.Backend) {
	for _, m := range f.machines {
		if p := m.up(); p != nil && p.ready.Load() {
			list = append(list, p.node.Backend())
		}
	}
	return list
}

// assemble starts the first node, lets the others join, and makes the board.
func (f *Fleet) assemble(ctx context.Context, yaml string) error {
	first := f.machines[0].start("", nil)
	<-first.opened
	if !first.ready.Load() {
		return fmt.Errorf("the first node does not start")
	}
	door := first.node.Backend()
	who, _ := door.Self()
	manager := board.Actor{Kind: board.ActorPerson, Role: "manager", Name: "ann@m1", Node: who}
	for _, m := range f.machines[1:] {
		ans, err := door.NewToken(ctx, manager, api.TokenOptions{Role: "node", TTL: 3600, Uses: 1})
		if err != nil {
			return fmt.Errorf("token: %w", err)
		}
		p := m.start(ans.Token, nil)
		<-p.opened
		if !p.ready.Load() {
			return fmt.Errorf("%s does not join", m.Name)
		}
	}
	must := func(verb string, args any) error {
		if res := door.Do(ctx, request(door, verb, args)); res.Err != nil {
			return fmt.Errorf("%s: %w", verb, res.Err)
		}
		return nil
	}
	boards := [][2]string{{"web", yaml}}
	if f.cfg.Wide {
		boards = append(boards, [2]string{"lab", Lab}) // it extends the first
	}
	for _, b := range boards {
		if err := must(board.VBoardCreate, board.BoardCreate{Slug: b[0], Prefix: b[0], YAML: b[1]}); err != nil {
			return err
		}
	}
	for _, m := range f.machines[1:min(len(f.machines), 5)] {
		if err := must(board.VNodeVote, board.NodeVote{Node: m.Name, Vote: true}); err != nil {
			return err
		}
	}
	return nil
}

// stop ends everything.
func (f *Fleet) stop() {
	f.mu.Lock()
	f.ended_ = true
	f.mu.Unlock()
	var wg sync.WaitGroup
	for _, m := range slices.Backward(f.machines) {
		if p := m.up(); p != nil {
			wg.Go(func() { p.close(); p.cancel() })
		}
	}
	wg.Wait()
	for _, m := range f.machines {
		for m.vanish() {
		}
	}
	f.wg.Wait()
}

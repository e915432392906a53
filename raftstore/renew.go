package raftstore

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"muster/board"
	"muster/raftstore/logstore"
)

// RenewConfig says what a new store is made of, and where.
type RenewConfig struct {
	// From is the folder of a store that no node runs on: its state and all of its log, also what was not known to be
	// committed, for a majority may have had it. It is read only.
	From string
	// FromServer is whose store that is: its state is used only when it is that one's; "" takes what the marker says.
	FromServer string
	// WithoutLog takes the state alone, where the log cannot be read.
	WithoutLog bool
	// Backup is read instead of From.
	Backup io.Reader

	To      string // the folder to be made; what is there is removed first
	Server  string // the only voter of it
	LogKind logstore.Kind

	Check func(v board.View) error                     // may refuse the state, before it is changed; nil: does not
	Next  func(v board.View, env *board.Env) board.Txn // the next change of the state, empty when there is none
	Skip  uint64                                       // how far its Seq goes on beyond what is there

	Progress func(string)
	Logger   *slog.Logger
	BootID   string                // default this boot of the machine
	Fault    func(op string) error // tests: breaks one named operation
}

// RenewSteps are the named operations of [Renew], in order: a test breaks each.
var RenewSteps = []string{"renew-clear", "renew-copy", "renew-log", "renew-change", "renew-snapshot", "renew-vote", "renew-done"}

// Renewed says what was made.
type Renewed struct {
	Before, After StateReport
	Unsure        uint64 // log entries behind the state that were taken in, committed or not
}

// Renew makes a store in cfg.To whose only voter is cfg.Server, out of another
// store or of a backup (architecture.md §6). It touches nothing else; when it
// fails, what lies in cfg.To is of no use, and is removed by the next try.
func Renew(ctx context.Context, cfg RenewConfig) (*Renewed, error) {
	r := &renewing{cfg: cfg, out: &Renewed{}}
	if r.cfg.Progress == nil {
		r.cfg.Progress = func(string) {}
	}
	if r.cfg.Logger == nil {
		r.cfg.Logger = slog.New(slog.DiscardHandler)
	}
	if r.cfg.BootID == "" {
		r.cfg.BootID = bootID()
	}
	if r.cfg.Fault == nil {
		r.cfg.Fault = func(string) error { return nil }
	}
	if r.cfg.LogKind == "" {
		r.cfg.LogKind = logstore.Default
	}
	if err := r.run(ctx); err != nil {
		return nil, err
	}
	return r.out, nil
}

type renewing struct {
	cfg   RenewConfig
	out   *Renewed
	state *state
	term  uint64
	count tallies
}

func (r *renewing) run(ctx context.Context) (err error) {
	if err := r.step("renew-clear", func() error {
		return errors.Join(os.RemoveAll(r.cfg.To), os.MkdirAll(r.cfg.To, 0o700))
	}); err != nil {
		return err
	}
	if r.cfg.Backup != nil {
		err = r.step("renew-copy", func() error { return r.unpack(ctx) })
	} else {
		err = r.step("renew-copy", func() error { return r.copy(ctx) })
	}
	defer func() {
		if r.state != nil {
			err = errors.Join(err, r.state.close(false))
		}
	}()
	if err != nil {
		return err
	}
	if r.cfg.Backup == nil {
		if err := r.step("renew-log", r.replay); err != nil {
			return err
		}
	}
	if err := r.step("renew-change", r.change); err != nil {
		return err
	}
	if err := r.step("renew-snapshot", r.snapshot); err != nil {
		return err
	}
	if err := r.step("renew-vote", r.vote); err != nil {
		return err
	}
	err = r.state.close(false)
	r.state = nil
	if err != nil {
		return err
	}
	return r.step("renew-done", func() error { // the state is made from the snapshot, at the first start
		return errors.Join(os.Remove(filepath.Join(r.cfg.To, stateFile)), syncDir(r.cfg.To), syncDir(filepath.Dir(r.cfg.To)))
	})
}

func (r *renewing) step(op string, fn func() error) error {
	if err := r.cfg.Fault(op); err != nil {
		return err
	}
	return fn()
}

func (r *renewing) use(ctx context.Context) error {
	r.state = newState(ctx, r.cfg.To, 0, nil)
	return r.state.use()
}

// unpack makes a state of a backup, record by record.
func (r *renewing) unpack(ctx context.Context) error {
	if err := r.use(ctx); err != nil {
		return err
	}
	var ops []board.Op
	size := 0
	flush := func() error {
		if len(ops) == 0 {
			return nil
		}
		err := r.apply(board.Txn{Time: r.state.m.Time, Ops: ops})
		ops, size = nil, 0
		return err
	}
	var about About
	n := 0
	r.term = 1
	err := ReadBackup(r.cfg.Backup, func(a About) error { about = a; return nil }, func(t board.Table, key string, val []byte) error {
		ops = append(ops, board.Op{Table: t, Key: key, Val: append([]byte(nil), val...)})
		if size += len(key) + len(val); size > 4<<20 || len(ops) >= 10_000 {
			if err := flush(); err != nil {
				return err
			}
		}
		if n++; n%100_000 == 0 {
			r.cfg.Progress(fmt.Sprintf("%d records are read ...", n))
		}
		return ctx.Err()
	})
	if err == nil {
		err = flush()
	}
	if err != nil {
		return err
	}
	r.state.m.Seq, r.state.m.Time = about.Seq, about.Time
	return nil
}

// copy makes a state of the one in cfg.From, by the rules of a start: what cannot
// be trusted is made from the newest snapshot that holds.
func (r *renewing) copy(ctx context.Context) error {
	from, to := filepath.Join(r.cfg.From, stateFile), filepath.Join(r.cfg.To, stateFile)
	m, unmarked := readMarker(r.cfg.From)
	server := r.cfg.FromServer
	if server == "" {
		server = m.Server
	}
	var best header
	have := false
	if why := m.trust(unmarked, server, r.cfg.BootID); why != "" {
		r.cfg.Logger.Warn("the state is not trusted", "reason", why)
	} else if h, err := verifyFile(ctx, from); err == nil {
		best, have = h, true
	} else if !errors.Is(err, os.ErrNotExist) {
		r.cfg.Logger.Warn("the state does not hold", "err", err)
	}
	list, err := snapshotFiles(filepath.Join(r.cfg.From, snapshotDir))
	if err != nil {
		return err
	}
	snap := ""
	for _, path := range list {
		h, err := verifySnapshot(path)
		if err != nil {
			r.cfg.Logger.Warn("a snapshot does not hold", "path", path, "err", err)
			continue
		}
		if old, err := behind(best.Era, best.EraTag, best.Meta.Applied, h); !have || err == nil && old {
			best, have, snap = h, true, path
		}
	}
	switch {
	case !have:
		r.cfg.Logger.Warn("neither state nor snapshot hold: the log alone is left")
	case snap != "":
		err = copySnapshot(snap, to)
	default:
		err = copyFile(from, to, 0)
	}
	if err != nil {
		return err
	}
	return r.use(ctx)
}

func copySnapshot(path, to string) error { return copyFile(path, to, int64(headerSize)) }

func copyFile(from, to string, skip int64) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	if _, err := in.Seek(skip, io.SeekStart); err != nil {
		return err
	}
	out, err := os.OpenFile(to, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Sync(), out.Close())
}

// replay applies what the log holds beyond the state. Whether it was committed is
// not known any more; if it was not, nobody was told that it failed, either.
func (r *renewing) replay() error {
	if r.cfg.WithoutLog {
		r.term = r.state.m.Term + 1
		return nil
	}
	if _, err := os.Lstat(filepath.Join(r.cfg.From, logDir)); errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("%s: %w: what it held beyond the state is lost; to go on with the state alone, give --without-log", r.cfg.From, logstore.ErrMissing)
	}
	logs, err := logstore.Open(r.cfg.LogKind, filepath.Join(r.cfg.From, logDir), logstore.Options{MustExist: true, Logger: r.cfg.Logger})
	if err != nil {
		return fmt.Errorf("%w (to go on with the state alone: --without-log)", err)
	}
	err = r.replayFrom(logs)
	return errors.Join(err, logs.Close())
}

func (r *renewing) replayFrom(logs *logstore.Log) error {
	first, err := logs.FirstIndex()
	if err != nil {
		return err
	}
	last, err := logs.LastIndex()
	if err != nil {
		return err
	}
	term, err := logs.GetUint64(currentTerm)
	if err != nil && !errors.Is(err, raft.ErrLogNotFound) && err.Error() != "not found" {
		return fmt.Errorf("term of %s: %w", r.cfg.From, err)
	}
	r.term = max(term, r.state.m.Term) + 1
	if last > r.state.m.Applied && first > r.state.m.Applied+1 {
		return fmt.Errorf("%w: the log begins at %d and the state ends at %d: what lies between is lost here; "+
			"take another survivor, or give --without-log to go on with the state alone", ErrNoRebuild, first, r.state.m.Applied)
	}
	for i := r.state.m.Applied + 1; i <= last; i++ {
		var e raft.Log
		if err := logs.GetLog(i, &e); err != nil {
			return fmt.Errorf("entry %d: %w", i, err)
		}
		if _, err := r.state.apply([]*raft.Log{&e}, nil, &r.count); err != nil {
			return err
		}
		r.term = max(r.term, e.Term+1)
		if e.Type == raft.LogCommand {
			r.out.Unsure++
		}
	}
	return nil
}

// currentTerm is Raft's key of the term in the stable store.
var currentTerm = []byte("CurrentTerm")

// apply writes a transaction as an entry of the new term.
func (r *renewing) apply(t board.Txn) error {
	m := r.state.m
	e := &raft.Log{Index: m.Applied + 1, Term: r.term, Type: raft.LogCommand, Data: encodeEntry(&entry{Term: r.term, Seq: m.Seq + 1, Txns: []board.Txn{t}})}
	res, err := r.state.apply([]*raft.Log{e}, nil, &r.count)
	if err == nil && res[0] != nil {
		err = fmt.Errorf("a change was not taken: %v", res[0])
	}
	return err
}

// change makes the state that of the new era, or of the new fleet.
func (r *renewing) change() error {
	err := r.state.read(func(v *view) error {
		r.out.Before = stateReport(r.cfg.From, header{Era: first(eraOf(v)), Meta: r.state.m})
		if r.cfg.Check == nil {
			return nil
		}
		return r.cfg.Check(v)
	})
	if err != nil {
		return err
	}
	r.cfg.Progress(fmt.Sprintf("the state is at Seq %d, of era %d; making it anew ...", r.out.Before.Seq, r.out.Before.Era))
	r.state.m.Seq += r.cfg.Skip
	flows := board.NewWorkflows()
	for {
		var t board.Txn
		m := r.state.m
		err := r.state.read(func(v *view) error {
			v.m.Seq, v.m.Time = m.Seq, m.Time // what was skipped is written with the first change
			t = r.cfg.Next(v, &board.Env{Now: m.Time, Seq: m.Seq + 1, Workflows: flows, Nodes: func(string) board.Reading { return board.Reading{State: board.NodeUnknown} }})
			return nil
		})
		if err != nil {
			return err
		}
		if t.Empty() {
			return nil
		}
		if err := r.apply(t); err != nil {
			return err
		}
	}
}

func first(a, _ uint64) uint64 { return a }

// snapshot writes the state, with the only voter as the configuration, as Raft's newest snapshot.
func (r *renewing) snapshot() error {
	conf := raft.Configuration{Servers: []raft.Server{{Suffrage: raft.Voter, ID: raft.ServerID(r.cfg.Server), Address: raft.ServerAddress(nodeOf(r.cfg.Server))}}}
	at := r.state.m.Applied + 1
	if _, err := r.state.apply([]*raft.Log{{Index: at, Term: r.term, Type: raft.LogConfiguration, Data: raft.EncodeConfiguration(conf)}}, nil, &r.count); err != nil {
		return err
	}
	snaps, err := openSnapshots(r.cfg.To, r.cfg.Logger)
	if err != nil {
		return err
	}
	_, trans := raft.NewInmemTransport("") // only asked how a peer is written
	sink, err := snaps.Create(raft.SnapshotVersionMax, at, r.term, conf, at, trans)
	if err != nil {
		return err
	}
	p, err := r.state.snapshot(0, nil)
	if err != nil {
		return errors.Join(err, sink.Cancel())
	}
	defer p.Release()
	if err := p.Persist(sink); err != nil {
		return err
	}
	r.out.After = stateReport(r.cfg.To, p.head)
	return nil
}

// vote makes an empty log that remembers the term, so that no term is led twice.
func (r *renewing) vote() error {
	l, err := logstore.Open(r.cfg.LogKind, filepath.Join(r.cfg.To, logDir), logstore.Options{Logger: r.cfg.Logger})
	if err != nil {
		return err
	}
	return errors.Join(l.SetUint64(currentTerm, r.term), l.Close())
}

package raftstore

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"muster/board"
)

// renewal is a toy renewal: it counts `renewed` up once.
func renewal() func(board.View, *board.Env) board.Txn {
	done := false
	return func(board.View, *board.Env) board.Txn {
		if done {
			return board.Txn{}
		}
		done = true
		return board.Txn{Ops: []board.Op{{Table: board.TText, Key: "renewed", Val: []byte("1")}}}
	}
}

// renewInto makes a node of its own out of a stopped node's folder.
func renewInto(t *testing.T, n *rigNode, change func(*RenewConfig)) (*rigNode, *Renewed, error) {
	t.Helper()
	to := newRig(t).node("n1", n.tune)
	to.server = "n1/s2"
	to.rig.nodes = map[string]*rigNode{to.server: to}
	cfg := RenewConfig{From: n.dir, To: to.dir, Server: to.server, LogKind: to.config().LogKind, Next: renewal(), Skip: 1000}
	change(&cfg)
	r, err := Renew(ctx(t), cfg)
	return to, r, err
}

// architecture.md §6: what is renewed holds all that state and log held, leads alone, counts on from beyond, and
// comes up again after a stop and after the death of its process.
func TestRenewedStore(t *testing.T) {
	n, _, seq, _ := stopped(t, nil)
	for name, harm := range map[string]func(t *testing.T, n *rigNode){
		"as it was left": func(*testing.T, *rigNode) {},
		"without its state, of snapshot and log": func(t *testing.T, n *rigNode) {
			if err := os.Remove(n.path(stateFile)); err != nil {
				t.Fatal(err)
			}
		},
		"with a state that is damaged": func(t *testing.T, n *rigNode) {
			b := readFile(t, n.path(stateFile))
			for i := len(b) / 2; i < len(b)/2+8192; i++ {
				b[i] ^= 0x5a
			}
			if err := os.WriteFile(n.path(stateFile), b, 0o600); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			from := n.copied(t)
			harm(t, from)
			to, r, err := renewInto(t, from, func(*RenewConfig) {})
			if err != nil {
				t.Fatal(err)
			}
			if r.Before.Seq != seq || r.After.Seq != seq+1001 {
				t.Errorf("Seq was %d (%d before), is %d", r.Before.Seq, seq, r.After.Seq)
			}
			for _, end := range []func(){to.close, to.kill, to.close} {
				s := to.open()
				waitLeads(t, s)
				if a, r := counter(t, s, "a"), counter(t, s, "renewed"); a < 40 || r != 1 {
					t.Fatalf("a is %d, renewed %d", a, r)
				}
				must(t, s.Do(ctx(t), toy(verbAdd, "a")))
				if list := s.Servers(); len(list) != 1 || list[0].ID != to.server || !list[0].Voter {
					t.Errorf("servers: %v", list)
				}
				end()
			}
		})
	}
}

// Entries behind the state are taken in: a majority may have had them, and somebody may have been told so.
func TestRenewTakesTheLogIn(t *testing.T) {
	n, _, _, _ := stopped(t, nil)
	from := n.copied(t)
	h, err := verifySnapshot(glob(t, from.path("snapshots/*/state.bin")))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(from.path(stateFile)); err != nil { // only the snapshot of the time of 20 is left, and the log
		t.Fatal(err)
	}
	to, r, err := renewInto(t, from, func(*RenewConfig) {})
	if err != nil {
		t.Fatal(err)
	}
	if r.Unsure == 0 || r.Before.Seq <= h.Meta.Seq {
		t.Fatalf("%+v, snapshot at %d", r, h.Meta.Seq)
	}
	s := to.open()
	waitLeads(t, s)
	if a := counter(t, s, "a"); a != 40 {
		t.Errorf("a is %d", a)
	}
}

func glob(t *testing.T, pattern string) string {
	t.Helper()
	list, err := filepath.Glob(pattern)
	if err != nil || len(list) == 0 {
		t.Fatalf("%s: %v, %v", pattern, list, err)
	}
	return list[len(list)-1]
}

// A log that cannot be read is not left out in silence.
func TestRenewWithoutALog(t *testing.T) {
	n, _, seq, _ := stopped(t, nil)
	from := n.copied(t)
	if err := os.RemoveAll(from.path(logDir)); err != nil {
		t.Fatal(err)
	}
	if _, _, err := renewInto(t, from, func(*RenewConfig) {}); err == nil || !strings.Contains(err.Error(), "--without-log") {
		t.Fatalf("a lost log is told as %v", err)
	}
	_, r, err := renewInto(t, from, func(c *RenewConfig) { c.WithoutLog = true })
	if err != nil || r.Before.Seq != seq {
		t.Fatalf("%+v, %v", r, err)
	}
}

// Whatever step fails, the old store is untouched, what lies there is of no use, and the next try succeeds.
func TestRenewFailsAtEveryStep(t *testing.T) {
	n, _, _, _ := stopped(t, nil)
	for _, step := range RenewSteps {
		t.Run(step, func(t *testing.T) {
			from := n.copied(t)
			before := sumFolder(t, from.dir)
			broken := errors.New("it broke here")
			hit := false
			to := filepath.Join(t.TempDir(), "new")
			cfg := RenewConfig{From: from.dir, To: to, Server: "n1/s2", Next: renewal(), Fault: func(op string) error {
				if op == step {
					hit = true
					return broken
				}
				return nil
			}}
			if _, err := Renew(ctx(t), cfg); !errors.Is(err, broken) || !hit {
				t.Fatalf("failed with %v (step met: %v)", err, hit)
			}
			if after := sumFolder(t, from.dir); after != before {
				t.Errorf("the old store was changed:\n%s\n%s", before, after)
			}
			cfg.Fault, cfg.Next = nil, renewal()
			if _, err := Renew(ctx(t), cfg); err != nil {
				t.Fatalf("the next try: %v", err)
			}
		})
	}
}

// sumFolder is what is in a folder, but for the log's lock and what only its opening syncs.
func sumFolder(t *testing.T, dir string) string {
	t.Helper()
	var list []string
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.Contains(path, logDir) {
			return err
		}
		b, err := os.ReadFile(path)
		list = append(list, fmt.Sprintf("%s %x", d.Name(), hashOf(1, path, b)))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(list)
	return strings.Join(list, "\n")
}

func keepAll(_ board.Table, _ string, val []byte) ([]byte, error) { return val, nil }

// A backup is one moment of the state while it is written to, and what is made of it is the same.
func TestBackupAndBack(t *testing.T) {
	n, s := single(t, nil)
	must(t, s.Do(ctx(t), toyN(verbFill, "x", 200, 300)))
	f, err := os.Create(filepath.Join(t.TempDir(), "backup"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	about, err := s.Backup(ctx(t), f, About{Fleet: "f", Version: "test"}, keepAll)
	if err != nil {
		t.Fatal(err)
	}
	must(t, s.Do(ctx(t), toy(verbAdd, "a"))) // after it
	want := 0
	_ = s.View(func(v board.View) error {
		v.Scan(board.TCard, "", "", func(string, []byte) bool { want++; return true })
		return nil
	})
	n.close()
	b := readFile(t, f.Name())
	to := newRig(t).node("n9", nil)
	r, err := Renew(ctx(t), RenewConfig{Backup: bytes.NewReader(b), To: to.dir, Server: to.server, Next: renewal()})
	if err != nil {
		t.Fatal(err)
	}
	if r.Before.Seq != about.Seq {
		t.Errorf("Seq %d, the backup is of %d", r.Before.Seq, about.Seq)
	}
	s = to.open()
	waitLeads(t, s)
	got := 0
	_ = s.View(func(v board.View) error {
		v.Scan(board.TCard, "", "", func(string, []byte) bool { got++; return true })
		return nil
	})
	if got != want || counter(t, s, "a") != 0 || counter(t, s, "renewed") != 1 {
		t.Errorf("%d of %d records, a %d, renewed %d", got, want, counter(t, s, "a"), counter(t, s, "renewed"))
	}
}

// threats.md T29: a backup that is cut off, changed, of a newer version, or that claims what it does not hold is
// refused, and nothing is made of it.
func TestBrokenBackups(t *testing.T) {
	_, s := single(t, nil)
	must(t, s.Do(ctx(t), toyN(verbFill, "x", 20, 300)))
	f, err := os.Create(filepath.Join(t.TempDir(), "backup"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := s.Backup(ctx(t), f, About{Fleet: "f"}, keepAll); err != nil {
		t.Fatal(err)
	}
	whole := readFile(t, f.Name())
	if r, err := Check(f.Name()); err != nil || len(r.Faults) > 0 || r.Backup == nil || r.Backup.Fleet != "f" || r.Backup.Records == 0 {
		t.Errorf("a whole backup: %+v, %v", r, err)
	}
	half := filepath.Join(t.TempDir(), "half")
	if err := os.WriteFile(half, whole[:len(whole)/2], 0o600); err != nil {
		t.Fatal(err)
	}
	if r, err := Check(half); err != nil || r.Backup == nil || len(r.Faults) != 1 || !strings.Contains(r.Faults[0], "cut off") {
		t.Errorf("half a backup: %+v, %v", r, err)
	}
	flipped := func(at int) []byte {
		b := bytes.Clone(whole)
		b[at] ^= 1
		return b
	}
	cases := map[string][]byte{
		"empty": {}, "text": []byte("hello, this is no backup"), "cut": whole[:len(whole)/2], "cut in its hash": whole[:len(whole)-1],
		"more": append(bytes.Clone(whole), 0), "flipped": flipped(len(whole) / 2), "flipped hash": flipped(len(whole) - 1),
		"newer": append([]byte("muster backup 2\n"), whole[len(archiveMagic):]...),
		"huge":  append(bytes.Clone(whole[:bytes.IndexByte(whole[len(archiveMagic):], '\n')+len(archiveMagic)+1]), 1, 1, 'k', 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f),
	}
	for name, b := range cases {
		to := filepath.Join(t.TempDir(), "new")
		_, err := Renew(ctx(t), RenewConfig{Backup: bytes.NewReader(b), To: to, Server: "n9/s1", Next: renewal()})
		if !errors.Is(err, ErrBackup) {
			t.Errorf("%s: %v", name, err)
		}
		if list, _ := filepath.Glob(filepath.Join(to, "snapshots", "*", "state.bin")); len(list) > 0 {
			t.Errorf("%s: something was made of it", name)
		}
	}
}

// Whatever bytes: an answer, never a panic, never without bound (invariant 27).
func FuzzReadBackup(f *testing.F) {
	var b bytes.Buffer
	a, err := newArchive(&b, About{Fleet: "f"})
	if err != nil {
		f.Fatal(err)
	}
	if err := errors.Join(a.record(board.TCard, "d-1", []byte("x")), a.end()); err != nil {
		f.Fatal(err)
	}
	f.Add(b.Bytes())
	f.Add([]byte("muster backup 1\n{}\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		n := 0
		err := ReadBackup(bytes.NewReader(b), func(About) error { return nil }, func(board.Table, string, []byte) error { n++; return nil })
		if err == nil && n*3 > len(b) {
			t.Fatalf("%d records in %d bytes", n, len(b))
		}
	})
}

// A folder's name is anything: one that looks like a pattern hides no snapshot.
func TestSnapshotsInAFolderWithABracket(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "[old")
	for _, name := range []string{"1-2-3", "1-2-4.tmp"} {
		if err := errors.Join(os.MkdirAll(filepath.Join(dir, name), 0o700), os.WriteFile(filepath.Join(dir, name, "state.bin"), nil, 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	if list, err := snapshotFiles(dir); err != nil || len(list) != 1 || filepath.Base(filepath.Dir(list[0])) != "1-2-3" {
		t.Errorf("%v, %v", list, err)
	}
	if list, err := snapshotFiles(filepath.Join(dir, "none")); err != nil || list != nil {
		t.Errorf("no folder: %v, %v", list, err)
	}
}

package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
)

// A card has [PortsPerCard] ports on a machine from MUSTER_PORT_BASE on: with a
// worktree for as long as that stands, in another folder for as long as a session
// of it is there ([Store.Rest]): such folders stay, and would use up the range.
// It lies below the one from which systems take ports for outgoing connections.
const (
	PortsPerCard = 10
	FirstPort    = 20000
	LastPort     = 29999
)

// begin writes a new record, and with it the ports of its card: those of another
// of its workspaces, else the first free ones of the machine. The record is
// written before the ports are claimed: a claim without one is nobody's.
func (s *Store) begin(r *record) error {
	s.mu.Lock() // two cards that are made at once must not get the same
	defer s.mu.Unlock()
	own, err := s.ofCard(r.Card)
	if err != nil {
		return err
	}
	for _, x := range own {
		r.Port = max(r.Port, x.Port)
	}
	used, err := s.worktreePorts(r.Card)
	if err != nil {
		return err
	}
	if r.Port != 0 && !used[r.Port] {
		if ok, err := s.claim(r); ok || err != nil {
			return err
		}
	}
	for p := s.cfg.Ports[0]; p+PortsPerCard-1 <= s.cfg.Ports[1]; p += PortsPerCard {
		if used[p] || s.heldElsewhere(p, r.Card) { // looked at first: a record is synced, and many may be held
			continue
		}
		r.Port = p
		if ok, err := s.claim(r); ok || err != nil {
			return err
		}
	}
	return errors.Join(fmt.Errorf("no ports are left for card %s: %d to %d are given to workspaces (see: muster gc --dry-run)", r.Card, s.cfg.Ports[0], s.cfg.Ports[1]), s.drop(r))
}

// again claims the ports of a workspace that stands. When another card has got
// them while it was at rest, it gets others.
func (s *Store) again(r *record) error {
	if r.Port != 0 && s.claimPort(r.Port, r.Card) {
		return nil
	}
	r.Port = 0
	return s.begin(r)
}

// worktreePorts are those that worktrees of other cards have, whatever became of their claims.
func (s *Store) worktreePorts(card string) (map[int]bool, error) {
	names, err := os.ReadDir(s.records())
	if err != nil {
		return nil, err
	}
	used := map[int]bool{}
	for _, e := range names {
		name, ok := strings.CutSuffix(e.Name(), ".json")
		other, ok2 := strings.CutPrefix(name, Worktree+"-")
		if !ok || !ok2 || other == card {
			continue
		}
		if r, err := s.load(Worktree, other); err == nil && r != nil {
			used[r.Port] = true
		}
	}
	return used, nil
}

// Rest gives back the ports of a card whose last session here is gone, unless it
// has a worktree. No start of the card may be under way.
func (s *Store) Rest(card string) {
	list, err := s.ofCard(card)
	if err != nil || slices.ContainsFunc(list, func(r *record) bool { return r.Kind == Worktree }) {
		return
	}
	for _, r := range list {
		s.freePort(r)
	}
}

// RestAll does it for the cards that an earlier life of this node left.
func (s *Store) RestAll(live func(card string) bool) {
	dir := portClaims()
	names, _ := os.ReadDir(dir) // without such a folder nothing is claimed
	for _, e := range names {
		to, err := os.Readlink(filepath.Join(dir, e.Name()))
		if card := filepath.Base(to); err == nil && filepath.Dir(to) == s.records() && checkCard(card) == nil && !live(card) {
			s.Rest(card)
		}
	}
}

func (s *Store) claim(r *record) (bool, error) {
	if err := s.save(r); err != nil {
		return false, err
	}
	return s.claimPort(r.Port, r.Card), nil
}

// portClaims is where all nodes of one user on this machine say which ports
// they have given: a link named by the port leads to the data folder and card.
// "" when there is no such folder to be trusted; then a node knows of its own only.
func portClaims() string {
	dir := filepath.Join(os.TempDir(), fmt.Sprintf("muster-ports-%d", os.Getuid()))
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return ""
	}
	st, err := os.Lstat(dir)
	if err != nil || !st.IsDir() || ownerOf(st) != os.Getuid() {
		return ""
	}
	return dir
}

// claimPort says that a card of this node has a port; false when another's has it.
// A claim whose workspace is gone is taken over.
func (s *Store) claimPort(port int, card string) bool {
	dir := portClaims()
	if dir == "" {
		return true
	}
	mine := filepath.Join(s.records(), card)
	link := filepath.Join(dir, strconv.Itoa(port))
	for range 3 {
		err := os.Symlink(mine, link)
		if err == nil {
			return true
		}
		if !errors.Is(err, os.ErrExist) {
			return true // the folder cannot be written: nobody's claims are there
		}
		to, err := os.Readlink(link)
		switch {
		case errors.Is(err, os.ErrNotExist):
			continue
		case err != nil || to == mine:
			return err == nil
		}
		if stands(to) {
			return false
		}
		_ = os.Remove(link)
	}
	return false
}

// heldElsewhere tells that another card, of this node or of another one, has a
// port. The claim decides: this only saves what leads to it.
func (s *Store) heldElsewhere(port int, card string) bool {
	dir := portClaims()
	if dir == "" {
		return false
	}
	to, err := os.Readlink(filepath.Join(dir, strconv.Itoa(port)))
	return err == nil && to != filepath.Join(s.records(), card) && stands(to)
}

// stands tells whether a claim's card still has a workspace.
func stands(claim string) bool {
	held, _ := filepath.Glob(filepath.Join(filepath.Dir(claim), "*-"+filepath.Base(claim)+".json"))
	return len(held) > 0
}

func (s *Store) freePort(r *record) {
	dir := portClaims()
	link := filepath.Join(dir, strconv.Itoa(r.Port))
	if to, err := os.Readlink(link); dir != "" && err == nil && to == filepath.Join(s.records(), r.Card) {
		_ = os.Remove(link)
	}
}

// ownerOf is the user id that a file belongs to.
func ownerOf(st os.FileInfo) int {
	if x, ok := st.Sys().(*syscall.Stat_t); ok {
		return int(x.Uid)
	}
	return -1
}

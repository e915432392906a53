package node

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"

	"go.yaml.in/yaml/v3"

	"muster/board"
	"muster/cmd/muster/api"
	"muster/cmd/muster/directory"
	"muster/cmd/muster/mirror"
	"muster/mesh"
)

// own is what node.yaml in the data folder says: what is this machine's affair alone.
// It is read at each use, so this machine holds to a change at once; the fleet, which places
// sessions by boards and harnesses and judges its users by local, hears of one at the next start.
type own struct {
	Repos  map[string]string `yaml:"repos"`  // name of a repository -> URL or path on this machine
	Attach string            `yaml:"attach"` // what people may do with its terminals: write, read, none

	Boards    []string `yaml:"boards"`    // whose sessions it takes; none: of all
	Harnesses []string `yaml:"harnesses"` // which it runs; none: those it has
	Local     string   `yaml:"local"`     // what users of its socket may be at most
	RunAs     string   `yaml:"run_as"`

	Mirrors map[string]mirror.Config `yaml:"mirrors"` // boards that it mirrors into a git repository; read at its start

	Organisations map[string]directory.Config `yaml:"organisations"` // whose directories it can tell of agents; read at its start
}

// ownFile is the name of that file.
const ownFile = "node.yaml"

// own reads that file as it is now.
func (n *Node) own() (o own, err error) {
	b, err := os.ReadFile(n.dir.path(ownFile))
	if err == nil {
		o, err = parseOwn(b)
	} else if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	n.sawOwn(o.Attach, err)
	if err != nil {
		return own{}, fmt.Errorf("%s: %w", n.dir.path(ownFile), err)
	}
	return o, nil
}

// ownMax bounds that file: it is read at each start of a session.
const ownMax = 64 << 10

// parseOwn reads what the file says. What it names and this version does not know is an error: a limit that is overlooked is none.
func parseOwn(b []byte) (o own, err error) {
	if len(b) > ownMax {
		return own{}, fmt.Errorf("it has %d bytes: at most %d", len(b), ownMax)
	}
	dec := yaml.NewDecoder(bytes.NewReader(b))
	dec.KnownFields(true)
	if err := dec.Decode(&o); err != nil && !errors.Is(err, io.EOF) { // EOF: nothing but comments
		return own{}, err
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) { // else its limits would be passed over in silence
		return own{}, fmt.Errorf("it holds more than one document, of which only the first would count")
	}
	switch {
	case !slices.Contains([]string{"", attachWrite, attachRead, attachNone}, o.Attach):
		return own{}, fmt.Errorf("attach: %q is none of write, read, none", o.Attach)
	case o.RunAs != "":
		return own{}, fmt.Errorf("run_as: this version starts sessions as the node's own user only, which is no boundary against a hostile program; " +
			"run the node itself as a user that may do no harm, or in a container, and take run_as out")
	case !slices.Contains(localRoles, o.Local):
		return own{}, fmt.Errorf("local: %q is none of manager, member, viewer, none", o.Local)
	}
	for slug, c := range o.Mirrors {
		if err := c.Check(); err != nil {
			return own{}, fmt.Errorf("mirrors: %s: %w", slug, err)
		}
		o.Mirrors[slug] = c
	}
	for name, c := range o.Organisations {
		if err := c.Check(); err != nil {
			return own{}, fmt.Errorf("organisations: %s: %w", name, err)
		}
		if !board.IsOrgName(name) {
			return own{}, fmt.Errorf("organisations: %q is no name of one: lower-case letters, digits, dots and dashes, at most 63, and not %q", name, board.LocalOrg)
		}
	}
	return o, nil
}

var localRoles = []string{"", "manager", "member", "viewer", "none"}

// accept says why this machine takes no session of a board and a harness, "" when it does. A
// file that cannot be read takes nothing: its owner's limits are not known.
func (n *Node) accept(slug, harness string) string {
	o, err := n.own()
	switch {
	case err != nil:
		return fmt.Sprintf("%s: its own file cannot be read, so it takes nothing: %v", n.cfg.Name, err)
	case len(o.Boards) > 0 && !slices.Contains(o.Boards, slug):
		return fmt.Sprintf("%s does not take board %s, says its own file", n.cfg.Name, slug)
	case len(o.Harnesses) > 0 && !slices.Contains(o.Harnesses, orElse(harness, "command")):
		return fmt.Sprintf("%s does not run %s, says its own file", n.cfg.Name, orElse(harness, "command"))
	}
	return ""
}

// limits are what this machine's owner says of it: in its own file, and at its start.
func (n *Node) limits(up *board.NodeUp) error {
	o, err := n.own()
	if err != nil {
		return err // no limits would be all that they forbid
	}
	up.Boards, up.Local = o.Boards, n.cfg.Local
	if o.Local != "" && (up.Local == "" || board.RoleRank(o.Local) < board.RoleRank(up.Local)) {
		up.Local = o.Local
	}
	if len(o.Harnesses) > 0 {
		up.Harnesses = slices.DeleteFunc(up.Harnesses, func(h string) bool { return !slices.Contains(o.Harnesses, h) })
	}
	return nil
}

// repos are the names of repositories on this machine. What the start of the
// node says goes before what the file says.
func (n *Node) repos() (map[string]string, error) {
	o, err := n.own()
	if err != nil {
		return nil, err
	}
	all := maps.Clone(o.Repos)
	if all == nil {
		all = map[string]string{}
	}
	maps.Copy(all, n.cfg.Repos)
	return all, nil
}

// diffMsg asks for what a card has changed.
type diffMsg struct {
	Card string `json:"card"`
	Stat bool   `json:"stat"`
}

// diff is what a card has changed in its worktree on this machine.
func (n *Node) diff(ctx context.Context, m diffMsg) (*api.Diff, error) {
	d, err := n.launch.Diff(ctx, m.Card, m.Stat)
	if err != nil {
		return nil, board.Errorf(board.NotFound, "%s: %v", n.cfg.Name, err)
	}
	return &api.Diff{Card: d.Card, Machine: n.cfg.Name, Path: d.Path, Branch: d.Branch, Base: d.Base, Text: d.Text, Cut: d.Cut}, nil
}

// Diff asks the machine that has the card's workspace.
func (b backend) Diff(ctx context.Context, card string, stat bool) (*api.Diff, error) {
	n := b.n
	var where string
	err := n.store.View(func(v board.View) error {
		c := board.GetCard(v, card)
		if c == nil {
			return board.Errorf(board.NotFound, "no card %q", card).WithHint("see: muster card list")
		}
		r := board.WorkRun(v, c)
		if r == nil {
			return board.Errorf(board.NotFound, "card %s has no workspace yet: no session of it came up", card).WithHint("see: muster why %s", card)
		}
		where = r.Node
		return nil
	})
	if err != nil {
		return nil, err
	}
	m := diffMsg{Card: card, Stat: stat}
	if where == string(n.ident.ID) {
		return n.diff(ctx, m)
	}
	d := new(api.Diff)
	if err := n.call(ctx, where, "diff", m, d); err != nil {
		var said *mesh.RemoteError
		switch e := remote(err); {
		case e != nil:
			return nil, e
		case errors.As(err, &said) && said.Code == mesh.CodeInternal:
			return nil, board.Errorf(board.Internal, "diff of card %s: %s", card, said.Text)
		}
		return nil, board.Errorf(board.Unavailable, "card %s works on a machine that does not answer: %v", card, err).WithHint("see: muster status")
	}
	return d, nil
}

// Gc lets go what no card needs on this machine.
func (b backend) Gc(ctx context.Context, o api.GcOptions) ([]api.GcItem, error) {
	items, err := b.n.launch.Gc(ctx, o.DryRun, o.Scratch)
	if err != nil {
		return nil, board.Errorf(board.Internal, "gc: %v", err)
	}
	out := make([]api.GcItem, len(items))
	for i, x := range items {
		out[i] = api.GcItem(x)
	}
	return out, nil
}

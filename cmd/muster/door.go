package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"time"

	"muster/board"
	"muster/cmd/muster/cli"
	"muster/cmd/muster/node"
	"muster/mesh"
	"muster/raftstore"
)

// door reaches the node at addr with a token. Its key must be one whose hash the
// token names: only then is the secret sent.
func door(addr, token string) (func(context.Context) (net.Conn, error), string, error) {
	t, err := node.ParseToken(token)
	if err != nil {
		return nil, "", err
	}
	if _, _, err := net.SplitHostPort(addr); err != nil {
		return nil, "", board.Errorf(board.Invalid, "--node %q is not IP:PORT", addr)
	}
	dir, err := os.MkdirTemp("", "muster-call-")
	if err != nil {
		return nil, "", err
	}
	id, err := mesh.LoadOrCreateIdentity(dir)
	os.RemoveAll(dir) // a caller needs a key for the handshake, not a name
	if err != nil {
		return nil, "", err
	}
	var nodes []string
	for _, n := range t.Nodes {
		nodes = append(nodes, n.ID)
	}
	dial := func(ctx context.Context) (net.Conn, error) {
		return mesh.DialDoor(ctx, id, addr, func(got mesh.NodeID) error {
			if !slices.Contains(nodes, string(got)) {
				return board.Errorf(board.Refused, "the node at %s shows a key that this token does not name; nothing was sent to it", addr).WithHint("it joined after the token was made, or is an impostor; make a new token")
			}
			return nil
		})
	}
	return dial, "Bearer " + t.Secret, nil
}

// check reads a stopped node's folder, the store in it, a single state file or a snapshot.
func check(path string) (*cli.CheckReport, error) {
	folder, isNode := path, node.IsFolder(path)
	if isNode {
		path = filepath.Join(path, "raft")
	}
	r, err := raftstore.Check(path)
	missing := errors.Is(err, os.ErrNotExist) || errors.Is(err, raftstore.ErrNoStore)
	switch {
	case missing && !isNode:
		return nil, board.Errorf(board.NotFound, "there is no data at %s", path).WithHint("give the data folder of a stopped node, or a file of its state")
	case missing:
		r = nil
	case err != nil:
		return nil, fmt.Errorf("check %s: %w", path, err)
	}
	out := &cli.CheckReport{Path: path, Faults: []string{}}
	add := func(name, format string, args ...any) {
		out.Facts = append(out.Facts, cli.Fact{Name: name, Text: fmt.Sprintf(format, args...)})
	}
	if isNode {
		f := node.CheckFolder(folder, r)
		add("folder", "%s", folder)
		add("node", "%s, %s, start %d, of fleet %s", orUnknown(f.Name), orUnknown(f.Node), f.Generation, orUnknown(f.Fleet))
		if f.Copied != "" { // what a copy is for; doctor warns of one that is a node's own folder
			add("a copy", "%s", f.Copied)
		}
		out.Faults = append(out.Faults, f.Faults...)
	}
	if r != nil {
		storeFacts(path, r, add)
		out.Faults = append(out.Faults, r.Faults...)
	}
	return out, nil
}

func orUnknown(s string) string {
	if s == "" {
		return "(not known)"
	}
	return s
}

// storeFacts lists what is in a store.
func storeFacts(path string, r *raftstore.Report, add func(name, format string, args ...any)) {
	if b := r.Backup; b != nil {
		add("backup", "%s", path)
		add("of", "fleet %s, era %d, state %d of %s, taken on %s", orUnknown(b.Fleet), b.Era, b.Seq, time.UnixMilli(b.Time).UTC().Format(time.RFC3339), orUnknown(b.Name))
		add("records", "%d", b.Records)
		return
	}
	add("store", "%s", path)
	if r.Server != "" {
		add("server", "%s", r.Server)
	}
	if s := r.State; s != nil {
		add("state", "Seq %d, applied %d, term %d, %d bytes, of %s", s.Seq, s.Applied, s.Term, s.Bytes, time.UnixMilli(s.Time).UTC().Format(time.RFC3339))
		add("hash", "%x@%d", s.Hash, s.Seq)
	}
	for _, s := range r.Snapshots {
		add("snapshot", "%s: Seq %d, %d bytes", s.ID, s.Seq, s.Bytes)
	}
	if l := r.Log; l != nil {
		add("log", "%d to %d", l.First, l.Last)
	} else if r.Server != "" {
		add("log", "missing")
	}
	if r.Open {
		add("stopped", "no: killed, or still running; that is no fault")
	}
	for _, f := range r.Aside {
		add("set aside", "%s, by an earlier start", f)
	}
}

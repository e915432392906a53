package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"muster/board"
	"muster/cmd/muster/api"
)

const memoryUse = "use: muster agent memory AGENT log\n     muster agent memory AGENT diff [HASH [HASH]]\n     muster agent memory AGENT export DIR [HASH]\n     muster agent memory AGENT restore HASH"

// agentMemory shows the snapshots of an agent's folder, and takes it back to one.
func (a *app) agentMemory() *cobra.Command {
	c := verb("memory AGENT log|diff|export|restore ...", "the snapshots of an agent's folder", 2, 4, func(c *cobra.Command, args []string) error {
		agent, rest := args[0], args[2:]
		switch {
		case args[1] == "log" && len(rest) == 0:
			ans, err := a.get(c.Context(), "/v1/agents/"+url.PathEscape(agent), nil)
			return show(a, ans, err, func(d api.AgentDetail) (ids []string) {
				for _, m := range d.Memories {
					ids = append(ids, m.Hash)
				}
				return ids
			}, a.printMemories)
		case args[1] == "diff" && len(rest) <= 2:
			return a.memoryDiff(c.Context(), agent, rest)
		case args[1] == "export" && (len(rest) == 1 || len(rest) == 2):
			return a.memoryExport(c.Context(), agent, rest[0], append(rest, "")[1])
		case args[1] == "restore" && len(rest) == 1:
			ans, err := a.do(c.Context(), board.VAgentMemory, board.AgentMemory{Agent: agent, Hash: rest[0]})
			return show(a, ans, err, agentIDs, func(x agentAnswer) {
				a.printf("%s begins its next session with that snapshot\n", oneLine(x.ID))
			})
		}
		return usagef("%s", memoryUse)
	})
	c.Long = "The snapshots of an agent's folder, which its sessions find in MUSTER_AGENT_HOME.\n\n" +
		"log lists those that its sessions began or ended with, the newest first. diff says which files differ between two of\n" +
		"them, or between one and the newest; without a hash, between the newest two. export writes the files of one (the\n" +
		"newest without HASH) into a folder that is empty or not there. restore takes the folder back to one: the agent's next\n" +
		"session begins with it. The bytes are on the machines that took or used a snapshot, and come from there; a snapshot\n" +
		"has at most 256 MB and 10,000 files."
	return c
}

func (a *app) printMemories(d api.AgentDetail) {
	t := a.table("SNAPSHOT", "SIZE", "FILES", "RUN", "MACHINE", "TAKEN")
	for i, m := range d.Memories {
		mark := ""
		if i == 0 && d.Memory != nil {
			mark = " *"
		}
		t.row(m.Hash[:min(12, len(m.Hash))]+mark, sizeText(m.Bytes), m.Files, m.Run, m.Node, a.since(m.At)+" ago")
	}
	t.print(a.io.Out)
}

func (a *app) memoryFiles(ctx context.Context, agent, hash string) (*api.Answer, api.MemoryFiles, error) {
	ans, err := a.get(ctx, "/v1/memory", url.Values{"agent": {agent}, "hash": {hash}})
	x, err := api.Decode[api.MemoryFiles](ans, err)
	return ans, x, err
}

// answered is an answer of what was made of it here.
func answered(ans *api.Answer, v any) *api.Answer {
	raw, err := json.Marshal(v)
	if err != nil { // texts and numbers only
		raw = nil
	}
	return &api.Answer{Index: ans.Index, AgeMS: ans.AgeMS, Data: raw}
}

// memoryChange is a file that differs between two snapshots.
type memoryChange struct {
	Path string `json:"path"`
	What string `json:"what"` // added, changed or removed
	Size int64  `json:"size"` // in the later one, or when it was removed
}

type memoryDiff struct {
	Agent   string         `json:"agent"`
	From    string         `json:"from"`
	To      string         `json:"to"`
	Changes []memoryChange `json:"changes"`
}

// memoryDiff says which files differ between two snapshots.
func (a *app) memoryDiff(ctx context.Context, agent string, hashes []string) error {
	if len(hashes) == 0 {
		d, err := api.Decode[api.AgentDetail](a.get(ctx, "/v1/agents/"+url.PathEscape(agent), nil))
		switch {
		case err != nil:
			return err
		case len(d.Memories) < 2:
			return board.Errorf(board.NotFound, "agent %s has %d snapshot(s): there is nothing to compare", d.ID, len(d.Memories)).WithHint("see: muster agent memory %s log", d.ID)
		}
		hashes = []string{d.Memories[1].Hash, d.Memories[0].Hash}
	}
	_, from, err := a.memoryFiles(ctx, agent, hashes[0])
	if err != nil {
		return err
	}
	ans, to, err := a.memoryFiles(ctx, agent, append(hashes, "")[1])
	if err != nil {
		return err
	}
	d := compareMemories(from, to)
	return show(a, answered(ans, d), nil, func(d memoryDiff) (ids []string) {
		for _, x := range d.Changes {
			ids = append(ids, x.Path)
		}
		return ids
	}, func(d memoryDiff) {
		for _, x := range d.Changes {
			a.printf("%-8s %s (%s)\n", x.What, oneLine(x.Path), sizeText(x.Size))
		}
		if len(d.Changes) == 0 {
			a.printf("no file differs\n")
		}
	})
}

// compareMemories walks two lists in the order of their paths.
func compareMemories(from, to api.MemoryFiles) memoryDiff {
	d := memoryDiff{Agent: to.Agent, From: from.Hash, To: to.Hash, Changes: []memoryChange{}}
	x, y := from.Files, to.Files
	for len(x) > 0 || len(y) > 0 {
		switch {
		case len(y) == 0 || len(x) > 0 && x[0].Path < y[0].Path:
			d.Changes = append(d.Changes, memoryChange{x[0].Path, "removed", x[0].Size})
			x = x[1:]
		case len(x) == 0 || y[0].Path < x[0].Path:
			d.Changes = append(d.Changes, memoryChange{y[0].Path, "added", y[0].Size})
			y = y[1:]
		default:
			if x[0].SHA256 != y[0].SHA256 || x[0].Exec != y[0].Exec {
				d.Changes = append(d.Changes, memoryChange{y[0].Path, "changed", y[0].Size})
			}
			x, y = x[1:], y[1:]
		}
	}
	return d
}

// memoryExport writes the files of a snapshot into a folder.
func (a *app) memoryExport(ctx context.Context, agent, dir, hash string) error {
	if list, err := os.ReadDir(dir); err == nil && len(list) > 0 {
		return usagef("%s is not empty: name a folder that is, or that is not there", dir)
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w", dir, err)
	}
	ans, x, err := a.memoryFiles(ctx, agent, hash)
	if err != nil {
		return err
	}
	for _, f := range x.Files {
		if err := a.memoryFile(ctx, x, f, dir); err != nil {
			return err
		}
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	return show(a, answered(ans, x), nil, func(x api.MemoryFiles) []string { return []string{x.Hash} }, func(x api.MemoryFiles) {
		a.printf("%d file(s) of snapshot %s are in %s\n", len(x.Files), x.Hash[:min(12, len(x.Hash))], dir)
	})
}

// memoryFile writes one of them: whole, or it is an error.
func (a *app) memoryFile(ctx context.Context, x api.MemoryFiles, f api.MemoryFile, dir string) (err error) {
	if !filepath.IsLocal(filepath.FromSlash(f.Path)) {
		return board.Errorf(board.Invalid, "the snapshot names a file %q, which leads out of the folder", f.Path)
	}
	path := filepath.Join(dir, filepath.FromSlash(f.Path))
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if f.Exec {
		mode = 0o700
	}
	w, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, mode)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, w.Close()) }()
	for from := int64(0); ; {
		q := url.Values{"agent": {x.Agent}, "hash": {x.Hash}, "path": {f.Path}, "from": {strconv.FormatInt(from, 10)}}
		c, err := api.Decode[api.MemoryChunk](a.get(ctx, "/v1/memory/file", q))
		if err != nil {
			return err
		}
		if _, err := w.Write(c.Chunk); err != nil {
			return err
		}
		if from = c.Next; c.EOF {
			break
		}
	}
	if st, err := w.Stat(); err == nil && st.Size() != f.Size {
		return fmt.Errorf("%s: %w", path, io.ErrUnexpectedEOF)
	}
	return nil
}

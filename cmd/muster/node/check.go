package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"muster/mesh"
	"muster/raftstore"
)

// FolderReport is what a look at a stopped node's folder found, beside its store.
type FolderReport struct {
	Node, Name, Fleet string
	Generation        uint64
	Faults            []string // one line each
	Copied            string   // what its next start does about it; "": the folder is where its node left it
}

// IsFolder tells a node's data folder from a single store or file.
func IsFolder(dir string) bool {
	for _, name := range []string{"node.json", "node.key"} {
		if _, err := os.Lstat(filepath.Join(dir, name)); err == nil {
			return true
		}
	}
	return false
}

// CheckFolder holds a stopped node's own files against each other and against
// what its store says; store is nil when there is none. It changes nothing.
func CheckFolder(dir string, store *raftstore.Report) *FolderReport {
	r := &FolderReport{}
	fault := func(format string, args ...any) { r.Faults = append(r.Faults, fmt.Sprintf(format, args...)) }
	if id, err := mesh.LoadIdentity(dir); errors.Is(err, fs.ErrNotExist) {
		fault("node.key is missing: without it this machine is a stranger to its fleet and does not start; put that file alone back, if you have it")
	} else if err != nil {
		fault("%v", err)
	} else {
		r.Node = string(id.ID)
	}
	f := &folder{dir: dir}
	mem, err := f.load()
	if _, lerr := os.Lstat(f.path("node.json")); errors.Is(lerr, fs.ErrNotExist) {
		fault("node.json is missing: this node does not start; %s", f.wayBack())
		mem = &saved{}
	} else if err != nil {
		fault("%v", err)
		mem = &saved{}
	}
	r.Name, r.Fleet, r.Generation = mem.Name, mem.Fleet, mem.Generation
	if err := f.belongs(mem, r.Node); r.Node != "" && err != nil && (store == nil || store.Server == "") {
		fault("%v", err)
	}
	if why := mem.Place.copied(f.path("raft")); why != "" && mem.Stored && store != nil && store.Log != nil {
		r.Copied = fmt.Sprintf("yes (%s): should it be started here, this node gives up its vote, unless it is the only voter, takes a new store id, and fetches all of it from the others", why)
	}
	if mem.Refetch != "" {
		fault("its state is to be fetched anew at the next start: %s", mem.Refetch)
	}
	if store == nil || store.Log == nil && len(store.Faults) == 0 {
		if mem.Stored {
			fault("the log is missing: at its next start this node gives up its vote, takes a new store id, and fetches all of it from the others")
		}
	}
	if store == nil || store.Server == "" {
		return r
	}
	node, id, _ := strings.Cut(store.Server, "/")
	if r.Node != "" && node != r.Node {
		fault("node.key is that of node %s, and the store is that of node %s: one of them was copied here", r.Node, node)
	}
	if mem.Store != "" && id != mem.Store {
		fault("node.json names the store %s, and the store here is %s: one of them is an older copy", mem.Store, id)
	}
	return r
}

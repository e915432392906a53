package main_test

import (
	"slices"
	"strings"
	"testing"
)

const modulePath = "muster"

// An importRule says which of our packages a folder may import. The rule of
// the longest matching folder holds. Tests are held to it as well.
type importRule struct {
	folder string
	may    []string // folders of ours, with what is below them; "*" is all
	why    string
}

var importRules = []importRule{
	{"board", []string{"board"}, "the domain knows neither network, disk, process nor face: it decides the same everywhere"},
	{"board/rule", nil, "the only user of expr is a leaf, so that expr can be replaced in one place"},
	{"board/lease", nil, "the protocol of contact, lease and orders is searched state by state, so it stands alone"},
	{"board/workflow", []string{"board/rule"}, "a workflow is read and linted without a board: it knows expressions and nothing else"},
	{"board/workflow/chart", []string{"board/workflow"}, "a picture is drawn of what was loaded, and any face may show it"},
	{"board/scenario", []string{"board"}, "a story is played as a fleet decides it: by the board's own Exec"},
	{"mesh", []string{"mesh"}, "reaching a node does not depend on what is said to it"},
	{"raftstore", []string{"raftstore", "board"}, "the log carries what board decided and knows no peer, plan or process"},
	{"raftstore/logstore", []string{"raftstore/logstore"}, "the log on disk is gated by itself and knows nothing of what it holds"},
	{"scheduler", []string{"scheduler", "board"}, "the plan reads the board and asks the executor; it reaches no node and starts no process"},
	{"launcher", []string{"launcher", "board"}, "a machine's processes follow what is recorded; how the record came is not its business"},
	{"cmd/harness", []string{"board/workflow", "launcher/harnesstest"}, "it holds presets against programs and runs neither node nor session"},
	{"launcher/fakemodel", nil, "a model server knows nothing of who asks it"},
	{"cmd/rules", nil, "what breaks the product must not break with it"},
	{"cmd/dist", nil, "what packs the program runs it, and knows nothing of it"},
	{"cmd/skips", nil, "the runner of the tests must not break with what it tests"},
	{"cmd/muster", []string{"*"}, "the faces assemble the rooms"},
	{"cmd/muster/foreign", []string{"board", "cmd/muster/api"}, "reading another system's cards is values in, values out; only its test holds the file against the API's reader"},
	{"cmd/muster/document", []string{"board"}, "a board as files is values in, values out: who reads and writes them is not its business"},
	{"cmd/muster/mirror", []string{"board", "cmd/muster/document", "cmd/muster/api"}, "a mirror reads the state and speaks to git; only its test takes a fleet from the API's"},
	{"cmd/muster/directory", []string{"board", "cmd/muster/directory"}, "telling somebody outside of an agent is a call and its answer: what waits, and whose turn it is, is not its business"},
	{"cmd/muster/directory/directorytest", []string{"cmd/muster/directory"}, "a directory for tests knows the words, and not who says them"},
	{"cmd/muster/harmless", nil, "what makes foreign text fit for a terminal knows nothing of what it says"},
	{"cmd/muster/tui", []string{"cmd/muster/tui", "cmd/muster/api", "cmd/muster/harmless", "board"}, "a client of the API like any other; board is the vocabulary"},
	{"cmd/muster/mcp", []string{"cmd/muster/mcp", "cmd/muster/api", "board"}, "a client of the API like any other; board is the vocabulary"},
	{"cmd/muster/web", []string{"cmd/muster/web", "cmd/muster/api"}, "a client of the API like any other"},
	{"cmd/muster/browser", []string{"cmd/muster/api"}, "the page is proved from outside: the binary, and the API's client"},
}

// A libraryRule keeps a library where it is known.
type libraryRule struct {
	prefix string
	may    []string
	why    string
}

var libraryRules = []libraryRule{
	{"github.com/expr-lang/expr", []string{"board/rule"}, "bounds, allow-list and null-safety of expressions are kept in one place"},
	{"github.com/hashicorp/memberlist", []string{"mesh"}, "presence is a hint of the mesh and nobody else's"},
	{"github.com/hashicorp/raft", []string{"raftstore", "cmd/muster/node"}, "consensus has one room; node wires its transport"},
	{"github.com/spf13/cobra", []string{"cmd/muster/cli"}, "only the command line knows how it is parsed"},
	{"charm.land/bubbletea", []string{"cmd/muster/tui"}, "how a terminal is drawn is one face's affair"},
	{"github.com/chromedp", []string{"cmd/muster/browser"}, "a browser is driven by tests only, and is no part of the binary"},
	{"github.com/creack/pty", []string{"launcher", "cmd/muster/e2e", "cmd/muster/bench"}, "a session's terminal is its keeper's; tests and benches play the person before one"},
	{"github.com/prometheus", []string{"cmd/muster/metrics"}, "what figures look like is known in one place"},
	{"github.com/modelcontextprotocol", []string{"cmd/muster/mcp", "cmd/muster/e2e"}, "how agents are spoken to is one face's affair; a test plays the agent"},
	{"go.etcd.io/bbolt", []string{"raftstore", "launcher", "cmd/muster/node", "cmd/muster/bench"}, "state, log and journal are the only files of this kind; bench measures against them"},
}

func TestImportsKeepTheRooms(t *testing.T) {
	check(t, func(s *source) []string { return badImports(s.dir(), s.imports()) })
}

// badImports holds the imports of one file of a folder to both tables.
func badImports(dir string, imports []string) []string {
	var list []string
	rule, ok := ruleOf(dir)
	if !ok {
		return []string{"folder " + dir + " has no import rule; give it one"}
	}
	for _, path := range imports {
		if ours, isOurs := strings.CutPrefix(path, modulePath+"/"); isOurs {
			if !under(ours, rule.may) && ours != dir {
				list = append(list, dir+" must not import "+path+": "+rule.why)
			}
			continue
		}
		for _, lib := range libraryRules {
			if (path == lib.prefix || strings.HasPrefix(path, lib.prefix+"/")) && !under(dir, lib.may) {
				list = append(list, dir+" must not import "+path+": "+lib.why)
			}
		}
	}
	return list
}

func ruleOf(dir string) (importRule, bool) {
	best, found := importRule{}, false
	for _, r := range importRules {
		if under(dir, []string{r.folder}) && len(r.folder) > len(best.folder) {
			best, found = r, true
		}
	}
	return best, found
}

// under tells whether a folder is one of the list or below one of them.
func under(dir string, list []string) bool {
	return slices.ContainsFunc(list, func(f string) bool {
		return f == "*" || dir == f || strings.HasPrefix(dir, f+"/")
	})
}

func TestEveryImportRuleHasOneReason(t *testing.T) {
	seen := map[string]bool{}
	for _, r := range importRules {
		if r.why == "" || seen[r.folder] {
			t.Errorf("rule of %s: no reason, or twice", r.folder)
		}
		seen[r.folder] = true
	}
	for _, r := range libraryRules {
		if r.why == "" || seen[r.prefix] {
			t.Errorf("rule of %s: no reason, or twice", r.prefix)
		}
		seen[r.prefix] = true
	}
}

func TestImportRulesCanFail(t *testing.T) {
	for _, c := range []struct {
		dir, path string
		ok        bool
	}{
		{"board", "muster/board/rule", true},
		{"board", "muster/mesh", false},
		{"board/lease", "muster/board", false},
		{"mesh", "muster/board", false},
		{"mesh/meshtest", "muster/mesh", true},
		{"raftstore", "muster/board/lease", true},
		{"raftstore", "muster/mesh", false},
		{"scheduler", "muster/launcher", false},
		{"launcher/launchertest", "muster/launcher", true},
		{"cmd/muster/tui", "muster/cmd/muster/node", false},
		{"cmd/muster/tui", "muster/cmd/muster/api", true},
		{"cmd/muster/node", "muster/mesh", true},
		{"cmd/skips", "muster/board", false},
		{"cmd/other", "fmt", false},
		{"board", "github.com/expr-lang/expr/ast", false},
		{"board/rule", "github.com/expr-lang/expr/ast", true},
		{"mesh", "github.com/hashicorp/raft", false},
		{"raftstore", "github.com/hashicorp/raft-wal", true}, // another library
		{"mesh", "github.com/hashicorp/raft-wal", true},
		{"cmd/muster/api", "github.com/spf13/cobra", false},
	} {
		if got := badImports(c.dir, []string{c.path}); (len(got) == 0) != c.ok {
			t.Errorf("%s imports %s: %q, want ok = %v", c.dir, c.path, got, c.ok)
		}
	}
}

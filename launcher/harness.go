package launcher

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"time"

	"muster/board"
)

// headOfLog is how much of a session's output is searched for its id: harnesses tell it first of all.
const headOfLog = 256 << 10

// told is the id of a session that its harness tells in its output, as the member
// of a JSON line; "" when it told none. It is what a later run takes up again.
func (n *run) told() string {
	if n.spec == nil || n.spec.SessionKey == "" {
		return ""
	}
	head, _ := readAt(filepath.Join(n.keptDir(), fileLog), 0, headOfLog)
	for line := range bytes.Lines(head) {
		var m map[string]json.RawMessage
		var id string
		if len(line) > 0 && line[0] == '{' && json.Unmarshal(line, &m) == nil && json.Unmarshal(m[n.spec.SessionKey], &id) == nil && id != "" {
			return id
		}
	}
	return n.kept()
}

// maxFirstLine bounds the first line of a session's file: it may hold all that a
// program was told of itself.
const maxFirstLine = 1 << 20

// kept is the id of this run's session by the file in which its program keeps it: one
// written since the process was started, of the folder that it works in. "" when there
// is none, or more than one: another's session must not be taken up.
func (n *run) kept() string {
	f := n.spec.Sessions
	if f == nil {
		return ""
	}
	proc, err := os.Stat(filepath.Join(n.keptDir(), fileProc))
	if err != nil {
		return ""
	}
	found := ""
	since := proc.ModTime()
	if n.spec.SessionID != "" {
		since = time.Time{} // its file may be an old one, in a folder that has not changed
	}
	for _, path := range f.Paths {
		for _, file := range globIn(path, n.spec.Env, since) {
			st, err := os.Stat(file)
			if err != nil || st.ModTime().Before(proc.ModTime()) {
				continue
			}
			id, dir := idOf(file, f)
			if id == "" || dir != n.spec.Dir || id == found {
				continue
			}
			if found != "" {
				return ""
			}
			found = id
		}
	}
	return found
}

// globIn are the files of a pattern that begins with a variable of an environment, none when it is not set there: of
// the folders in which something was made since a moment, so that the sessions of years are not looked through.
func globIn(pattern string, env []string, since time.Time) (files []string) {
	name, rest, ok := strings.Cut(strings.TrimPrefix(pattern, "$"), "/")
	if !ok {
		return nil
	}
	for _, e := range env {
		value, is := strings.CutPrefix(e, name+"=")
		if !is || !filepath.IsAbs(value) {
			continue
		}
		pattern = filepath.Join(escapeGlob(value), rest)
		dirs, _ := filepath.Glob(filepath.Dir(pattern)) // a bad pattern finds nothing
		for _, dir := range dirs {
			if st, err := os.Stat(dir); err != nil || st.ModTime().Before(since) {
				continue
			}
			in, _ := filepath.Glob(filepath.Join(escapeGlob(dir), filepath.Base(pattern)))
			files = append(files, in...)
		}
		return files
	}
	return nil
}

// escapeGlob is a path as a pattern that means itself.
func escapeGlob(path string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(path)
}

// idOf reads a session's id and folder from the first line of its file.
func idOf(file string, f *board.SpecFiles) (id, dir string) {
	head, _ := readAt(file, 0, maxFirstLine)
	line, _, ok := bytes.Cut(head, []byte("\n"))
	l := outputLine{raw: line}
	if !ok || json.Unmarshal(line, &l.json) != nil {
		return "", ""
	}
	return textOf(l.member(f.ID)), textOf(l.member(f.Dir))
}

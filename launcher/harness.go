package launcher

import (
	"bytes"
	"encoding/json"
	"path/filepath"
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
	return ""
}

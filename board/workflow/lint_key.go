package workflow

import (
	"regexp"
	"strings"
)

// keyShapes are the forms in which services give out keys; what is saved here is read by every member of the fleet.
var keyShapes = regexp.MustCompile(`-----BEGIN [A-Z ]*PRIVATE KEY-----|\b(?:` +
	`sk-[A-Za-z0-9_-]{20,}|gh[pousr]_[A-Za-z0-9]{30,}|github_pat_[A-Za-z0-9_]{30,}|glpat-[A-Za-z0-9_-]{18,}|` +
	`xox[abeprs]-[A-Za-z0-9-]{10,}|AKIA[0-9A-Z]{16}|AIza[A-Za-z0-9_-]{35}|hf_[A-Za-z0-9]{30,}|npm_[A-Za-z0-9]{36}|` +
	`eyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]+)`)

// keyNames are names whose values are secret.
var keyNames = regexp.MustCompile(`(?i)(^|[_-])(api_?key|key|token|secret|password|passwd|credentials?)$`)

const keyAdvice = "take it from the executing node: env: {NAME: {from: NAME}}; and replace the key, it has been written down"

// keyLiterals finds values that look like keys: by their form anywhere, by their name in an env.
func keyLiterals(n *node, path string, found []Finding) []Finding {
	switch n.kind {
	case scalarNode:
		if s, ok := n.scalar.(string); ok && len(s) >= 16 && keyShapes.MatchString(s) {
			found = append(found, Finding{Pos: n.pos, Severity: Error, Check: "key-literal", Path: path, Message: "this looks like a key; everybody who may read the board would have it", Advice: keyAdvice})
		}
	case listNode:
		for i, item := range n.items {
			found = keyLiterals(item, index(path, i), found)
		}
	case mapNode:
		inEnv := path == "env" || strings.HasSuffix(path, ".env")
		for _, e := range n.entries {
			at := join(path, e.key)
			before := len(found)
			found = keyLiterals(e.value, at, found)
			s, text := e.value.scalar.(string)
			if inEnv && len(found) == before && e.value.kind == scalarNode && text && len(s) >= 8 && !strings.Contains(s, "{{") && keyNames.MatchString(e.key) {
				found = append(found, Finding{Pos: e.value.pos, Severity: Warning, Check: "key-literal", Path: at, Message: "by its name this is a secret, and it is written out; everybody who may read the board would have it", Advice: keyAdvice})
			}
		}
	}
	return found
}

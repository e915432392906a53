package workflow

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// canonicalForm writes a merged tree as JSON with sorted keys and without what says nothing: comments, order of
// keys, extends, and nulls, except where a null is a value (params) or overrides a parent (profiles).
func canonicalForm(root *node) []byte {
	var b strings.Builder
	writeCanonical(&b, root, nil)
	b.WriteByte('\n')
	return []byte(b.String())
}

func hashOf(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:12])
}

func writeCanonical(b *strings.Builder, n *node, path []string) {
	switch n.kind {
	case mapNode:
		entries := slices.Clone(n.entries)
		slices.SortFunc(entries, func(x, y entry) int { return strings.Compare(x.key, y.key) })
		b.WriteByte('{')
		first := true
		for _, e := range entries {
			at := append(path[:len(path):len(path)], e.key)
			if e.value.null() && !nullCounts(at) || len(at) == 1 && e.key == "extends" {
				continue
			}
			if !first {
				b.WriteByte(',')
			}
			first = false
			writeString(b, e.key)
			b.WriteByte(':')
			writeCanonical(b, e.value, at)
		}
		b.WriteByte('}')
	case listNode:
		b.WriteByte('[')
		for i, item := range n.items {
			if i > 0 {
				b.WriteByte(',')
			}
			writeCanonical(b, item, append(path[:len(path):len(path)], "[]"))
		}
		b.WriteByte(']')
	default:
		switch x := n.scalar.(type) {
		case nil:
			b.WriteString("null")
		case string:
			writeString(b, x)
		case float64:
			b.WriteString(strconv.FormatFloat(x, 'g', -1, 64))
		default:
			fmt.Fprint(b, x)
		}
	}
}

// nullCounts: params.NAME: null is a value; profiles.NAME.KEY: null overrides the parent's.
func nullCounts(path []string) bool {
	return path[0] == "params" && len(path) >= 2 || path[0] == "profiles" && len(path) >= 3
}

// Quote is a text in quotes that both JSON and YAML read back.
func Quote(s string) string {
	var b strings.Builder
	writeString(&b, s)
	return b.String()
}

func writeString(b *strings.Builder, s string) {
	b.WriteByte('"')
	for _, r := range s {
		switch {
		case r == '"' || r == '\\':
			b.WriteByte('\\')
			b.WriteRune(r)
		case r == '\n':
			b.WriteString(`\n`)
		case r == '\t':
			b.WriteString(`\t`)
		case r < 0x20 || r >= 0x7f && r < 0xa0 || r == 0x2028 || r == 0x2029 || r == 0xfeff || r >= 0xfffe && r < 0x10000:
			fmt.Fprintf(b, `\u%04x`, r)
		default:
			b.WriteRune(r)
		}
	}
	b.WriteByte('"')
}

// value is a tree as plain Go values: the form of params.
func (n *node) value() any {
	switch n.kind {
	case mapNode:
		m := make(map[string]any, len(n.entries))
		for _, e := range n.entries {
			m[e.key] = e.value.value()
		}
		return m
	case listNode:
		list := make([]any, len(n.items))
		for i, item := range n.items {
			list[i] = item.value()
		}
		return list
	}
	return n.scalar
}

func sortedSet(m map[string]bool) []string { return slices.Sorted(maps.Keys(m)) }

package board

import (
	"fmt"
	"strconv"
	"strings"
)

// Keys of the state. Numbers are fixed-width hex or decimal, so that byte order is order.

// EventKey is the stored key of event n of a Seq; [EventID] is what people see.
func EventKey(seq uint64, n int) string { return fmt.Sprintf("%016x.%04x", seq, n) }

// EventID turns a stored event key into its public id, "Seq.n" in decimal.
func EventID(key string) string {
	s, n, ok := strings.Cut(key, ".")
	seq, err1 := strconv.ParseUint(s, 16, 64)
	i, err2 := strconv.ParseUint(n, 16, 32)
	if !ok || err1 != nil || err2 != nil {
		return key
	}
	return fmt.Sprintf("%d.%d", seq, i)
}

// ParseEventID is the reverse of [EventID].
func ParseEventID(id string) (key string, err error) {
	s, n, _ := strings.Cut(id, ".")
	seq, err1 := strconv.ParseUint(s, 10, 64)
	i := uint64(0)
	var err2 error
	if n != "" {
		i, err2 = strconv.ParseUint(n, 10, 16)
	}
	if err1 != nil || err2 != nil {
		return "", Errorf(Invalid, "event id %q is not of the form Seq.n", id)
	}
	return EventKey(seq, int(i)), nil
}

// RunID is the public id of a card's n-th run.
func RunID(card string, n uint64) string { return fmt.Sprintf("%s.%d", card, n) }

// RunKey is the stored key of a run id; "" when it is not one.
func RunKey(id string) string {
	card, num, ok := cutLast(id, ".")
	n, err := strconv.ParseUint(num, 10, 64)
	if !ok || err != nil || card == "" {
		return ""
	}
	return fmt.Sprintf("%s.%06d", card, n)
}

// CardOfRun is the card of a run id, "" when it is not one.
func CardOfRun(id string) string {
	card, _, _ := cutLast(id, ".")
	return card
}

// PrefixOfCard is the board prefix of a card id, "" when it is not one.
func PrefixOfCard(id string) string {
	p, num, ok := cutLast(id, "-")
	if _, err := strconv.ParseUint(num, 10, 64); !ok || err != nil {
		return ""
	}
	return p
}

// OrderKey is the stored key of a node's order.
func OrderKey(node, id string) string { return node + "/" + id }

// DueKey is the stored key of a due time.
func DueKey(at int64, kind, key string) string {
	return fmt.Sprintf("%016x/%s/%s", uint64(max(at, 0)), kind, key)
}

// LinkKey is the key of a dependency in TLink; [ChildKey] that of its reverse in TChild.
func LinkKey(child, parent string) string { return child + "/" + parent }

// ChildKey is the reverse of [LinkKey].
func ChildKey(parent, child string) string { return parent + "/" + child }

// SlotKey is the key of a card's slot.
func SlotKey(card, slot string) string { return card + "/" + slot }

// WorkflowKey is the key of a version of a board's workflow.
func WorkflowKey(slug string, version uint64) string { return fmt.Sprintf("%s/%08x", slug, version) }

// StartKey is the stored key of a start at a board time, ms: in the order of time.
func StartKey(at int64, run string) string { return fmt.Sprintf("%016x/%s", uint64(max(at, 0)), run) }

// RunOfStart is the run of a key of [StartKey].
func RunOfStart(key string) string {
	_, run, _ := strings.Cut(key, "/")
	return run
}

// Keys of TFleet.
const (
	FleetKey = "fleet"
	IDsKey   = "ids"
)

func cutLast(s, sep string) (before, after string, found bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

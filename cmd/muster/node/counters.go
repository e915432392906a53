package node

import (
	"muster/cmd/muster/api"
	"muster/mesh"
)

var (
	_ api.Counted = backend{}
	_ api.Denier  = backend{}
)

// Counters implements api.Counted.
func (b backend) Counters() map[string]uint64 {
	s := b.n.store.Stats()
	all := map[string]uint64{
		"log_syncs": s.LogSyncs, "log_writes": s.LogWrites, "log_entries": s.LogEntries, "log_bytes": s.LogWritten,
		"entries": s.Entries, "transactions": s.Txns, "keys": s.Ops, "commits": s.Batches,
		"rounds": s.Rounds, "questions": s.Questions, "refused_seq": s.RefusedSeq, "refused_term": s.RefusedTerm,
	}
	if m, ok := b.n.mesh.(interface{ Stats() mesh.Stats }); ok { // one in memory refuses nobody
		all["denied_handshake"] = m.Stats().HandshakesRefused
	}
	for kind, count := range b.n.denials.copy() {
		all["denied_"+kind] = count
	}
	return all
}

package launcher

import (
	"time"

	"muster/board"
	"muster/board/lease"
)

// commit puts decisions on disk, then does what may follow.
func (r *Reconciler) commit(steps []step) bool {
	changes := make([]change, len(steps))
	for i, st := range steps {
		c := change{key: st.n.id, slot: st.n.slot, file: st.item}
		if st.d.Do == lease.DoRecord {
			c.entry, c.high = &st.d.Entry, st.d.Entry.Mark != lease.MarkNone
		}
		changes[i] = c
	}
	at(atBeforeWrite)
	if err := r.write(changes); err != nil {
		r.broken(err)
		return false
	}
	at(atAfterWrite)
	for _, st := range steps {
		r.orders.Commit(st.n.id, st.n.slot, st.d)
		if st.item != nil {
			r.box.add(st.item)
			st.n.filed(st.item)
		}
		if st.d.Files && st.d.File == lease.ActTaken {
			r.prepare(st.n)
		}
	}
	return true
}

// write makes changes durable, and with them what acknowledgements have changed
// since the last write.
func (r *Reconciler) write(changes []change) error {
	for _, c := range changes {
		delete(r.dirty, c.key)
	}
	for key, slot := range r.dirty {
		e := r.orders.Entry(key)
		changes = append(changes, change{key: key, slot: slot, entry: &e})
	}
	if err := r.journal.write(changes, r.acked); err != nil {
		return err
	}
	r.acked, r.flushAt = nil, time.Time{}
	clear(r.dirty)
	return nil
}

// flush writes acknowledgements that no other write took along.
func (r *Reconciler) flush() error {
	if len(r.acked) == 0 {
		return nil
	}
	return r.write(nil)
}

// ackWait is how long an acknowledgement waits for a write to ride with.
const ackWait = 100 * time.Millisecond

// outcome takes the leader's answer to an item: taken or refused, it is one.
func (r *Reconciler) outcome(it *item, res board.Result) {
	if res.Err != nil {
		r.log.Info("report refused", "run", it.Run, "report", reportName(it.Act), "code", res.Err.Code, "message", res.Err.Message)
	}
	r.acked = append(r.acked, it.N)
	if r.flushAt.IsZero() {
		r.flushAt = time.Now().Add(ackWait)
	}
	n := r.runs[it.Run]
	if it.Act == actNote {
		r.Wake()
		return
	}
	if _, ok := r.orders.Outcome(it.Run, it.Act); ok && n != nil {
		r.dirty[n.id] = n.slot
	}
	if n != nil {
		n.answered(it, res, r.log)
	}
	r.Wake()
}

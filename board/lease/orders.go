package lease

// Push is an order sent to its node ahead of the state: a shortcut, complete in
// itself, which may come late, twice or never.
type Push struct {
	Term  uint64 // of the leader that committed it
	Key   string // launch key: run id + purpose
	Slot  string // card + slot
	Epoch Epoch  // of the run: era and Seq of its claim
	Stop  Epoch  // era and Seq of the stop order; zero for a start
}

// Orders is the deciding part of a node's journal in memory: entries by launch
// key, the highest epoch of each card and slot, and the pushes not yet overtaken
// by the applied state. The launcher loads it from disk, asks Decide, syncs what
// is to be written, and only then calls Commit.
type Orders struct {
	entries map[string]Entry
	high    map[string]Epoch
	pushes  map[string]pushed
}

type pushed struct {
	slot                string
	epoch, stop         Epoch
	startTerm, stopTerm uint64
}

// NewOrders is an empty journal.
func NewOrders() *Orders {
	return &Orders{map[string]Entry{}, map[string]Epoch{}, map[string]pushed{}}
}

// Load takes an entry from disk.
func (o *Orders) Load(key string, e Entry) { o.entries[key] = e }

// LoadHigh takes the highest epoch of a card and slot from disk.
func (o *Orders) LoadHigh(slot string, e Epoch) { o.raise(slot, e) }

// Push remembers a pushed order. It reports false, and forgets it, when its
// term is lower than that of the last contact.
func (o *Orders) Push(p Push, c Clock) bool {
	if p.Term == 0 || !c.TermOK(p.Term) {
		return false
	}
	q := o.pushes[p.Key]
	q.slot, q.epoch = p.Slot, p.Epoch
	if p.Stop == (Epoch{}) {
		q.startTerm = max(q.startTerm, p.Term)
	} else {
		q.stop, q.stopTerm = p.Stop, max(q.stopTerm, p.Term)
	}
	o.pushes[p.Key] = q
	return true
}

// Entry is what the journal has of a key; the zero Entry when nothing.
func (o *Orders) Entry(key string) Entry { return o.entries[key] }

// High is the highest epoch of a card and slot.
func (o *Orders) High(slot string) Epoch { return o.high[slot] }

// Keys lists every key the journal or a push knows, in no order.
func (o *Orders) Keys() []string {
	keys := make([]string, 0, len(o.entries)+len(o.pushes))
	for k := range o.entries {
		keys = append(keys, k)
	}
	for k := range o.pushes {
		if _, twice := o.entries[k]; !twice {
			keys = append(keys, k)
		}
	}
	return keys
}

// Decide is [Next] for a key; it fills in what the journal and the pushes know
// (High, StartTerm, StopTerm, Stop, and Epoch when f has none). A push the
// applied state has overtaken is dropped.
func (o *Orders) Decide(key, slot string, f Facts) Decision {
	e := o.entries[key]
	q, ok := o.pushes[key]
	if f.Epoch == (Epoch{}) {
		f.Epoch = e.Epoch
		if ok {
			f.Epoch = q.epoch
		}
	}
	if ok && f.seen() && !f.Applied.Less(q.stop) {
		delete(o.pushes, key)
		q = pushed{}
	}
	f.High = o.high[slot]
	f.StartTerm, f.StopTerm, f.Stop = q.startTerm, q.stopTerm, q.stop
	return Next(e, f)
}

// Commit takes over what a decision has written to disk.
func (o *Orders) Commit(key, slot string, d Decision) {
	switch d.Do {
	case DoRecord:
		o.entries[key] = d.Entry
		if d.Entry.Mark != MarkNone {
			o.raise(slot, d.Entry.Epoch)
		}
	case DoForget:
		delete(o.entries, key)
	}
}

// Outcome notes that a report of the key has its outcome at the leader, whether
// it was taken or refused, and returns the entry to write; false when the key is
// not known (any more).
func (o *Orders) Outcome(key string, r Report) (Entry, bool) {
	e, ok := o.entries[key]
	if !ok {
		return e, false
	}
	e.Done = e.Done.With(r)
	o.entries[key] = e
	return e, true
}

func (o *Orders) raise(slot string, e Epoch) {
	if o.high[slot].Less(e) {
		o.high[slot] = e
	}
}

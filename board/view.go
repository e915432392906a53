package board

import (
	"bytes"
	"slices"
	"sort"
	"strings"
)

// Table names one bucket of the state.
type Table uint8

// The tables of the state. Numbers are stored in the log: append only, never reuse.
const (
	TFleet    Table = iota + 1 // "fleet" -> Fleet
	TBoard                     // slug -> Board
	TPrefix                    // card prefix -> slug
	TWorkflow                  // slug/version (8 hex) -> WorkflowDoc
	TCard                      // card id -> Card (hot)
	TText                      // card id -> body (cold)
	TRun                       // card id "." %06d -> Run
	THeld                      // run id -> Held: one small row per session not gone
	TEvent                     // %016x "." %04x -> Event
	TLink                      // child "/" parent -> Link
	TChild                     // parent "/" child -> nothing: the reverse of TLink
	TOrder                     // node id "/" %016x "." %04x -> Order
	TNode                      // node id -> Node
	TToken                     // token id (hash of its secret) -> Token
	TRequest                   // request id -> Done
	TReqLog                    // %016x (Seq) -> request id, for a transaction without event
	TOutbox                    // journal id -> Outbox
	TDue                       // %016x (ms) "/" kind "/" key -> Due
	TSlot                      // card id "/" slot -> SlotRec: the lineage of a slot (forgotten, last session)
	TSub                       // card id or "board:" slug "/" address -> Sub
	TNotice                    // address "/" event key -> Notice
	TMailbox                   // address, or card id "/" slot -> Mailbox
	TDelivery                  // card id "/" slot "/" event key "/" kind -> Delivery
	TWebhook                   // slug "/" id -> Webhook
	TStart                     // %016x (ms) "/" run id -> Held: the start of a run, kept for the longest round (M-15)
	TImport                    // slug -> Import: a board that is not there yet
	TCool                      // account -> Cooldown: a rate limit that is not over
	TNeed                      // stored key of a card, run or delivery -> Need: it needs a person
	TAgent                     // agent id -> Agent
	THead                      // organisation "/" stable key -> Head: the agent that has the key now
	TAssign                    // kind "/" target "/" agent id "/" role -> Assignment; and "of/" agent id "/" that key -> Assignment of the agent alone: the reverse
	TOrg                       // organisation -> Org
	THand                      // organisation "/d/" %016x (made) "." %02x (depth) "/" agent id, or "/e/" %016x (since) "/" agent id -> Hand: what its directory is to be told
	tableEnd
)

// Tables is the number of tables, for loops over all of them.
const Tables = int(tableEnd) - 1

var tableNames = [...]string{TFleet: "fleet", TBoard: "board", TPrefix: "prefix", TWorkflow: "workflow", TCard: "card", TText: "text", TRun: "run",
	THeld: "held", TEvent: "event", TLink: "link", TChild: "child", TOrder: "order", TNode: "node", TToken: "token",
	TRequest: "request", TReqLog: "reqlog", TOutbox: "outbox", TDue: "due", TSlot: "slot", TSub: "sub", TNotice: "notice", TMailbox: "mailbox", TDelivery: "delivery", TWebhook: "webhook",
	TStart: "start", TImport: "import", TCool: "cool", TNeed: "need",
	TAgent: "agent", THead: "head", TAssign: "assign", TOrg: "org", THand: "hand"}

func (t Table) String() string {
	if t >= 1 && t < tableEnd {
		return tableNames[t]
	}
	return "?"
}

// View is a consistent reading of the state: one Seq, whole. Values are valid
// only until the view is closed and must not be changed; the typed readers of
// this package copy.
type View interface {
	// Get returns the value, or nil when the key is absent. (No stored value is empty but those of TChild: see Has.)
	Get(t Table, key string) []byte
	Has(t Table, key string) bool
	// Scan calls fn for each key with the prefix that is >= from, in byte order, until fn says false.
	Scan(t Table, prefix, from string, fn func(key string, val []byte) bool)
	// Last returns the greatest key with the prefix and its value, or "" and nil.
	Last(t Table, prefix string) (string, []byte)
	// Seq is the number of transactions in the state, Time the board time of the last one (ms).
	Seq() uint64
	Time() int64
}

// Op is one change of one key.
type Op struct {
	Table  Table
	Delete bool
	Key    string
	Val    []byte
}

// Txn is what one request changes: applied whole or not at all, as one Seq.
type Txn struct {
	Time int64 // board time (ms) at which it was decided
	Ops  []Op
}

// Empty tells that nothing is written.
func (t *Txn) Empty() bool { return len(t.Ops) == 0 }

// Size is about the number of bytes the transaction takes in the log.
func (t *Txn) Size() int {
	n := 16
	for i := range t.Ops {
		n += 8 + len(t.Ops[i].Key) + len(t.Ops[i].Val)
	}
	return n
}

// Bounds of one transaction (architecture.md §2).
const (
	MaxTxnBytes   = 1 << 20
	MaxTxnRecords = 1000
)

// Overlay is a view with changes on top that are not in the state yet: the
// earlier requests of a batch, or the earlier steps of one request.
type Overlay struct {
	base View
	ops  map[tk]Op
	keys [tableEnd][]string // sorted keys changed, by table
	// order are the changes that a [HeldTable] follows, as they came.
	order []tk
	seq   uint64
	time  int64
}

type tk struct {
	t Table
	k string
}

// NewOverlay starts an empty overlay.
func NewOverlay(base View) *Overlay {
	return &Overlay{base: base, ops: map[tk]Op{}, seq: base.Seq(), time: base.Time()}
}

// Apply adds a whole transaction and counts it.
func (o *Overlay) Apply(t *Txn) {
	for _, op := range t.Ops {
		o.Put(op)
	}
	o.seq++
	o.time = max(o.time, t.Time)
}

// Put adds one change.
func (o *Overlay) Put(op Op) {
	k := tk{op.Table, op.Key}
	if Watched(op.Table) {
		o.order = append(o.order, k)
	}
	if _, ok := o.ops[k]; !ok {
		ks := o.keys[op.Table]
		i, _ := slices.BinarySearch(ks, op.Key)
		o.keys[op.Table] = slices.Insert(ks, i, op.Key)
	}
	o.ops[k] = op
}

// Seq and Time implement View.
func (o *Overlay) Seq() uint64 { return o.seq }

// Time is the board time of the newest transaction seen.
func (o *Overlay) Time() int64 { return o.time }

// Get implements View.
func (o *Overlay) Get(t Table, key string) []byte {
	if op, ok := o.ops[tk{t, key}]; ok {
		if op.Delete {
			return nil
		}
		return op.Val
	}
	return o.base.Get(t, key)
}

// Has implements View.
func (o *Overlay) Has(t Table, key string) bool {
	if op, ok := o.ops[tk{t, key}]; ok {
		return !op.Delete
	}
	return o.base.Has(t, key)
}

// Scan implements View: a merge of the base and the changes.
func (o *Overlay) Scan(t Table, prefix, from string, fn func(key string, val []byte) bool) {
	ks := o.keys[t]
	if len(ks) == 0 {
		o.base.Scan(t, prefix, from, fn)
		return
	}
	lo := max(prefix, from)
	i, _ := slices.BinarySearch(ks, lo)
	more := true
	emit := func(k string) bool {
		if op := o.ops[tk{t, k}]; !op.Delete {
			return fn(k, op.Val)
		}
		return true
	}
	o.base.Scan(t, prefix, from, func(key string, val []byte) bool {
		for i < len(ks) && ks[i] < key {
			if more = emit(ks[i]); !more {
				return false
			}
			i++
		}
		if i < len(ks) && ks[i] == key {
			more = emit(key)
			i++
			return more
		}
		more = fn(key, val)
		return more
	})
	for ; more && i < len(ks) && strings.HasPrefix(ks[i], prefix); i++ {
		more = emit(ks[i])
	}
}

// Last implements View.
func (o *Overlay) Last(t Table, prefix string) (string, []byte) {
	bk, bv := o.base.Last(t, prefix)
	if bk != "" {
		if op, ok := o.ops[tk{t, bk}]; ok && op.Delete { // rare: fall back to a scan
			bk, bv = "", nil
			o.Scan(t, prefix, "", func(k string, v []byte) bool { bk, bv = k, v; return true })
			return bk, bv
		}
	}
	ks := o.keys[t]
	for i := len(ks) - 1; i >= 0; i-- {
		if !strings.HasPrefix(ks[i], prefix) || ks[i] < bk {
			continue
		}
		if op := o.ops[tk{t, ks[i]}]; !op.Delete {
			return ks[i], op.Val
		}
	}
	return bk, bv
}

// MemView is a whole state in memory: the twin of the stored one, for tests and
// for `workflow test`.
type MemView struct {
	tabs [tableEnd]memTable
	seq  uint64
	time int64
}

type memTable struct {
	keys []string
	vals map[string][]byte
}

// NewMemView makes an empty state.
func NewMemView() *MemView { return &MemView{} }

// Apply changes the state as the FSM does.
func (m *MemView) Apply(t *Txn) {
	for _, op := range t.Ops {
		tab := &m.tabs[op.Table]
		if tab.vals == nil {
			tab.vals = map[string][]byte{}
		}
		i, found := slices.BinarySearch(tab.keys, op.Key)
		switch {
		case op.Delete && found:
			tab.keys = slices.Delete(tab.keys, i, i+1)
			delete(tab.vals, op.Key)
		case !op.Delete:
			if !found {
				tab.keys = slices.Insert(tab.keys, i, op.Key)
			}
			tab.vals[op.Key] = bytes.Clone(op.Val)
		}
	}
	m.seq++
	m.time = max(m.time, t.Time)
}

// Seq implements View.
func (m *MemView) Seq() uint64 { return m.seq }

// Time implements View.
func (m *MemView) Time() int64 { return m.time }

// Get implements View.
func (m *MemView) Get(t Table, key string) []byte { return m.tabs[t].vals[key] }

// Has implements View.
func (m *MemView) Has(t Table, key string) bool { _, ok := m.tabs[t].vals[key]; return ok }

// Scan implements View.
func (m *MemView) Scan(t Table, prefix, from string, fn func(key string, val []byte) bool) {
	tab := &m.tabs[t]
	i := sort.SearchStrings(tab.keys, max(prefix, from))
	for ; i < len(tab.keys) && strings.HasPrefix(tab.keys[i], prefix); i++ {
		if !fn(tab.keys[i], tab.vals[tab.keys[i]]) {
			return
		}
	}
}

// Last implements View.
func (m *MemView) Last(t Table, prefix string) (string, []byte) {
	tab := &m.tabs[t]
	i := sort.Search(len(tab.keys), func(i int) bool {
		return tab.keys[i] > prefix && !strings.HasPrefix(tab.keys[i], prefix)
	})
	if i == 0 || !strings.HasPrefix(tab.keys[i-1], prefix) {
		return "", nil
	}
	return tab.keys[i-1], tab.vals[tab.keys[i-1]]
}

var (
	_ View = (*Overlay)(nil)
	_ View = (*MemView)(nil)
)

package board

// What happened to a finished card leaves the state when it is older than the
// board's `keep` (M-37): events and attempts, in slices, but for the newest of
// each. The card itself, its text, its links and its newest words stay.

// Kinds of due times of retention.
const (
	DueKeep    = "keep"     // of a card: something of it may be old enough
	DueKeepAll = "keep_all" // of a board: its `keep` is shorter now, or its cards were imported
)

// Bounds of retention.
const (
	keptAlways  = 20   // newest events and newest attempts of a card, however old
	keepPerStep = 200  // records that one step takes away
	keepLooks   = 2000 // cards that one step of a board looks at
	dayMS       = 24 * 60 * 60 * 1000
)

// keepTime notes when a card that was just finished loses what is old, and forgets it when the card is taken up again.
func (t *tx) keepTime(c *Card) {
	switch done := Finished(c.Stored); {
	case done && c.KeepAt == 0:
		if b := GetBoard(t, c.Board); b != nil {
			c.KeepAt = t.env.Now + b.keepMS()
			t.putDue(c.KeepAt, DueKeep, c.ID)
		}
	case !done && c.KeepAt != 0:
		t.delDue(c.KeepAt, DueKeep, c.ID)
		c.KeepAt = 0
	}
}

func (b *Board) keepMS() int64 { return max(b.Keep, 1) * dayMS }

// dueKeep takes away what is old of one card.
func (t *tx) dueKeep(id string) {
	c := GetCard(t, id)
	if c == nil || c.KeepAt == 0 || c.KeepAt > t.env.Now { // it was taken up again since, or has another time
		return
	}
	if b := GetBoard(t, c.Board); b != nil {
		t.keepCard(b, c, keepPerStep)
	}
}

// keepAll begins to look at all finished cards of a board.
func (t *tx) keepAll(b *Board) {
	b.Sweep = b.Prefix + "-"
	t.putDue(t.env.Now+1, DueKeepAll, b.Slug)
}

// dueKeepAll looks at the next cards of a board, and goes on in the next step.
func (t *tx) dueKeepAll(slug string) {
	b := GetBoard(t, slug)
	if b == nil || b.Sweep == "" {
		return
	}
	left, looks, more := keepPerStep, 0, false
	var cards []*Card // gathered first: what is written moves under a scan
	scan(t, TCard, b.Prefix+"-", b.Sweep, func(_ string, c *Card) bool {
		if looks++; Finished(c.Stored) {
			cards = append(cards, c)
		}
		b.Sweep = c.ID + "\x00"
		more = len(cards) >= keepPerStep/4 || looks >= keepLooks
		return !more
	})
	for _, c := range cards {
		t.delDue(c.KeepAt, DueKeep, c.ID)
		left -= t.keepCard(b, c, max(left, 1)) // one that does not end here has a due time of its own
	}
	if !more {
		b.Sweep = ""
	} else {
		t.putDue(t.env.Now+1, DueKeepAll, slug)
	}
	t.putBoard(b)
}

// keepCard takes away at most so many records of a finished card, counts them,
// and notes when the next of it will be old enough.
func (t *tx) keepCard(b *Board, c *Card, most int) int {
	if c.KeepAt = 0; Finished(c.Stored) {
		k := &keeping{t: t, c: c, before: t.env.Now - b.keepMS(), most: most}
		k.events()
		k.runs()
		switch {
		case k.n >= k.most:
			c.KeepAt = t.env.Now + 1
		case k.young != 0:
			c.KeepAt = max(k.young+b.keepMS(), t.env.Now+1)
		}
		t.putDue(c.KeepAt, DueKeep, c.ID)
		most = k.n
	} else {
		most = 0
	}
	t.put(TCard, c.ID, c) // not putCard: nothing of the card changed
	return most
}

// keeping is one card that loses what is old.
type keeping struct {
	t      *tx
	c      *Card
	before int64 // what is not after it is old
	most   int   // records to take away
	n      int   // taken
	young  int64 // time of the oldest that stays only because it is young; 0: none
}

// old tells of something beyond the newest whether it leaves.
func (k *keeping) old(at int64) bool {
	if at <= k.before {
		return true
	}
	if k.young == 0 || at < k.young {
		k.young = at
	}
	return false
}

// events cuts what leaves out of the card's two chains: of its events, and of its comments.
func (k *keeping) events() {
	var last, said *Event // newest-first: the ones before, which name the next; nil: the card names it
	gap, saidGap, saidNext := false, false, ""
	key := k.c.LastEvent
	for i := 0; key != "" && k.n < k.most; i++ {
		e := GetEvent(k.t, key)
		if e == nil {
			key = ""
			break
		}
		if i >= keptAlways && k.old(e.At) {
			k.dropEvent(e)
			if gap = true; e.Said {
				saidGap, saidNext = true, e.SaidBefore
			}
		} else {
			if gap {
				k.chain(last, e.ID)
			}
			if last, gap = e, false; e.Said {
				if saidGap {
					k.thread(said, e.ID)
				}
				said, saidGap = e, false
			}
		}
		key = e.Prev
	}
	if gap {
		k.chain(last, key)
	}
	if saidGap {
		k.thread(said, saidNext)
	}
}

// dropEvent takes an event away. It carries its request's id, which may still be known: that is written down elsewhere (see [tx.oldest]).
func (k *keeping) dropEvent(e *Event) {
	if e.Req != "" && k.t.Has(TRequest, e.Req) {
		k.t.write(Op{Table: TReqLog, Key: EventKey(seqOfKey(e.ID), 0), Val: []byte(e.Req)})
	}
	k.t.del(TEvent, e.ID)
	k.n++
}

func (k *keeping) chain(e *Event, next string) {
	if e == nil {
		k.c.LastEvent = next
		return
	}
	e.Prev = next
	k.again(e)
}

func (k *keeping) thread(e *Event, next string) {
	if e == nil {
		k.c.LastSaid = next
		return
	}
	e.SaidBefore = next
	k.again(e)
}

// again writes an event that stays; a large one counts for several records.
func (k *keeping) again(e *Event) {
	k.t.put(TEvent, e.ID, e)
	k.n += 1 + len(e.Payload)>>12
}

// runs takes attempts away that are over and whose session is gone, but the one that a slot would go on with.
func (k *keeping) runs() {
	if k.n >= k.most || k.c.Runs <= keptAlways {
		return
	}
	slots := map[string]bool{}
	scan(k.t, TSlot, k.c.ID+"/", "", func(_ string, s *SlotRec) bool { slots[s.Run] = s.Forgotten == 0; return true })
	var ids []string
	EachRun(k.t, k.c.ID, func(r *Run) bool {
		if r.N+keptAlways > k.c.Runs || k.n+len(ids) >= k.most {
			return false
		}
		if r.State == RunEnded && r.Gone != "" && !slots[r.ID] && k.old(r.Ended) {
			ids = append(ids, r.ID)
		}
		return true
	})
	for _, id := range ids {
		k.t.del(TRun, RunKey(id))
		k.n++
	}
}

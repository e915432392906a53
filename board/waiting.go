package board

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"muster/board/workflow"
)

// waiting are the cards that places may be kept for: those at rest in a status
// from which a start may lead to what the reserve of a cap is for. They are read
// when they are first asked for, and followed from then on.
type waiting struct {
	room   *Room
	loaded bool
	at     map[string]place
	cards  map[place][]string // in order, so that every reading asks them alike
	may    map[place]bool     // of board and status
}

// place is where cards wait.
type place struct {
	idle          bool // what they last waited for was no room: they are asked last
	board, status string
	machine       string // that the card names
}

// placeOf is where a card waits.
func placeOf(c *Glance) place {
	at := place{board: c.Board, status: c.Status, machine: c.Machine}
	switch c.Waits {
	case "", "cap", "memory", "eligible", "cooldown", "set_aside", "pause":
	default:
		at.idle = true
	}
	return at
}

// Index reads what places may be kept for, so that [Room.Change] follows it.
func (r *Room) Index(v View) { r.waits.load(v) }

// Waits says whether the card waits where places may be kept for it: when it
// changes, a place that was kept from others may come free.
func (r *Room) Waits(card string) bool { _, waits := r.waits.at[card]; return waits }

func (w *waiting) load(v View) {
	w.loaded, w.at, w.cards, w.may = true, map[string]place{}, map[place][]string{}, map[place]bool{}
	if !slices.ContainsFunc(w.room.caps, func(c *capCount) bool { return c.cap.Reserve != nil }) {
		return
	}
	EachGlance(v, nil, func(g *Glance) bool { w.put(g); return true })
}

// set follows a card; nil: it is not there.
func (w *waiting) set(id string, c *Card) {
	if !w.loaded {
		return
	}
	was, had := w.at[id]
	if w.room.trying {
		w.room.back(func() {
			w.drop(id)
			if had {
				w.insert(id, was)
			}
		})
	}
	w.drop(id)
	if c != nil {
		w.put(c.glance())
	}
}

func (w *waiting) put(c *Glance) {
	if !c.Current && !Finished(c.Stored) {
		if at := placeOf(c); w.watched(place{board: c.Board, status: c.Status}) {
			w.insert(c.ID, at)
		}
	}
}

func (w *waiting) insert(id string, at place) {
	list := w.cards[at]
	if i, found := slices.BinarySearch(list, id); !found {
		w.cards[at] = slices.Insert(list, i, id)
	}
	w.at[id] = at
}

func (w *waiting) drop(id string) {
	at, had := w.at[id]
	if !had {
		return
	}
	list := w.cards[at]
	if i, found := slices.BinarySearch(list, id); found {
		w.cards[at] = slices.Delete(list, i, i+1)
	}
	if len(w.cards[at]) == 0 {
		delete(w.cards, at)
	}
	delete(w.at, id)
}

// any asks for cards that places of the cap may be kept for, from the row's start,
// until one says yes.
func (w *waiting) any(v View, c *capCount, row *Held, ask func(card string) bool) bool {
	if !w.loaded {
		w.load(v)
		if w.room.trying { // what was read holds changes that are taken back
			w.room.back(func() { w.loaded = false })
		}
	}
	looks := 0
	for _, at := range slices.SortedFunc(maps.Keys(w.cards), place.compare) {
		if !c.binds(at.board) || !w.mayBeFor(c, at) || c.cap.Scope == "machine" && elsewhere(v, at, row.Node) {
			continue
		}
		list := w.cards[at]
		for _, card := range list[:min(len(list), maxLook)] {
			if looks++; looks > maxLooks {
				return false
			}
			if ask(card) {
				return true
			}
		}
	}
	return false
}

// elsewhere says that all cards of a place are bound to another machine. Where
// the board has a home it is not the card that says so.
func elsewhere(v View, at place, node string) bool {
	if at.machine == "" {
		return false
	}
	if b := GetBoard(v, at.board); b == nil || b.Home != "" {
		return false
	}
	n, err := FindNode(v, at.machine)
	return err != nil || n.ID != node
}

func (p place) compare(q place) int {
	switch {
	case p.idle == q.idle:
	case q.idle:
		return -1
	default:
		return 1
	}
	return cmp.Or(strings.Compare(p.board, q.board), strings.Compare(p.status, q.status), strings.Compare(p.machine, q.machine))
}

// watched says whether some cap may keep a place for cards that wait there.
func (w *waiting) watched(at place) bool {
	may, known := w.may[at]
	if !known {
		may = slices.ContainsFunc(w.room.caps, func(c *capCount) bool { return c.cap.Reserve != nil && c.binds(at.board) && w.mayBeFor(c, at) })
		w.may[at] = may
	}
	return may
}

// mayBeFor says whether a start of a card that waits there may enter a status
// that the reserve is for; only what the file alone decides is looked at.
func (w *waiting) mayBeFor(c *capCount, at place) bool {
	f := w.room.boards[at.board].flow
	if f == nil || f.err != nil {
		return false
	}
	for _, tr := range f.wf.Transitions(at.status, f.wf.Dispatch.Start) {
		if tr.Target == nil || !tr.Admits("platform") || f.never(at.status, tr.Guard) {
			continue
		}
		targets, open := tr.Target.Outcomes()
		if open || slices.ContainsFunc(targets, func(to string) bool { return statusMatches(f.wf, c.cap.Reserve.For, to) }) {
			return true
		}
	}
	return false
}

// statusMatches holds the parts of a filter that a status decides against one.
func statusMatches(wf *workflow.Workflow, filter workflow.Filter, status string) bool {
	for _, m := range filter {
		switch m.Key {
		case "status":
			if !slices.Contains(m.Any, any(status)) {
				return false
			}
		case "stored":
			if !slices.Contains(m.Any, any(wf.StoredAs(status))) {
				return false
			}
		}
	}
	return true
}

package board

// Glance is what of a card tells where it stands. A node with many cards reads
// these of all of them at once, when a term begins (goals P8 and P10): no more
// of a record is decoded, and nothing is allocated for a card.
type Glance struct {
	ID, Board, Status, Stored string
	SubtaskOf, Machine        string
	Waits                     string // check of the reason why it waits
	Current                   bool   // it has a current run
	Attention                 bool   // a person is needed
}

// EachGlance reads the cards of a board (all boards when b is nil) as
// [EachCard] does. The Glance is used again for the next card: copy what stays.
func EachGlance(v View, b *Board, fn func(*Glance) bool) {
	prefix := ""
	if b != nil {
		prefix = b.Prefix + "-"
	}
	var (
		g     Glance
		names = map[string]string{} // boards and statuses, each allocated once
		there = map[string]bool{}
	)
	v.Scan(TCard, prefix, "", func(key string, val []byte) bool {
		if !g.read(key, val, names) {
			return true
		}
		ok, known := there[g.Board]
		if !known {
			ok = b != nil || v.Has(TBoard, g.Board) // a board that is being imported is not there yet
			there[g.Board] = ok
		}
		return !ok || fn(&g)
	})
}

// read takes the fields out of a stored card; false: it cannot be decoded.
func (g *Glance) read(key string, val []byte, names map[string]string) bool {
	if len(val) == 0 || val[0] != codecVersion {
		return false
	}
	*g = Glance{ID: key}
	w := wire{src: val[1:]}
	for at := 0; at < len(w.src); {
		f, err := w.field(at)
		if err != nil {
			return false
		}
		at = int(f.end)
		if f.kind != kindBytes {
			continue
		}
		switch f.tag {
		case cardBoard:
			g.Board = name(names, w.value(&f))
		case cardStatus:
			g.Status = name(names, w.value(&f))
		case cardStored:
			g.Stored = name(names, w.value(&f))
		case cardRun:
			g.Current = true
		case cardSubtaskOf:
			g.SubtaskOf = string(w.value(&f))
		case cardMachine:
			g.Machine = name(names, w.value(&f))
		case cardWaits:
			g.Waits = checkOf(w.value(&f), names)
		case cardAttention:
			g.Attention = true
		}
	}
	return true
}

// checkOf is the check of a stored [Reason].
func checkOf(val []byte, names map[string]string) string {
	if len(val) == 0 {
		return ""
	}
	w := wire{src: val[1:]}
	if f, err := w.field(0); err == nil && f.tag == reasonCheck && f.kind == kindBytes {
		return name(names, w.value(&f))
	}
	return ""
}

// name is the one copy of a text that many cards have.
func name(names map[string]string, b []byte) string {
	s, ok := names[string(b)]
	if !ok {
		s = string(b)
		names[s] = s
	}
	return s
}

// glance is what [EachGlance] would read of a card.
func (c *Card) glance() *Glance {
	return &Glance{ID: c.ID, Board: c.Board, Status: c.Status, Stored: c.Stored, SubtaskOf: c.SubtaskOf, Machine: c.Machine,
		Waits: c.Waits.Check, Current: c.Run != "", Attention: c.Attention.Check != ""}
}

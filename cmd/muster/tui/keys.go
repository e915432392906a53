package tui

import "muster/board"

// key takes a key by what is shown.
func (m *model) key(k keyMsg) []ask {
	switch {
	case k.name == "ctrl+c":
		return []ask{askQuit{}}
	case m.form != nil:
		return m.formKey(k)
	case m.menu != nil:
		return m.menuKey(k)
	case m.typing:
		m.filterKey(k)
		return nil
	}
	m.toast, m.bad = "", false
	if asks, ok := m.viewKey(k); ok {
		return asks
	}
	return m.everyKey(k)
}

func (m *model) paste(text string) []ask {
	switch {
	case m.form != nil && !m.form.busy && len(m.form.fields) > 0 && m.form.fields[m.form.at].choices == nil:
		m.form.fields[m.form.at].in.insert(text)
	case m.typing:
		m.filter.insert(text)
		m.cols.setFilter(m.filter.String())
	}
	return nil
}

func (m *model) filterKey(k keyMsg) {
	switch k.name {
	case "enter", "down":
		m.typing = false
		return
	case "esc":
		m.typing, m.filter = false, lineInput{}
	default:
		m.filter.key(k)
	}
	m.cols.setFilter(m.filter.String())
}

// viewKey takes the keys of one view.
func (m *model) viewKey(k keyMsg) ([]ask, bool) {
	switch m.view {
	case viewBoard:
		return m.boardKey(k)
	case viewCard:
		return m.cardKey(k)
	case viewFleet:
		switch k.name {
		case "D":
			return m.drain(), true
		case "enter":
			return nil, true
		}
	case viewInbox:
		if k.name == "d" && len(m.inbox.Notices) > 0 {
			last := m.inbox.Notices[len(m.inbox.Notices)-1].Event
			return []ask{askDo{verb: board.VInboxAck, args: board.InboxAck{UpTo: last}, say: "all read", again: true}}, true
		}
	}
	return m.listKey(k)
}

// rowsShown is about how many rows of a view there are, for a page of them.
func (m *model) rowsShown() int { return max(m.h-7, 1) }

func (m *model) boardKey(k keyMsg) ([]ask, bool) {
	page := max(m.rowsShown()/cardRows, 1)
	switch k.name {
	case "h", "left":
		m.cols.walk(-1, 0)
	case "l", "right":
		m.cols.walk(1, 0)
	case "j", "down":
		m.cols.walk(0, 1)
	case "k", "up":
		m.cols.walk(0, -1)
	case "pgdown", "ctrl+f":
		m.cols.walk(0, page)
	case "pgup", "ctrl+b":
		m.cols.walk(0, -page)
	case "g", "home":
		m.cols.choose(m.cols.col, 0)
	case "G", "end":
		m.cols.choose(m.cols.col, 1<<30)
	case "enter":
		return m.open(m.cols.sel), true
	case "esc":
		if len(m.filter.text) > 0 {
			m.filter = lineInput{}
			m.cols.setFilter("")
		}
	case "q":
		return []ask{askQuit{}}, true
	default:
		return nil, false
	}
	return nil, true
}

func (m *model) cardKey(k keyMsg) ([]ask, bool) {
	c := &m.card
	switch k.name {
	case "1", "2", "3", "4":
		return m.turn(tabID(k.name[0] - '1')), true
	case "tab":
		return m.turn((c.tab + 1) % 4), true
	case "j", "down":
		c.scroll(1)
	case "k", "up":
		c.scroll(-1)
	case "pgdown", "space", "ctrl+f":
		c.scroll(m.rowsShown())
	case "pgup", "ctrl+b":
		c.scroll(-m.rowsShown())
	case "g", "home":
		c.scroll(-len(c.rows))
	case "G", "end":
		c.scroll(len(c.rows))
	case "esc", "q":
		m.view, m.card = m.from, cardView{}
	default:
		return nil, false
	}
	return nil, true
}

// listKey walks a list.
func (m *model) listKey(k keyMsg) ([]ask, bool) {
	most := 0
	switch m.view {
	case viewNeeds:
		most = len(m.needs)
	case viewInbox:
		most = len(m.inbox.Notices)
	case viewHelp:
		most = 10 * len(helpKeys) // its drawing knows how many rows there are
	case viewFleet:
		if m.fleet != nil {
			most = len(m.fleet.Nodes)
		}
	}
	by := 0
	switch k.name {
	case "j", "down":
		by = 1
	case "k", "up":
		by = -1
	case "pgdown", "ctrl+f":
		by = m.rowsShown()
	case "pgup", "ctrl+b":
		by = -m.rowsShown()
	case "g", "home":
		by = -m.list
	case "G", "end":
		by = most
	case "enter":
		return m.open(m.target()), true
	case "esc", "q":
		m.view, m.list = viewBoard, 0
		return nil, true
	default:
		return nil, false
	}
	m.list = min(max(m.list+by, 0), max(most-1, 0))
	return nil, true
}

// everyKey takes the keys that every view has.
func (m *model) everyKey(k keyMsg) []ask {
	id := m.target()
	switch k.name {
	case "?":
		m.show(viewHelp)
	case "b":
		m.show(viewBoard)
	case "f":
		m.show(viewFleet)
		return m.read("sessions", askSessions{})
	case "a":
		m.show(viewNeeds)
	case "i":
		m.show(viewInbox)
		return m.read("inbox", askInbox{})
	case "B":
		return m.boards()
	case "/":
		m.show(viewBoard)
		m.typing, m.filter.at = true, len(m.filter.text)
	case "n":
		return m.addCard()
	case "p":
		return m.pause()
	case "m", "c", "u", "y", "r", "s", "x", "A", "S":
		if id == "" {
			m.say("no card is chosen", true)
			return nil
		}
		return m.cardWord(k.name, id)
	}
	return nil
}

// cardWord is what a key says of a card.
func (m *model) cardWord(key, id string) []ask {
	switch key {
	case "m":
		return m.read("moves/"+id, askMoves{id})
	case "A":
		return []ask{askAttach{id}}
	case "S":
		return m.sendText(id)
	}
	return m.fire(id, map[string]string{"c": "comment", "u": "unblock", "y": "complete", "r": "request_changes", "s": "start", "x": "stop_run"}[key])
}

func (m *model) show(v viewID) {
	if v != m.view {
		m.view, m.list, m.card = v, 0, cardView{}
	}
}

package tui

import (
	"slices"
	"time"

	"muster/cmd/muster/api"
)

// What is shown.
type viewID int

const (
	viewBoard viewID = iota
	viewCard
	viewFleet
	viewNeeds
	viewInbox
	viewHelp
)

// Messages: what the person did, and what the node told.
type (
	keyMsg   struct{ name, text string } // a key by its name, and the text that it types
	sizeMsg  struct{ w, h int }
	pasteMsg string
	tickMsg  struct{}

	liveMsg struct { // one message of the live view; what it does not tell is nil
		age   *int64 // ms; how old what the node knows is
		board *api.LiveBoard
		cards *api.LiveCards
		fleet *api.Status
		needs *api.Needs
	}
	lostMsg struct { // the live view has ended, or could not be had again
		why string
	}
	cardMsg struct {
		id     string
		detail api.CardDetail
		why    api.Why
		err    error
	}
	movesMsg struct {
		id   string
		list []api.Move
		err  error
	}
	eventsMsg struct {
		id   string
		list []api.Event
		err  error
	}
	diffMsg struct {
		id   string
		diff api.Diff
		err  error
	}
	logMsg struct {
		run   string
		chunk api.LogChunk
		err   error
	}
	inboxMsg struct {
		inbox api.Inbox
		err   error
	}
	sessionsMsg struct {
		list []api.Session
		err  error
	}
	doneMsg struct { // a request has its outcome
		ask  askDo
		said said
		id   string // to ask again with, of one whose outcome is unknown
		err  error
	}
	attachedMsg struct { // the person is back from a session's terminal
		text string
		left bool // because they left it; else what they type may be meant for what they looked at
	}
)

// Asks: what the model wants done. They are values; the wire does them.
type (
	ask       any
	askBoard  struct{ slug string } // follow this board, and no other
	askCard   struct{ id string }
	askMoves  struct{ id string }
	askEvents struct{ id string }
	askDiff   struct{ id string }
	askLog    struct { // the next piece, when there is one
		run  string
		from int64
	}
	askInbox    struct{}
	askSessions struct{}
	askDo       struct { // a request, executed once
		verb  string
		args  any
		id    string // of a request that was sent before
		say   string // what the person is told when it is done
		form  int    // of which form; 0: of none
		card  string
		again bool // inbox: what was read is read again
	}
	askAttach struct{ id string }
	askTick   struct{}
	askQuit   struct{}
)

// How things stand with the node.
const (
	awayAfter  = 800 * time.Millisecond // a connection that comes back sooner is not worth a word
	staleAfter = 12 * time.Second       // of what the node knows
)

// model is the whole program as values.
type model struct {
	w, h  int
	now   time.Time
	slug  string // board that is asked for
	view  viewID
	from  viewID // where help or a card was opened
	boxes        // form and menu

	board  *api.LiveBoard // without its cards
	cols   columns
	fleet  *api.Status
	needs  []api.Need
	inbox  api.Inbox
	sess   []api.Session
	filter lineInput
	typing bool // in the filter

	heard   time.Time // when the node last said something
	age     *int64    // of what it knew then
	lost    time.Time // since when it does not answer; zero: it does
	lostWhy string
	ticking bool

	card   cardView
	list   int    // the row that is chosen in a list view
	toast  string // the last outcome
	bad    bool
	asking map[string]bool // reads on their way, by what they read; true: ask again after
}

func newModel(slug string) *model {
	return &model{w: 80, h: 24, slug: slug, asking: map[string]bool{}, cols: newColumns()}
}

// begin is what is asked first.
func (m *model) begin() []ask { return []ask{askBoard{m.slug}} }

// update takes a message and answers what is to be done.
func (m *model) update(msg any) []ask {
	switch x := msg.(type) {
	case sizeMsg:
		m.w, m.h = max(x.w, 1), max(x.h, 1)
		m.card.shape(m.textWidth())
		return nil
	case keyMsg:
		return m.key(x)
	case pasteMsg:
		return m.paste(string(x))
	case liveMsg:
		return m.live(x)
	case lostMsg:
		return m.away(x)
	case tickMsg:
		m.ticking = false
		return m.tick()
	case doneMsg:
		return m.done(x)
	case attachedMsg:
		if m.say(x.text, false); !x.left {
			m.form, m.menu, m.toast = nil, &menu{title: line(x.text)}, ""
		}
		return m.reload()
	}
	return m.answer(msg)
}

// answer takes what a read has brought.
func (m *model) answer(msg any) []ask {
	switch x := msg.(type) {
	case cardMsg:
		return append(m.again("card/"+x.id, askCard{x.id}), m.gotCard(x)...)
	case movesMsg:
		m.menuOfMoves(x)
	case eventsMsg:
		m.gotEvents(x)
		return m.again("events/"+x.id, askEvents{x.id})
	case diffMsg:
		m.gotDiff(x)
	case logMsg:
		return m.gotLog(x)
	case inboxMsg:
		if m.inbox = x.inbox; x.err != nil {
			m.fail(x.err)
		}
		return m.again("inbox", askInbox{})
	case sessionsMsg:
		m.sess = x.list
		return m.again("sessions", askSessions{})
	}
	return nil
}

// read asks for something unless that is on its way; then it is asked for again after.
func (m *model) read(what string, a ask) []ask {
	if _, on := m.asking[what]; on {
		m.asking[what] = true
		return nil
	}
	m.asking[what] = false
	return []ask{a}
}

func (m *model) again(what string, a ask) []ask {
	dirty := m.asking[what]
	delete(m.asking, what)
	if dirty {
		return m.read(what, a)
	}
	return nil
}

func (m *model) live(x liveMsg) (asks []ask) {
	m.heard, m.age, m.lost, m.lostWhy = m.now, x.age, time.Time{}, ""
	changed := false
	switch {
	case x.board != nil:
		list := x.board.List
		x.board.List = nil
		m.board = x.board
		m.cols.reset(m.board.Columns, list)
		changed = true
	case x.cards != nil:
		for i := range x.cards.List {
			m.cols.put(&x.cards.List[i])
			changed = changed || x.cards.List[i].ID == m.card.id
		}
		for _, id := range x.cards.Gone {
			m.cols.drop(id)
			changed = changed || id == m.card.id
		}
		if m.view == viewInbox {
			asks = append(asks, m.read("inbox", askInbox{})...)
		}
	case x.fleet != nil:
		m.fleet = x.fleet
		if m.view == viewFleet {
			asks = append(asks, m.read("sessions", askSessions{})...)
		}
	case x.needs != nil:
		m.needs = x.needs.List
	}
	if changed && m.card.id != "" {
		asks = append(asks, m.reload()...)
	}
	return asks
}

// reload reads the open card again.
func (m *model) reload() []ask {
	if m.card.id == "" {
		return nil
	}
	asks := m.read("card/"+m.card.id, askCard{m.card.id})
	if m.card.tab == tabTimeline {
		asks = append(asks, m.read("events/"+m.card.id, askEvents{m.card.id})...)
	}
	return asks
}

func (m *model) away(x lostMsg) []ask {
	if m.lost.IsZero() {
		m.lost = m.now
	}
	if x.why != "" {
		m.lostWhy = x.why
	}
	return m.tick()
}

// tick keeps the time of what is stale; while all is well nothing ticks.
func (m *model) tick() []ask {
	if m.ticking || m.lost.IsZero() {
		return nil
	}
	m.ticking = true
	return []ask{askTick{}}
}

func (m *model) done(x doneMsg) []ask {
	var asks []ask
	if x.ask.again {
		asks = m.read("inbox", askInbox{})
	}
	if x.ask.form != 0 && m.form != nil && m.form.number == x.ask.form {
		m.form.busy = false
		if x.err != nil {
			m.form.wrong, m.form.request = words(x.err), x.id
			return asks
		}
		m.form = nil
	}
	if x.err != nil {
		m.fail(x.err)
		return asks
	}
	m.say(outcome(x), false)
	if x.ask.card != "" && x.ask.card == m.card.id {
		asks = append(asks, m.reload()...)
	}
	return asks
}

func (m *model) say(text string, bad bool) { m.toast, m.bad = line(text), bad }

func (m *model) fail(err error) { m.say(words(err), true) }

// role tells whether the person may do what these roles may; it says so when not.
func (m *model) role(roles ...string) bool {
	switch {
	case m.board == nil:
		m.say("no board has been read yet", true)
		return false
	case slices.Contains(roles, m.board.You.Role):
		return true
	}
	m.say("you are a "+m.board.You.Role+" at "+m.board.You.Node+": that is for a "+roles[0]+" (a manager can change it: muster node set "+m.board.You.Node+" local="+roles[0]+")", true)
	return false
}

// target is the card that a key is about.
func (m *model) target() string {
	switch m.view {
	case viewBoard:
		return m.cols.sel
	case viewCard:
		return m.card.id
	case viewNeeds:
		if m.list < len(m.needs) {
			return m.needs[m.list].Card
		}
	case viewInbox:
		if m.list < len(m.inbox.Notices) {
			return m.inbox.Notices[m.list].Card
		}
	}
	return ""
}

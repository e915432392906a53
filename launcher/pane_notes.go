package launcher

import (
	"sync"
	"time"
)

// paneQuiet is how long a pane prints nothing before it counts as quiet: a program
// at work moves something on its screen.
const paneQuiet = 2 * time.Second

// paneState is what a keeper tells of its pane.
type paneState struct {
	News  int  // how often it has changed
	Shown bool // its program has printed something
	Quiet bool // it prints nothing now
	Bytes bool // its keeper reads what is typed by tmux.Bytes
	Turn  turnState
}

// notes are the newest state of a pane, and a signal that it has changed.
type notes struct {
	mu      sync.Mutex
	st      paneState
	changed chan struct{} // one slot
	out     chan struct{} // one slot: something was printed
}

func newNotes() *notes {
	return &notes{changed: make(chan struct{}, 1), out: make(chan struct{}, 1)}
}

// attend tells quiet from not quiet until nothing comes any more. What is printed
// without a pause costs nothing but the timer.
func (n *notes) attend(over <-chan struct{}) {
	quiet := time.NewTimer(paneQuiet)
	defer quiet.Stop()
	for {
		select {
		case <-n.out:
			n.change(func(st *paneState) { st.Shown, st.Quiet = true, false })
			quiet.Reset(paneQuiet)
		case <-quiet.C:
			n.change(func(st *paneState) { st.Quiet = true })
		case <-over:
			return
		}
	}
}

// turned takes over what the session told of its turns.
func (n *notes) turned(said *turnState) {
	now := bootNow()
	n.change(func(st *paneState) { st.Turn = st.Turn.after(said, now) })
}

func (n *notes) set(st paneState) { n.change(func(old *paneState) { *old = st }) }

// change says what is to be different, and tells of it when something is.
func (n *notes) change(fn func(*paneState)) {
	n.mu.Lock()
	st := n.st
	fn(&st)
	st.News = n.st.News
	news := n.st != st
	if n.st = st; news {
		n.st.News++
	}
	n.mu.Unlock()
	if news {
		notify(n.changed)
	}
}

func (n *notes) state() paneState {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.st
}

// noted has something when there is news of the pane; never without a terminal.
func (k *keeper) noted() <-chan struct{} {
	if k.term == nil {
		return nil
	}
	return k.term.notes.changed
}

// marked is a message with what is to be told of the pane.
func (k *keeper) marked(m message) message {
	if k.term != nil {
		st := k.term.notes.state()
		m.Shown, m.Quiet, m.Bytes = st.Shown, st.Quiet, true
		if st.Turn != (turnState{}) {
			m.Turn = &st.Turn
		}
	}
	return m
}

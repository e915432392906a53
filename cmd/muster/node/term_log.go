package node

import (
	"strconv"
	"strings"
	"sync"
	"time"

	"muster/board"
	"muster/cmd/muster/tty"
	"muster/mesh"
)

// Bounds of what is told of looks: a machine's words, and how long a link may be lost
// before the look is over.
const (
	looksAtOnce = 60
	lookEvery   = time.Minute
	lookBack    = 30 * time.Second
)

// looks tells the fleet who looks at this machine's terminals: that they began, typed, and ended. A look
// whose link was lost and is found again is one.
type looks struct {
	tell func(run string, l board.Look)

	mu   sync.Mutex
	open map[string]*aLook
	room float64 // words that may be told now
	at   time.Time
	more int64 // that were not
}

// aLook is one of them.
type aLook struct {
	run   string
	is    board.Look // what every word says
	began time.Time
	typed int64
	wrote bool
	links int
	gone  *time.Timer // while it has no link
}

func newLooks(tell func(string, board.Look)) *looks {
	return &looks{tell: tell, open: map[string]*aLook{}, room: looksAtOnce}
}

// began notes a link of a look.
func (k *looks) began(peer mesh.NodeID, a *tty.Ask, run string, o tty.Opened) *aLook {
	k.mu.Lock()
	defer k.mu.Unlock()
	id := strings.Join([]string{string(peer), a.ID, run, o.Who, strconv.FormatBool(o.ReadOnly)}, "\x00") // the ID is what the asker says
	if l := k.open[id]; l != nil && a.ID != "" {
		l.links++
		if l.gone != nil {
			l.gone.Stop()
		}
		return l
	}
	l := &aLook{run: run, began: time.Now(), links: 1, is: board.Look{Who: o.Who, At: string(peer), Shell: a.Shell, ReadOnly: o.ReadOnly}}
	if a.ID != "" {
		k.open[id] = l
	}
	k.say(l, board.LookBegan, "")
	return l
}

// typed notes that somebody types.
func (k *looks) typed(l *aLook) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if !l.wrote {
		l.wrote = true
		k.say(l, board.LookTyped, "")
	}
}

// ended notes the end of a link: that of the look, or one that may be found again.
func (k *looks) ended(l *aLook, left tty.Left) {
	k.mu.Lock()
	defer k.mu.Unlock()
	l.typed += left.Typed
	if l.links--; l.links > 0 {
		return
	}
	over := func(why string) {
		for id, x := range k.open {
			if x == l {
				delete(k.open, id)
			}
		}
		k.say(l, board.LookEnded, why)
	}
	if left.Why == "left" || left.Why == "ended" || left.Why == "refused" || l.is.Shell {
		over(left.Why)
		return
	}
	l.gone = time.AfterFunc(lookBack, func() {
		k.mu.Lock()
		defer k.mu.Unlock()
		if l.links == 0 {
			over("lost")
		}
	})
}

// say tells one word, if there are not too many.
func (k *looks) say(l *aLook, word, why string) {
	now := time.Now()
	k.room = min(looksAtOnce, k.room+float64(now.Sub(k.at))/float64(lookEvery))
	if k.at = now; k.room < 1 {
		k.more++
		return
	}
	k.room--
	w := l.is
	w.Word, w.Why, w.More = word, why, k.more
	if word == board.LookEnded {
		w.Seconds, w.Typed = int64(now.Sub(l.began)/time.Second), l.typed
	}
	k.more = 0
	k.tell(l.run, w)
}

package launcher

import (
	"cmp"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode"

	"muster/board"
	"muster/board/lease"
	"muster/launcher/tmux"
)

// What the journal has of a text that is typed into a pane, by its order's id, or
// that of its run for a prompt. It is written, synced, before the first byte: after a
// crash nobody knows how far it came, and it is not typed again (M-17).
const (
	typedBegun     = "begun"
	typedDelivered = "delivered"
	typedUnknown   = "unknown"
)

// text is something that a session with a pane is to be told.
type text struct {
	key   string // of the journal
	order string // the delivery's, "" for a prompt
	body  string
}

// promptKey is the journal's key for the prompt of a run. An order's id has no slash.
func promptKey(run string) string { return "prompt/" + run }

// typeTexts begins to type what a pane is to be told next, when it takes text: one at
// a time, the prompt first, then what was sent, in order. It answers reports to file.
func (r *Reconciler) typeTexts(n *run, st paneState, s *seen) (files []*item) {
	next, files := r.nextText(n, s)
	if next == nil || n.typing || !st.Quiet || n.deaf == st.News || st.asks() || !n.hasLaunched() {
		return files
	}
	n.typing = true
	// Looking at the screen takes a moment, and typing several: beside the loop.
	link, ready, t := n.link, n.spec.Ready, *next
	r.wg.Go(func() {
		ctx, cancel := context.WithTimeout(r.ctx, typeWait)
		defer cancel()
		id, err := r.takesText(ctx, link, ready)
		if err != nil {
			r.post(func() {
				n.typing, n.deaf = false, st.News // looked at again when the pane has shown something else
				n.keepsWaiting(err)
				r.Wake()
				if why := "a text waits: " + err.Error(); n.said != why {
					n.said = why
					r.log.Info("a text waits until its pane takes it", "run", n.id, "why", err)
				}
			})
			return
		}
		if !r.ask(func() { err = r.markTyped(t.key, typedBegun) }) || err != nil {
			return
		}
		whole, stop := context.WithTimeout(context.WithoutCancel(ctx), typeWait) // also while this node ends: half a text is worse than a moment
		defer stop()
		err = r.typeText(whole, id, t.body, st.Bytes)
		r.post(func() {
			n.takesAgain(r)
			n.typedAt = r.cfg.Now()
			r.awaitReading(n, t, err)
		})
	})
	return files
}

// typeWait bounds how long one text may take; enterWait is between it and its Enter:
// a program that gets both at once may take the Enter for a part of what was pasted.
const (
	typeWait  = 30 * time.Second
	enterWait = 300 * time.Millisecond
)

func (n *run) hasLaunched() bool {
	select {
	case <-n.launched:
		return true
	default:
		return false
	}
}

// nextText is what is to be typed next, nil when nothing is. Of what was begun in an
// earlier life of this node, or was told and not taken note of, it answers the report.
func (r *Reconciler) nextText(n *run, s *seen) (next *text, files []*item) {
	if n.spec.Typed && r.typed[promptKey(n.id)] == "" {
		b, err := os.ReadFile(filepath.Join(n.dir, fileBrief))
		if err != nil {
			r.trouble(n, "its prompt cannot be read", err)
			return nil, nil
		}
		if len(strings.TrimSpace(string(b))) > 0 {
			next = &text{key: promptKey(n.id), body: string(b)}
		}
	}
	orders := s.delivers[n.id]
	slices.SortFunc(orders, func(a, b *board.Order) int { return cmp.Or(cmp.Compare(a.Seq, b.Seq), cmp.Compare(a.ID, b.ID)) })
	for _, o := range orders {
		was, spec := r.typed[o.ID], board.DeliverSpecOf(o)
		switch {
		case was == "" && spec != nil && next == nil && !n.typing:
			next = &text{key: o.ID, order: o.ID, body: spec.Text}
		case was == typedBegun && !n.typing && spec != nil && n.hasRead(spec.Text):
			files = append(files, r.delivered(n.id, o.ID, typedDelivered, ""))
		case was == typedBegun && !n.typing:
			files = append(files, r.delivered(n.id, o.ID, typedUnknown, "its node ended while it was typed"))
		}
	}
	return next, files
}

// takesText finds the pane of a keeper, and tells whether it takes text now: an error
// says why not.
func (r *Reconciler) takesText(ctx context.Context, link Session, ready string) (id string, err error) {
	list, err := r.cfg.panes.Panes(ctx)
	if err != nil {
		return "", err
	}
	i := slices.IndexFunc(list, func(p tmux.Pane) bool { return p.PID == link.Keeper() })
	if i < 0 {
		return "", errors.New("its pane is gone")
	}
	if ready == "" {
		return list[i].ID, nil
	}
	screen, err := r.cfg.panes.Screen(ctx, list[i].ID)
	if err == nil {
		err = waitsForText(screen, ready)
	}
	return list[i].ID, err
}

// errChoice: a program shows a list behind the sign of waiting for text.
var errChoice = errors.New("it asks a person to choose")

// waitsForText looks for the sign that a program puts before what one types. Behind
// the same sign, a number is a choice that it asks a person for: an Enter would make it.
func waitsForText(screen, ready string) error {
	found := errors.New("it does not show " + ready)
	for l := range strings.Lines(screen) {
		l = strings.TrimLeftFunc(l, func(c rune) bool { return unicode.IsSpace(c) || c >= 0x2500 && c < 0x2580 }) // lines of a box
		rest, ok := strings.CutPrefix(l, ready)
		if !ok {
			continue
		}
		rest = strings.TrimSpace(rest)
		digits := strings.TrimLeft(rest, "0123456789")
		if len(digits) < len(rest) && (strings.HasPrefix(digits, ".") || strings.HasPrefix(digits, ")")) {
			return errChoice
		}
		found = nil
	}
	return found
}

// typeText types a text and the Enter that sends it; asBytes where the pane's keeper reads by [tmux.Bytes].
func (r *Reconciler) typeText(ctx context.Context, id, body string, asBytes bool) error {
	block := []byte(strings.TrimRight(tmux.Text(body), "\n"))
	if asBytes {
		block = tmux.Typed(block)
	}
	if err := r.cfg.panes.Paste(ctx, id, block); err != nil {
		return err
	}
	select {
	case <-time.After(enterWait):
	case <-ctx.Done():
		return ctx.Err()
	}
	return r.cfg.panes.Enter(ctx, id)
}

// typedText notes what became of a text.
func (r *Reconciler) typedText(n *run, t text, state, why string) {
	if t.order != "" {
		r.fileNotes([]*item{r.delivered(n.id, t.order, state, why)})
	} else if r.markTyped(t.key, state) != nil {
		return
	}
	r.Wake()
}

// markTyped writes what the journal has of a text; "" forgets it.
func (r *Reconciler) markTyped(key, state string) error {
	if err := r.write([]change{{typed: key, state: state}}); err != nil {
		r.broken(err)
		return err
	}
	if state == "" {
		delete(r.typed, key)
	} else {
		r.typed[key] = state
	}
	return nil
}

// delivered is this node's word about a delivery.
func (r *Reconciler) delivered(run, order, state, why string) *item {
	r.typed[order] = state
	return &item{Run: run, Act: actNote, Delivered: &board.Delivered{Order: order, State: state, Error: why}}
}

// forgetTexts lets go of what the journal has of orders and runs that are over.
func (r *Reconciler) forgetTexts(s *seen) {
	for key := range r.typed {
		run, prompt := strings.CutPrefix(key, "prompt/")
		stands := s.orders[key]
		if prompt {
			n := r.runs[run]
			stands = n != nil && n.session() != lease.SessionEnded
		}
		if !stands && r.markTyped(key, "") != nil {
			return
		}
	}
}

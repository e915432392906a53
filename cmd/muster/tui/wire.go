package tui

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"muster/board"
	"muster/cmd/muster/api"
)

// wire does what the model asks for, and tells it the answers.
type wire struct {
	ctx    context.Context
	cl     *api.Client
	attach []string // this program with what names the node, before the verb
	send   func(tea.Msg)

	stop context.CancelFunc // of the board that is followed
}

// do makes a command of what is asked.
func (w *wire) do(a ask) tea.Cmd {
	switch x := a.(type) {
	case askBoard:
		w.follow(x.slug)
		return nil
	case askDo:
		return func() tea.Msg { return w.request(x) }
	case askAttach:
		return w.look(x.id)
	case askTick:
		return tea.Tick(time.Second, func(time.Time) tea.Msg { return tickMsg{} })
	case askQuit:
		return tea.Quit
	case askLog:
		return func() tea.Msg { return w.log(x) }
	}
	return func() tea.Msg { return w.read(a) }
}

func get[T any](w *wire, path string, q url.Values) (T, error) {
	return api.Decode[T](w.cl.Get(w.ctx, path, q))
}

func cardPath(id, rest string) string { return "/v1/cards/" + url.PathEscape(id) + rest }

func (w *wire) read(a ask) tea.Msg {
	switch x := a.(type) {
	case askCard:
		d, err := get[api.CardDetail](w, cardPath(x.id, ""), nil)
		m := cardMsg{id: x.id, detail: d, err: err}
		if err == nil {
			m.why, _ = get[api.Why](w, cardPath(x.id, "/why"), nil) // without it the card is still worth showing
		}
		return m
	case askMoves:
		list, err := get[[]api.Move](w, cardPath(x.id, "/moves"), nil)
		return movesMsg{x.id, list, err}
	case askEvents:
		list, err := get[[]api.Event](w, "/v1/events", url.Values{"card": {x.id}, "last": {"300"}})
		return eventsMsg{x.id, list, err}
	case askDiff:
		d, err := get[api.Diff](w, cardPath(x.id, "/diff"), nil)
		return diffMsg{x.id, d, err}
	case askInbox:
		b, err := get[api.Inbox](w, "/v1/inbox", nil)
		return inboxMsg{b, err}
	case askSessions:
		list, err := get[[]api.Session](w, "/v1/sessions", nil)
		return sessionsMsg{list, err}
	}
	return nil
}

// log waits for the next piece of a log, over nodes that are started anew.
func (w *wire) log(x askLog) tea.Msg {
	for {
		c, err := get[api.LogChunk](w, "/v1/runs/"+url.PathEscape(x.run)+"/log", url.Values{"from": {fmt.Sprint(x.from)}, "wait": {"true"}})
		if board.CodeOf(err) != board.Unavailable {
			return logMsg{x.run, c, err}
		}
		if !w.wait(time.Second) {
			return nil
		}
	}
}

func (w *wire) wait(d time.Duration) bool {
	select {
	case <-w.ctx.Done():
		return false
	case <-time.After(d):
		return true
	}
}

func (w *wire) request(x askDo) tea.Msg {
	ans, err := w.cl.Do(w.ctx, x.verb, x.args, x.id, x.id != "")
	m := doneMsg{ask: x, err: err}
	if ans != nil && board.CodeOf(err) == board.UnknownOutcome {
		m.id = ans.RequestID
		m.err = board.Errorf(board.UnknownOutcome, "no answer in time: it may or may not have been done").WithHint("Enter asks again, and it is done once")
	}
	if err == nil && len(ans.Data) > 0 {
		_ = json.Unmarshal(ans.Data, &m.said) // an answer of another shape has nothing to add
	}
	return m
}

// tail keeps the end of what a program says.
type tail struct{ b bytes.Buffer }

// Write implements io.Writer.
func (t *tail) Write(p []byte) (int, error) {
	if t.b.Len() > 8<<10 {
		t.b.Next(t.b.Len() - 4<<10)
	}
	return t.b.Write(p)
}

// look leaves the terminal to `muster attach`, and comes back.
func (w *wire) look(id string) tea.Cmd {
	args := append(append([]string{}, w.attach[1:]...), "attach", "--", id)
	cmd := exec.CommandContext(w.ctx, w.attach[0], args...)
	said := &tail{}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, said
	return tea.ExecProcess(cmd, func(err error) tea.Msg {
		text := strings.TrimSpace(said.b.String())
		if text == "" && err != nil {
			text = err.Error()
		}
		list := strings.Split(text, "\n")
		for i := range list {
			list[i] = strings.TrimPrefix(list[i], "muster: ")
		}
		text = strings.Join(list[max(0, len(list)-2):], "; ")
		return attachedMsg{text, strings.HasPrefix(list[len(list)-1], "left ")}
	})
}

// How long it waits before it asks again for a live view that was lost.
const (
	firstWait = 150 * time.Millisecond
	longWait  = 3 * time.Second
)

// follow keeps a live view of a board, and no other, until the program ends.
func (w *wire) follow(slug string) {
	if w.stop != nil {
		w.stop()
	}
	ctx, stop := context.WithCancel(w.ctx)
	w.stop = stop
	go func() {
		for wait := firstWait; ctx.Err() == nil; wait = min(2*wait, longWait) {
			err := w.cl.Live(ctx, slug, func(kind string, env api.Envelope) bool {
				m, err := message(kind, env)
				if err == nil && ctx.Err() == nil {
					w.send(m)
				}
				wait = firstWait
				return err == nil && ctx.Err() == nil
			})
			if ctx.Err() != nil {
				return
			}
			why := ""
			if e := (*board.Error)(nil); errors.As(err, &e) {
				why = e.Message
			}
			w.send(lostMsg{why})
			select {
			case <-ctx.Done():
			case <-time.After(wait):
			}
		}
	}()
}

// message reads one of the live view.
func message(kind string, env api.Envelope) (m liveMsg, err error) {
	m.age = env.AgeMS
	switch kind {
	case "board":
		err = json.Unmarshal(env.Data, &m.board)
	case "cards":
		err = json.Unmarshal(env.Data, &m.cards)
	case "fleet":
		err = json.Unmarshal(env.Data, &m.fleet)
	case "needs":
		err = json.Unmarshal(env.Data, &m.needs)
	}
	return m, err
}

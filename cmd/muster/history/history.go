package history

import (
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Op is one thing that a user did and that the models know: a comment, a priority, a consistent read of both, or a copy
// of a request that had an answer.
type Op struct {
	User      int
	Kind      string // comment, priority, read, copy
	Card      string // of a copy: its request id
	Text      string // of a copy: the answer
	Prio      int64
	Open      bool // nobody knows whether it was done
	Refused   bool
	Call, Ret time.Time
}

// cardState is a card: what users said of it, as a set, and its priority.
type cardState struct {
	said string // sorted, joined
	prio int64
}

// Model is what users may see of cards. Who knows no outcome may have been the last of all.
func Model() porcupine.Model {
	return porcupine.Model{
		Partition: func(ops []porcupine.Operation) [][]porcupine.Operation {
			by := map[string][]porcupine.Operation{}
			for _, o := range ops {
				card := o.Input.(Op).Card
				by[card] = append(by[card], o)
			}
			var out [][]porcupine.Operation
			for _, list := range by {
				out = append(out, list)
			}
			return out
		},
		Init: func() any { return cardState{} },
		Step: func(state, input, output any) (bool, any) {
			s, in := state.(cardState), input.(Op)
			switch {
			case in.Kind == "copy": // of one id: the first answer is everybody's
				return s.said == "" || s.said == in.Text, cardState{said: in.Text}
			case in.Kind == "read":
				return in.Text == s.said && in.Prio == s.prio, s
			case in.Refused:
				return true, s
			case in.Kind == "comment":
				list := append(strings.Fields(s.said), in.Text)
				sort.Strings(list)
				return true, cardState{strings.Join(list, " "), s.prio}
			}
			return true, cardState{s.said, in.Prio}
		},
	}
}

// Linear checks what users saw; what cannot be decided in time counts as wrong.
func Linear(ops []Op, limit time.Duration) []string {
	var list []porcupine.Operation
	for _, o := range ops {
		ret := o.Ret
		if o.Open {
			ret = o.Call.Add(24 * time.Hour)
		}
		list = append(list, porcupine.Operation{ClientId: o.User, Input: o, Call: o.Call.UnixNano(), Output: nil, Return: ret.UnixNano()})
	}
	switch porcupine.CheckOperationsTimeout(Model(), list, limit) {
	case porcupine.Illegal:
		return []string{fmt.Sprintf("the %d operations of the users have no order in which each saw what was before it%s", len(ops), culprit(ops))}
	case porcupine.Unknown:
		return []string{fmt.Sprintf("the %d operations of the users could not be judged in %v", len(ops), limit)}
	}
	return nil
}

// culprit is the first card whose operations have no order.
func culprit(ops []Op) string {
	by := map[string][]Op{}
	for _, o := range ops {
		by[o.Card] = append(by[o.Card], o)
	}
	if len(by) < 2 {
		var s strings.Builder
		for _, o := range ops {
			fmt.Fprintf(&s, "\n    %s-%s user %d %s %q %d open=%t refused=%t", o.Call.Format("05.000"), o.Ret.Format("05.000"), o.User, o.Kind, o.Text, o.Prio, o.Open, o.Refused)
		}
		return s.String()
	}
	for _, list := range by {
		if wrong := Linear(list, time.Minute); wrong != nil {
			return ": " + wrong[0]
		}
	}
	return ""
}

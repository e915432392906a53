package foreign

import (
	"fmt"
	"slices"
	"strings"
	"unicode"

	"muster/board"
)

// Bounds of a card; what is longer is cut, and told.
const (
	maxTitle = 1 << 10
	maxBody  = 256 << 10
	maxText  = 60 << 10 // of a comment, or of an event's payload
	maxLeft  = 200      // kinds of things that are told to have no place
)

// Board is what was read of another system.
type Board struct {
	cards []*card
	byKey map[string]*card
	left  map[string]*Left
	links int
}

// Left is something that has no place on a board here.
type Left struct {
	What    string `json:"what"`
	Count   int    `json:"count"`
	Example string `json:"example,omitempty"`
}

// Counts say how much was read.
type Counts struct {
	Cards  int `json:"cards"`
	Events int `json:"events"` // comments among them
	Runs   int `json:"runs"`
	Links  int `json:"links"`
}

// card is one card with what belongs to it, under its id in the source.
type card struct {
	key    string
	where  string
	status string // as the source names it, in lower case
	of     string // key of the card that it is a part of
	after  []string
	out    board.ExportCard
	events []board.ExportEvent
	runs   []board.ExportRun

	numbers map[string]uint64 // of its runs, by their ids in the source
}

// Sources are the systems that are read.
var Sources = []string{"hermes", "csv", "json"}

// Read reads a board of another system, one of [Sources].
func Read(from string, src []byte) (*Board, error) {
	b := &Board{byKey: map[string]*card{}, left: map[string]*Left{}}
	var err error
	switch from {
	case "hermes":
		err = b.hermes(src)
	case "csv":
		err = b.csv(src)
	case "json":
		err = b.json(src)
	default:
		return nil, bad("%q is no system that boards are read of", from).WithHint("use %s", strings.Join(Sources, ", "))
	}
	if err != nil {
		return nil, err
	}
	if len(b.cards) == 0 {
		return nil, bad("there is no card in it")
	}
	return b, b.settle()
}

func bad(format string, a ...any) *board.Error {
	return board.Errorf(board.Invalid, format, a...).WithCheck("import")
}

// Counts are those of what will be imported.
func (b *Board) Counts() Counts {
	n := Counts{Cards: len(b.cards), Links: b.links}
	for _, c := range b.cards {
		n.Events += len(c.events)
		n.Runs += len(c.runs)
	}
	return n
}

// Left is what has no place here, the most frequent first.
func (b *Board) Left() []Left {
	list := []Left{}
	for _, l := range b.left {
		list = append(list, *l)
	}
	slices.SortFunc(list, func(x, y Left) int {
		if x.Count != y.Count {
			return y.Count - x.Count
		}
		return strings.Compare(x.What, y.What)
	})
	return list
}

// leave counts something that has no place here.
func (b *Board) leave(what, example string) {
	what = cut(what, 200)
	l := b.left[what]
	if l == nil {
		if len(b.left) >= maxLeft {
			what, example = "more kinds of things", ""
			if l = b.left[what]; l == nil {
				l = &Left{What: what}
			}
		} else {
			l = &Left{What: what, Example: cut(strings.ReplaceAll(example, "\n", " "), 60)}
		}
		b.left[what] = l
	}
	l.Count++
}

// add takes a card over; its key is its id in the source.
func (b *Board) add(key string, c *card) error {
	if key == "" {
		key = fmt.Sprint("#", len(b.cards)+1)
	}
	if other := b.byKey[key]; other != nil {
		return bad("%s: %s has the id %q already", c.where, other.where, cut(key, 60))
	}
	c.key = key
	c.out.Title = b.title(c, c.out.Title)
	if c.out.Title == "" {
		return bad("%s: the card has no title", c.where)
	}
	c.out.Body = b.cutTold(c.out.Body, maxBody, "the end of a long text")
	c.out.Labels = b.labels(c.out.Labels)
	b.byKey[key] = c
	b.cards = append(b.cards, c)
	return nil
}

// title is one line.
func (b *Board) title(c *card, s string) string {
	first, rest, more := strings.Cut(strings.TrimSpace(strings.ReplaceAll(s, "\r\n", "\n")), "\n")
	if more { // nothing of it is lost: it stands in front of the text
		c.out.Body = strings.TrimSpace(rest + "\n\n" + c.out.Body)
	}
	return b.cutTold(strings.Map(printable, first), maxTitle, "the end of a long title")
}

func printable(r rune) rune {
	if unicode.IsControl(r) {
		return ' '
	}
	return r
}

func (b *Board) labels(in map[string]string) map[string]string {
	out := map[string]string{}
	for k, v := range in {
		if k == "" || v == "" || len(k)+len(v) > 300 || strings.ContainsAny(k, "=\n\r\t") || strings.ContainsFunc(v, unicode.IsControl) || len(out) == 60 {
			b.leave("a label that is no name and value of one line each", k+"="+v)
			continue
		}
		out[k] = v
	}
	if len(out) == 0 {
		return nil
	}
	return out
}

func (b *Board) cutTold(s string, n int, what string) string {
	if len(s) > n {
		b.leave(what, s[:20])
	}
	return cut(s, n)
}

// cut shortens text to a number of bytes, at a character.
func cut(s string, n int) string {
	s = strings.ToValidUTF8(s, "\ufffd")
	for len(s) > n {
		i := n
		for i > 0 && s[i]&0xc0 == 0x80 {
			i--
		}
		s = s[:i]
	}
	return s
}

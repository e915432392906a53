package launcher

import (
	"bytes"
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
	"time"

	"muster/board"
)

// Meaning is what an end means, by the harness's preset: its exit code alone does
// not tell (an agent that was denied its tools ends with 0).
type Meaning struct {
	Kind    string `json:"kind"`
	Text    string `json:"text,omitempty"`     // of its output, for people
	ResetAt int64  `json:"reset_at,omitempty"` // of a rate limit: when it ends, ms since the epoch, as the harness said
	ResetIn int64  `json:"reset_in,omitempty"` // ... or ms from the end on, when it told no moment

	rough bool // the end was told as a time of day: to the minute, in a zone that has to be guessed
}

// Meanings that are not a preset's to give.
const (
	meansCrash   = "crash"
	meansStopped = "stopped"
	meansHang    = "hang"
	meansMemory  = "memory"
)

// How much of a log's end is searched: more, up to the most, while it is not one whole line.
const (
	meansTail = 256 << 10
	meansMost = 4 << 20
	meansText = 300 // bytes of a text for people
)

// meaning is what the end of this folder's session means: by what ended it, by its
// code, by the signs in its output. nil: nothing was executed, or code 0 and nothing
// more is known.
func meaning(dir string, s *Spec, e *Exit) *Meaning {
	return meaningAt(dir, s, e, time.UnixMilli(e.Wall))
}

// meaningAt is meaning with the moment of the end, which times of day are read by.
func meaningAt(dir string, s *Spec, e *Exit, now time.Time) *Meaning {
	failed := e.Code == nil || *e.Code != 0
	switch {
	case !e.Started:
		return nil
	case e.Lapsed:
		return &Meaning{Kind: board.MeansLease}
	case e.Terminal:
		return &Meaning{Kind: board.MeansTerminal}
	case e.Memory:
		return &Meaning{Kind: meansMemory}
	}
	m := &Meaning{}
	if e.Code != nil && !e.Hung {
		m.Kind = s.Exits[strconv.FormatInt(*e.Code, 10)]
	}
	if len(s.Signs) > 0 && (m.Kind == "" || m.Kind == board.MeansRateLimit) {
		m.addSigns(s.Signs, splitLines(wholeTail(dir)), failed, now)
	}
	switch {
	case m.Kind != "":
	case e.Hung:
		m.Kind = meansHang
	case e.Stopped:
		m.Kind = meansStopped
	case failed:
		m.Kind = meansCrash
	default:
		return nil
	}
	return m
}

// wholeTail is the newest output, from the beginning of a line.
func wholeTail(dir string) []byte {
	for max := int64(meansTail); ; max *= 4 {
		tail := tailOf(dir, max)
		if int64(len(tail)) < max {
			return tail
		}
		_, whole, ok := bytes.Cut(tail, []byte("\n"))
		if ok && len(bytes.TrimSpace(whole)) > 0 || max >= meansMost {
			return whole
		}
	}
}

// outputLine is a line of output, and its members when it is a JSON object.
type outputLine struct {
	raw  []byte
	json map[string]json.RawMessage
}

func splitLines(b []byte) (list []outputLine) {
	for line := range bytes.Lines(b) {
		l := outputLine{raw: bytes.TrimSpace(line)}
		if len(l.raw) > 0 && l.raw[0] == '{' && json.Unmarshal(l.raw, &l.json) != nil {
			l.json = nil
		}
		list = append(list, l)
	}
	return list
}

// member is the value of a member, inwards along the dots; nil without one.
func (l outputLine) member(path string) json.RawMessage {
	m := l.json
	for {
		name, rest, more := strings.Cut(path, ".")
		v := m[name]
		if !more || v == nil {
			return v
		}
		m = nil
		if json.Unmarshal(v, &m) != nil {
			return nil
		}
		path = rest
	}
}

// is tells whether a line is a JSON object with these members.
func (l outputLine) is(want board.SpecLine) bool {
	if l.json == nil {
		return false
	}
	for path, text := range want {
		if v := l.member(path); v == nil || textOf(v) != text {
			return false
		}
	}
	return true
}

// textOf is a JSON value as text: a string without its quotes, anything else as it is.
func textOf(v json.RawMessage) string {
	var s string
	if json.Unmarshal(v, &s) == nil {
		return s
	}
	return string(v)
}

// addSigns takes the meaning of the first sign that is there. A rate limit that does
// not say its end, or only as a time of day, or that the code has told, gets it from
// another sign of a rate limit.
func (m *Meaning) addSigns(signs []board.SpecSign, lines []outputLine, failed bool, now time.Time) {
	for _, s := range signs {
		if m.Kind != "" && s.Means != m.Kind {
			continue
		}
		if found := findSign(s, lines, failed, now); found != nil {
			m.Kind, m.Text = found.Kind, cmp.Or(m.Text, found.Text)
			if known := m.ResetAt != 0; !known || found.ResetAt != 0 && !found.rough {
				m.ResetAt, m.ResetIn, m.rough = found.ResetAt, found.ResetIn, found.rough
			}
		}
		if m.Kind != "" && (m.Kind != board.MeansRateLimit || m.ResetAt != 0 && !m.rough || m.ResetIn != 0) {
			return
		}
	}
}

// findSign looks for one sign, in the newest line it can be in first.
func findSign(s board.SpecSign, lines []outputLine, failed bool, now time.Time) *Meaning {
	re, err := regexp.Compile(s.Matches)
	if err != nil || (s.Line == nil || s.Failed) && !failed {
		return nil
	}
	for i := len(lines) - 1; i >= 0; i-- {
		l := lines[i]
		if s.Line == nil {
			if l.json != nil || !re.Match(l.raw) {
				continue
			}
			return newMeaning(s, re, string(l.raw), true, now)
		}
		if !l.is(s.Line) {
			continue
		}
		if !l.is(s.Where) {
			return nil // the newest such line counts, and it says something else
		}
		text, shown := string(l.raw), false
		if s.In != "" {
			v := l.member(s.In)
			text, shown = textOf(v), len(v) > 0 && v[0] == '"'
		}
		if !re.MatchString(text) {
			return nil
		}
		return newMeaning(s, re, text, shown, now)
	}
	return nil
}

// newMeaning is a sign that is there; its text is shown whole, or what matched of it.
func newMeaning(s board.SpecSign, re *regexp.Regexp, text string, whole bool, now time.Time) *Meaning {
	m := &Meaning{Kind: s.Means, Text: text}
	groups := map[string]string{}
	match := re.FindStringSubmatch(text)
	for i, name := range re.SubexpNames() {
		if name != "" {
			groups[name] = match[i]
		}
	}
	if !whole {
		m.Text = match[0]
	}
	m.Text = plainText(m.Text, meansText)
	if s.Means == board.MeansRateLimit {
		m.ResetAt, m.ResetIn = resetOf(groups, now)
		m.rough = groups["reset_clock"] != ""
	}
	return m
}

// plainText is one line of a session's output for people: no control codes, valid, short.
func plainText(s string, max int) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r >= 0x7f && r < 0xa0 {
			return ' '
		}
		return r
	}, strings.ToValidUTF8(s, "?"))
	s = strings.Join(strings.Fields(s), " ")
	if len(s) > max {
		s = strings.ToValidUTF8(s[:max], "") + " ..."
	}
	return s
}
